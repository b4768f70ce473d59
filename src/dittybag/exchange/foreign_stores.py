"""What other programs keep in their databases: the prompt store, mcpkg and the task manager."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

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
from dittybag.exchange.file_times import moment
from dittybag.exchange.import_sources import Found, Source
from dittybag.exchange.sanitise import (
    BINARY,
    fitted_description,
    fitted_name,
    fitted_tag,
    fitted_title,
    fitted_uri,
)
from dittybag.exchange.sqlite_reader import number, opened, rows, tables, text

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _Database(Source):
    """A database of another program."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def _rows(self, sql: str) -> Iterator[dict[str, Any]]:
        """Raises `SourceFailed`."""
        with opened(self._path) as connection:
            yield from rows(connection, sql)


def _times(row: dict[str, Any]) -> dict[str, Any]:
    created = moment(text(row.get("created_at"))) or 0
    return {"created_at": created, "updated_at": moment(text(row.get("updated_at"))) or created}


class PromptStore(_Database):
    """A prompt store: prompts with titles and tags."""

    def prompts(self) -> Iterator[Found[Prompt]]:
        tags: dict[str, list[str]] = {}
        for row in self._rows("SELECT prompt_id, tag_name FROM prompt_tags ORDER BY tag_name"):
            tags.setdefault(text(row["prompt_id"]), []).append(fitted_tag(text(row["tag_name"])))
        for row in self._rows("SELECT * FROM prompts ORDER BY rowid"):
            key, title = text(row["id"]), text(row["title"])
            place = f"prompt {key}"
            prompt = Prompt(
                number=0,
                id=key.lower() if _UUID.fullmatch(key.lower()) else "",
                project=0,
                name="",
                title=self.fits("prompt", place, title, fitted_title(title)),
                content=text(row["content"]),
                tags=tuple(tag for tag in tags.get(key, ()) if tag),
                **_times(row),
            )
            yield place, prompt


class Mcpkg(_Database):
    """An mcpkg workspace: projects of prompts and resources."""

    def projects(self) -> Iterator[Found[Project]]:
        for row in self._rows("SELECT * FROM projects ORDER BY id"):
            place, name = f"project {row['id']}", text(row["name"])
            fitted = one_line(name, PROJECT_NAME_LENGTH) or "project"
            times = _times(row)
            project = Project(id=number(row["id"]), name=self.fits("project", place, name, fitted), **times)
            yield place, project

    def prompts(self) -> Iterator[Found[Prompt]]:
        for row in self._rows(
            "SELECT * FROM prompts WHERE project_id IN (SELECT id FROM projects) ORDER BY id"
        ):
            place, name = f"prompt {row['id']}", text(row["name"])
            prompt = Prompt(
                number=0,
                id="",
                project=number(row["project_id"]),
                name=self.fits("prompt", place, name, fitted_name(name, "prompt")),
                title="",
                description=fitted_description(text(row.get("description"))),
                content=text(row["content"]),
                **_times(row),
            )
            yield place, prompt

    def resources(self) -> Iterator[Found[tuple[Resource, bytes]]]:
        for row in self._rows(
            "SELECT * FROM resources WHERE project_id IN (SELECT id FROM projects) ORDER BY id"
        ):
            place, name, uri = f"resource {row['id']}", text(row["name"]), text(row["uri"])
            mime_type, content = self._content(place, row)
            resource = Resource(
                number=0,
                id="",
                project=number(row["project_id"]),
                name=self.fits("resource", place, name, fitted_name(name, "resource")),
                uri=self.fits("resource", f"{place} uri", uri, fitted_uri(uri)),
                description=fitted_description(text(row.get("description"))),
                mime_type=mime_type,
                sha256="",
                size=len(content),
                **_times(row),
            )
            yield place, (resource, content)

    def _content(self, place: str, row: dict[str, Any]) -> tuple[str, bytes]:
        """Type and bytes of a content. It may hold binary content in base64, as its tools are given it."""
        raw = row["content"]
        content = raw if isinstance(raw, bytes) else text(raw).encode()
        mime_type = text(row.get("mime_type")).strip() or DEFAULT_MIME_TYPE
        if any(problems(mime_type=mime_type)):
            self.note(f"{place}: '{mime_type[:60]}' is no MIME type; taken for {DEFAULT_MIME_TYPE}")
            mime_type = DEFAULT_MIME_TYPE
        if is_text(mime_type):
            if b"\0" in content or not _is_utf8(content):
                self.note(f"{place}: its content is not text; taken for {BINARY}")
                return BINARY, content
            return mime_type, content
        try:
            return mime_type, decode_base64(content.decode("ascii"))
        except ValueError:
            return mime_type, content


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


class TaskManager(_Database):
    """A task manager's tasks."""

    def tasks(self) -> Iterator[Found[Task]]:
        with opened(self._path) as connection:
            known = tables(connection)["tasks"]
        users = [text(row["user_id"]) for row in self._rows("SELECT DISTINCT user_id FROM tasks")]
        others = sorted(user for user in users if user != DEFAULT_USER)
        # Whoever was the only one there is the only one here.
        alone = len(users) == 1
        if others and not alone:
            self.note(f"The tasks of {len(others)} other users stay theirs: {', '.join(others)[:200]}")
        for row in self._rows("SELECT * FROM tasks ORDER BY id"):
            place = f"task {row['id']}"
            yield place, self._task(place, row, DEFAULT_USER if alone else text(row["user_id"]), known)

    def _task(self, place: str, row: dict[str, Any], user: str, known: set[str]) -> Task:
        title, notes = text(row["title"]), text(row.get("notes")).replace("\0", "")
        due = text(row.get("due_date")).strip() or None
        if due is not None and any(task_problems(due_date=due)):
            # It is a date to people only.
            self.note(f"{place}: its due date went to its notes: {due[:60]}")
            notes, due = f"Due: {due}\n\n{notes}".strip(), None
        energy = text(row["energy"]).lower()
        if energy not in ENERGIES:
            self.note(f"{place}: its energy '{energy[:60]}' is now {DEFAULT_ENERGY}")
            energy = DEFAULT_ENERGY
        times = _times(row)
        completed_at = moment(text(row.get("completed_at")))
        is_done = bool(row["completed"]) if "completed" in known else completed_at is not None
        return Task(
            id=0,
            user=one_line(user, NAME_LENGTH) or DEFAULT_USER,
            title=self.fits("task", place, title, one_line(title, TITLE_LENGTH) or "(no title)"),
            project=one_line(text(row.get("project")), PROJECT_LENGTH) or None,
            priority=_priority(row["priority"]),
            energy=energy,
            time_estimate=one_line(text(row["time_estimate"]), TIME_ESTIMATE_LENGTH) or DEFAULT_TIME_ESTIMATE,
            notes=notes[:NOTES_LENGTH] or None,
            due_date=due,
            completed_at=(completed_at or times["updated_at"] or 1) if is_done else None,
            **times,
        )


def _priority(value: Any) -> int:
    if not isinstance(value, int):
        return DEFAULT_PRIORITY
    return min(max(value, PRIORITIES[0]), PRIORITIES[1])
