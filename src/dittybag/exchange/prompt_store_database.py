"""Import source for the database of a prompt-store server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dittybag.domain.entities import Kind
from dittybag.domain.prompts import Prompt
from dittybag.exchange.file_times import parse_time
from dittybag.exchange.import_rules import UUID
from dittybag.exchange.import_sources import FileSource, SourceEntity, SourceEntry, entity_of
from dittybag.exchange.sanitise import sanitise_tag, sanitise_title
from dittybag.exchange.sqlite_reader import as_text, open_read_only, rows


class PromptStoreSource(FileSource):
    """A prompt-store database: prompts with titles and tags."""

    def __init__(self, path: str) -> None:
        """Read the tags. Raises `SourceFailed`."""
        super().__init__()
        self._path = path
        self._tags: dict[str, list[str]] = {}
        for row in self._rows("SELECT prompt_id, tag_name FROM prompt_tags ORDER BY tag_name"):
            if tag := sanitise_tag(as_text(row["tag_name"])):
                self._tags.setdefault(as_text(row["prompt_id"]), []).append(tag)

    def entities(self, kind: Kind) -> Iterator[SourceEntry[SourceEntity]]:
        if kind != "prompt":
            return
        for row in self._rows("SELECT * FROM prompts ORDER BY rowid"):
            location = f"prompt {as_text(row['id'])}"
            yield location, self._prompt(location, row)

    def _rows(self, sql: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a query. Raises `SourceFailed`."""
        with open_read_only(self._path) as connection:
            yield from rows(connection, sql)

    def _prompt(self, location: str, row: dict[str, Any]) -> SourceEntity:
        key, title = as_text(row["id"]), as_text(row["title"])
        created = parse_time(as_text(row.get("created_at"))) or 0
        prompt = entity_of(
            Prompt,
            id=key.lower() if UUID.fullmatch(key.lower()) else "",
            title=self.record_rename("prompt", location, title, sanitise_title(title)),
            content=as_text(row["content"]),
            tags=tuple(self._tags.get(key, ())),
            created_at=created,
            updated_at=parse_time(as_text(row.get("updated_at"))) or created,
        )
        return SourceEntity(prompt)
