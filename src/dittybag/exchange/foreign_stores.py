"""Import sources for the databases of other programs: prompt-store, mcpkg and the task manager."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from dittybag.domain.entities import Kind
from dittybag.domain.mime_types import BINARY
from dittybag.domain.names import NAME_LENGTH
from dittybag.domain.projects import NAME_LENGTH as PROJECT_NAME_LENGTH
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import DEFAULT_MIME_TYPE, Resource, decode_base64, is_text, problems
from dittybag.domain.tasks import (
    DEFAULT_ENERGY,
    DEFAULT_PRIORITY,
    DEFAULT_TIME_ESTIMATE,
    DEFAULT_USER,
    ENERGIES,
    NOTES_LENGTH,
    PRIORITIES,
    PROJECT_LENGTH,
    TIME_ESTIMATE_LENGTH,
    TITLE_LENGTH,
    Task,
)
from dittybag.domain.tasks import problems as task_problems
from dittybag.domain.text import one_line
from dittybag.exchange.file_times import parse_time
from dittybag.exchange.import_rules import UUID, content_facts
from dittybag.exchange.import_sources import FileSource, SourceEntity, SourceEntry, entity_of
from dittybag.exchange.sanitise import (
    sanitise_description,
    sanitise_name,
    sanitise_tag,
    sanitise_title,
    sanitise_uri,
)
from dittybag.exchange.sqlite_reader import as_number, as_text, open_read_only, rows, tables


class _DatabaseSource(FileSource):
    """The SQLite database of another program."""

    #: The query for the rows of each kind.
    queries: ClassVar[Mapping[Kind, str]]

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def entities(self, kind: Kind) -> Iterator[SourceEntry[SourceEntity]]:
        if kind not in self.queries:
            return
        for row in self._rows(self.queries[kind]):
            location = f"{kind} {as_text(row['id'])}"
            yield location, self._entity(kind, location, row)

    def _rows(self, sql: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a query. Raises `SourceFailed`."""
        with open_read_only(self._path) as connection:
            yield from rows(connection, sql)

    def _entity(self, kind: Kind, location: str, row: dict[str, Any]) -> SourceEntity:
        raise NotImplementedError


def _time_fields(row: dict[str, Any]) -> dict[str, Any]:
    created = parse_time(as_text(row.get("created_at"))) or 0
    return {"created_at": created, "updated_at": parse_time(as_text(row.get("updated_at"))) or created}


class PromptStoreSource(_DatabaseSource):
    """A prompt-store database: prompts with titles and tags."""

    queries: ClassVar[Mapping[Kind, str]] = {"prompt": "SELECT * FROM prompts ORDER BY rowid"}

    def __init__(self, path: str) -> None:
        """Read the tags. Raises `SourceFailed`."""
        super().__init__(path)
        self._tags: dict[str, list[str]] = {}
        for row in self._rows("SELECT prompt_id, tag_name FROM prompt_tags ORDER BY tag_name"):
            if tag := sanitise_tag(as_text(row["tag_name"])):
                self._tags.setdefault(as_text(row["prompt_id"]), []).append(tag)

    def _entity(self, kind: Kind, location: str, row: dict[str, Any]) -> SourceEntity:
        key, title = as_text(row["id"]), as_text(row["title"])
        prompt = entity_of(
            Prompt,
            id=key.lower() if UUID.fullmatch(key.lower()) else "",
            title=self.record_rename("prompt", location, title, sanitise_title(title)),
            content=as_text(row["content"]),
            tags=tuple(self._tags.get(key, ())),
            **_time_fields(row),
        )
        return SourceEntity(prompt)


