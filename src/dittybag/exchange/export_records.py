"""Records: things as one line of JSON each, for people to read and for us to read again."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from dittybag.domain.changes import KINDS, Action, Change, Kind
from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Argument, Prompt
from dittybag.domain.resources import Resource, decode_base64
from dittybag.domain.tasks import (
    DEFAULT_ENERGY,
    DEFAULT_PRIORITY,
    DEFAULT_TIME_ESTIMATE,
    DEFAULT_USER,
    Task,
)
from dittybag.exchange.file_times import moment, precise

#: No number in a file is larger: beyond it, not every program reads them right.
MAX_NUMBER: Final = 2**53 - 1


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A line. What is not known is left out."""


class ProjectRecord(Record, frozen=True, kw_only=True):
    """A project."""

    id: int = 0
    name: str = ""
    created_at: str = ""
    updated_at: str = ""
    version: int = 1


class PromptRecord(Record, frozen=True, kw_only=True):
    """A prompt."""

    number: int = 0
    id: str = ""
    #: By name; nothing for the default project.
    project: str = ""
    name: str = ""
    title: str = ""
    description: str | None = None
    tags: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    version: int = 1
    content: str = ""


class ResourceRecord(Record, frozen=True, kw_only=True):
    """A resource."""

    number: int = 0
    id: str = ""
    project: str = ""
    name: str = ""
    uri: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str = ""
    created_at: str = ""
    updated_at: str = ""
    version: int = 1
    text: str | None = None
    base64: str | None = None


class TaskRecord(Record, frozen=True, kw_only=True):
    """A task."""

    id: int = 0
    user: str = DEFAULT_USER
    title: str = ""
    project: str | None = None
    priority: int = DEFAULT_PRIORITY
    energy: str = DEFAULT_ENERGY
    time_estimate: str = DEFAULT_TIME_ESTIMATE
    due_date: str | None = None
    completed_at: str | None = None
    created_at: str = ""
    updated_at: str = ""
    version: int = 1
    notes: str | None = None


class ContentRecord(Record, frozen=True, kw_only=True):
    """A content that a resource had in the past."""

    text: str | None = None
    base64: str | None = None


class ChangeRecord(Record, frozen=True, kw_only=True):
    """A change. What was there before is what the change before it left, and is not said again."""

    seq: int
    batch: int = 0
    at: int
    actor: str
    action: Action
    kind: Kind
    entity: str
    after: Any = None


class ChangeLine(ChangeRecord, frozen=True, kw_only=True):
    """A change whose thing has not been looked at."""

    after: Raw = Raw(b"null")


def _times(thing: Project | Prompt | Resource | Task) -> dict[str, Any]:
    return {
        "created_at": precise(thing.created_at),
        "updated_at": precise(thing.updated_at),
        "version": thing.version,
    }


def _moments(record: ProjectRecord | PromptRecord | ResourceRecord | TaskRecord) -> dict[str, Any]:
    created = _moment("created_at", record.created_at)
    return {
        "created_at": created,
        "updated_at": _moment("updated_at", record.updated_at) or created,
        "version": record.version,
    }


def _moment(field: str, text: str) -> int:
    """Raises `Invalid`."""
    if not text:
        return 0
    found = moment(text)
    if found is None:
        raise Invalid([Problem(field, f"{field} must be a time like 2026-03-01T17:00:00.000000Z")])
    return found


def project_record(project: Project) -> ProjectRecord:
    return ProjectRecord(id=project.id, name=project.name, **_times(project))


def project_of(record: ProjectRecord) -> Project:
    return Project(id=record.id, name=record.name, **_moments(record))


def prompt_record(prompt: Prompt, project: str) -> PromptRecord:
    return PromptRecord(
        number=prompt.number,
        id=prompt.id,
        project=project,
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        tags=prompt.tags,
        arguments=prompt.arguments,
        content=prompt.content,
        **_times(prompt),
    )


def prompt_of(record: PromptRecord, project: int) -> Prompt:
    return Prompt(
        number=record.number,
        id=record.id,
        project=project,
        name=record.name,
        title=record.title,
        description=record.description,
        tags=record.tags,
        arguments=record.arguments,
        content=record.content,
        **_moments(record),
    )


def resource_record(resource: Resource, content: bytes, project: str) -> ResourceRecord:
    return ResourceRecord(
        number=resource.number,
        id=resource.id,
        project=project,
        name=resource.name,
        uri=resource.uri,
        title=resource.title,
        description=resource.description,
        mime_type=resource.mime_type,
        **written_content(content, text=resource.is_text),
        **_times(resource),
    )


def resource_of(record: ResourceRecord, project: int) -> tuple[Resource, bytes]:
    """Raises `Invalid`."""
    content = read_content(record.text, record.base64)
    resource = Resource(
        number=record.number,
        id=record.id,
        project=project,
        name=record.name,
        uri=record.uri,
        title=record.title,
        description=record.description,
        mime_type=record.mime_type,
        sha256="",
        size=len(content),
        **_moments(record),
    )
    return resource, content


def task_record(task: Task) -> TaskRecord:
    return TaskRecord(
        id=task.id,
        user=task.user,
        title=task.title,
        project=task.project,
        priority=task.priority,
        energy=task.energy,
        time_estimate=task.time_estimate,
        notes=task.notes,
        due_date=task.due_date,
        completed_at=None if task.completed_at is None else precise(task.completed_at),
        **_times(task),
    )


def task_of(record: TaskRecord) -> Task:
    """Raises `Invalid`."""
    return Task(
        id=record.id,
        user=record.user,
        title=record.title,
        project=record.project,
        priority=record.priority,
        energy=record.energy,
        time_estimate=record.time_estimate,
        notes=record.notes,
        due_date=record.due_date,
        completed_at=_moment("completed_at", record.completed_at) if record.completed_at else None,
        **_moments(record),
    )


def written_content(content: bytes, *, text: bool = True) -> dict[str, Any]:
    """A content as text, if it is meant to be and is text, or else in base64."""
    if text:
        try:
            return {"text": content.decode()}
        except UnicodeDecodeError:
            pass
    return {"base64": b64encode(content).decode()}


def read_content(text: str | None, base64: str | None) -> bytes:
    """Raises `Invalid`."""
    if text is not None and base64 is None:
        return text.encode()
    if base64 is None or text is not None:
        raise Invalid([Problem("content", "either text or base64 must be given")])
    try:
        return decode_base64(base64)
    except ValueError as error:
        raise Invalid([Problem("base64", "base64 must be valid base64")]) from error


def change_record(change: Change) -> ChangeRecord:
    return ChangeRecord(
        seq=change.seq,
        batch=0 if change.batch == change.seq else change.batch,
        at=change.at,
        actor=change.actor,
        action=change.action,
        kind=change.kind,
        entity=change.entity,
        after=change.after,
    )


_things: Final[Mapping[Kind, msgspec.json.Decoder[Any]]] = {
    kind: msgspec.json.Decoder(struct | None) for kind, struct in KINDS.items()
}


def change_of(line: ChangeLine) -> Change:
    """Raises `DecodeError`."""
    return Change(
        seq=line.seq,
        batch=line.batch or line.seq,
        at=line.at,
        actor=line.actor,
        action=line.action,
        kind=line.kind,
        entity=line.entity,
        project=None,
        before=None,
        after=_things[line.kind].decode(line.after),
    )
