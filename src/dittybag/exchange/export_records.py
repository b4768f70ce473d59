"""Records of the export formats: the fields of each entity as they are written to files."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from dittybag.domain.changes import Action, Change, Interface, Purged
from dittybag.domain.entities import ENTITY_TYPES, Kind
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
from dittybag.exchange.file_times import format_time, parse_time

#: The largest number in a file. Programs that use floating point cannot read larger ones exactly.
MAX_NUMBER: Final = 2**53 - 1


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One record. Fields with default values are omitted."""


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
    #: The name of the project; empty for the default project.
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
    """An earlier content of a resource."""

    text: str | None = None
    base64: str | None = None


class ChangeRecord(Record, frozen=True, kw_only=True):
    """A change, without the state before it, which follows from the earlier changes."""

    seq: int
    batch: int = 0
    at: int
    actor: str
    action: Action
    kind: Kind
    entity: str
    #: Only for a purged change: otherwise, the entity has it.
    project: int | None = None
    after: Any = None
    interface: Interface | None = None


class RawChangeRecord(ChangeRecord, frozen=True, kw_only=True):
    """A change whose entity is not decoded yet."""

    after: Raw = Raw(b"null")


def _time_fields(entity: Project | Prompt | Resource | Task) -> dict[str, Any]:
    return {
        "created_at": format_time(entity.created_at),
        "updated_at": format_time(entity.updated_at),
        "version": entity.version,
    }


def _parse_time_fields(record: ProjectRecord | PromptRecord | ResourceRecord | TaskRecord) -> dict[str, Any]:
    created = _parse_time_field("created_at", record.created_at)
    return {
        "created_at": created,
        "updated_at": _parse_time_field("updated_at", record.updated_at) or created,
        "version": record.version,
    }


def _parse_time_field(field: str, text: str) -> int:
    """Return a time in microseconds; 0 if the field is empty. Raises `Invalid`."""
    if not text:
        return 0
    time = parse_time(text)
    if time is None:
        raise Invalid([Problem(field, f"{field} must be a time like 2026-03-01T17:00:00.000000Z")])
    return time


def project_record(project: Project) -> ProjectRecord:
    return ProjectRecord(id=project.id, name=project.name, **_time_fields(project))


def to_project(record: ProjectRecord) -> Project:
    return Project(id=record.id, name=record.name, **_parse_time_fields(record))


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
        **_time_fields(prompt),
    )


def to_prompt(record: PromptRecord, project: int) -> Prompt:
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
        **_parse_time_fields(record),
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
        **encode_content(content, text=resource.is_text),
        **_time_fields(resource),
    )


def to_resource(record: ResourceRecord, project: int) -> tuple[Resource, bytes]:
    """Convert a record to a resource and its content. Raises `Invalid`."""
    content = decode_content(record.text, record.base64)
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
        **_parse_time_fields(record),
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
        completed_at=None if task.completed_at is None else format_time(task.completed_at),
        **_time_fields(task),
    )


def to_task(record: TaskRecord) -> Task:
    """Convert a record to a task. Raises `Invalid`."""
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
        completed_at=_parse_time_field("completed_at", record.completed_at) if record.completed_at else None,
        **_parse_time_fields(record),
    )


def encode_content(content: bytes, *, text: bool = True) -> dict[str, Any]:
    """Return a content as `text` if `text` is set and it is UTF-8, else as `base64`."""
    if text:
        try:
            return {"text": content.decode()}
        except UnicodeDecodeError:
            pass
    return {"base64": b64encode(content).decode()}


def decode_content(text: str | None, base64: str | None) -> bytes:
    """Return the bytes of a content. Raises `Invalid`."""
    if text is not None and base64 is None:
        return text.encode()
    if base64 is None or text is not None:
        raise Invalid([Problem("content", "exactly one of text and base64 is required")])
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
        project=None if change.purged is None else change.project,
        after=change.after,
        interface=change.interface,
    )


_ENTITY_DECODERS: Final[Mapping[Kind, msgspec.json.Decoder[Any]]] = {
    kind: msgspec.json.Decoder(entity_type.struct | None) for kind, entity_type in ENTITY_TYPES.items()
}


class _StateTag(Struct):
    """The field that distinguishes a purged state from an entity."""

    state: Any = None


_decode_tag: Final = msgspec.json.Decoder(_StateTag).decode
_decode_purged: Final = msgspec.json.Decoder(Purged).decode


def to_change(record: RawChangeRecord) -> Change:
    """Convert a record to a change. Raises `DecodeError`."""
    return Change(
        seq=record.seq,
        batch=record.batch or record.seq,
        at=record.at,
        actor=record.actor,
        action=record.action,
        kind=record.kind,
        entity=record.entity,
        project=record.project,
        before=None,
        after=_decode_state(record),
        interface=record.interface,
    )


def _decode_state(record: RawChangeRecord) -> Any:
    # Decoding the tag of every state would take longer than this.
    if b'"purged"' in bytes(record.after) and _decode_tag(record.after).state == "purged":
        return _decode_purged(record.after)
    return _ENTITY_DECODERS[record.kind].decode(record.after)