class McpkgSource(_DatabaseSource):
    """An mcpkg workspace: projects with prompts and resources."""

    queries: ClassVar[Mapping[Kind, str]] = {
        "project": "SELECT * FROM projects ORDER BY id",
        "prompt": "SELECT * FROM prompts WHERE project_id IN (SELECT id FROM projects) ORDER BY id",
        "resource": "SELECT * FROM resources WHERE project_id IN (SELECT id FROM projects) ORDER BY id",
    }

    def _entity(self, kind: Kind, location: str, row: dict[str, Any]) -> SourceEntity:
        name = as_text(row["name"])
        if kind == "project":
            sanitised = one_line(name, PROJECT_NAME_LENGTH) or "project"
            name = self.record_rename(kind, location, name, sanitised)
            return SourceEntity(Project(id=as_number(row["id"]), name=name, **_time_fields(row)))
        fields = {
            "project": as_number(row["project_id"]),
            "name": self.record_rename(kind, location, name, sanitise_name(name, kind)),
            "description": sanitise_description(as_text(row.get("description"))),
            **_time_fields(row),
        }
        if kind == "prompt":
            return SourceEntity(entity_of(Prompt, content=as_text(row["content"]), **fields))
        uri = as_text(row["uri"])
        uri = self.record_rename(kind, f"{location} uri", uri, sanitise_uri(uri))
        mime_type, content = self._content(location, row)
        return SourceEntity(entity_of(Resource, uri=uri, mime_type=mime_type, **fields), content)

    def _content(self, location: str, row: dict[str, Any]) -> tuple[str, bytes]:
        """Return the MIME type and bytes of a content. mcpkg may store binary content in base64."""
        raw = row["content"]
        content = raw if isinstance(raw, bytes) else as_text(raw).encode()
        mime_type = as_text(row.get("mime_type")).strip() or DEFAULT_MIME_TYPE
        if any(problems(mime_type=mime_type)):
            problem = f"'{mime_type[:60]}' is not a valid MIME type"
            self.add_note(f"{location}: {problem}; imported as {DEFAULT_MIME_TYPE}")
            mime_type = DEFAULT_MIME_TYPE
        if is_text(mime_type):
            if content_facts(content).text:
                return mime_type, content
            self.add_note(f"{location}: the content is not text; imported as {BINARY}")
            return BINARY, content
        try:
            return mime_type, decode_base64(content.decode("ascii"))
        except ValueError:
            return mime_type, content


class TaskManagerSource(_DatabaseSource):
    """A task manager database: tasks."""

    queries: ClassVar[Mapping[Kind, str]] = {"task": "SELECT * FROM tasks ORDER BY id"}

    def __init__(self, path: str) -> None:
        """Read the names of the users. Raises `SourceFailed`."""
        super().__init__(path)
        with open_read_only(path) as connection:
            self._columns = tables(connection)["tasks"]
        users = [as_text(row["user_id"]) for row in self._rows("SELECT DISTINCT user_id FROM tasks")]
        other_users = sorted(user for user in users if user != DEFAULT_USER)
        # The only user of the task manager becomes the default user.
        self._single_user = len(users) == 1
        if other_users and not self._single_user:
            owners = f"Owners ({len(other_users)}): {', '.join(other_users)[:200]}"
            self.add_note(f"Tasks of other users keep their owner. {owners}")

    def _entity(self, kind: Kind, location: str, row: dict[str, Any]) -> SourceEntity:
        user = DEFAULT_USER if self._single_user else as_text(row["user_id"])
        title, notes = as_text(row["title"]), as_text(row.get("notes")).replace("\0", "")
        due = as_text(row.get("due_date")).strip() or None
        if due is not None and any(task_problems(due_date=due)):
            self.add_note(f"{location}: due date '{due[:60]}' is not a date; moved to the notes")
            notes, due = f"Due: {due}\n\n{notes}".strip(), None
        energy = as_text(row["energy"]).lower()
        if energy not in ENERGIES:
            self.add_note(f"{location}: unknown energy '{energy[:60]}'; imported as {DEFAULT_ENERGY}")
            energy = DEFAULT_ENERGY
        times = _time_fields(row)
        completed_at = parse_time(as_text(row.get("completed_at")))
        is_done = bool(row["completed"]) if "completed" in self._columns else completed_at is not None
        task = Task(
            id=0,
            user=one_line(user, NAME_LENGTH) or DEFAULT_USER,
            title=self.record_rename("task", location, title, one_line(title, TITLE_LENGTH) or "(no title)"),
            project=one_line(as_text(row.get("project")), PROJECT_LENGTH),
            priority=_priority(row["priority"]),
            energy=energy,
            time_estimate=one_line(as_text(row["time_estimate"]), TIME_ESTIMATE_LENGTH)
            or DEFAULT_TIME_ESTIMATE,
            notes=notes[:NOTES_LENGTH],
            due_date=due,
            completed_at=(completed_at or times["updated_at"] or 1) if is_done else None,
            **times,
        )
        return SourceEntity(task)


def _priority(value: Any) -> int:
    if not isinstance(value, int):
        return DEFAULT_PRIORITY
    return min(max(value, PRIORITIES[0]), PRIORITIES[1])
