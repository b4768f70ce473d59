"""Records of the export formats: the fields of each entity as they are written to files."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import FieldInfo, asdict

from dittybag.domain.entities import ENTITY_TYPES, Entity, EntityType, Kind, kind_of
from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.resources import Resource, decode_base64
from dittybag.domain.tasks import DEFAULT_STATUS, DEFAULT_USER, Comment, Task
from dittybag.exchange.file_times import format_time, parse_time
from dittybag.exchange.import_sources import SourceEntity, SourceEntry

T = TypeVar("T")

#: Kinds whose entities always belong to a project.
NUMBERED_KINDS: Final[tuple[Kind, ...]] = tuple(
    kind for kind, described in ENTITY_TYPES.items() if described.key == "number"
)
#: The field with the text of an entity. In a Markdown file, it follows the front matter.
BODY_FIELDS: Final[Mapping[Kind, str]] = {"prompt": "content", "task": "notes"}

_TIMES: Final = ("created_at", "updated_at", "completed_at")
#: Fields of a resource that follow from its content, which a record has instead.
_FROM_CONTENT: Final = ("sha256", "size")
#: Fields that an entity gets when it is stored, so that equal workspaces give equal files.
_ASSIGNED: Final[Mapping[Kind, tuple[str, ...]]] = {
    "project": ("id", "created_at", "updated_at", "version"),
    "prompt": ("number", "version"),
    "resource": ("number", "version"),
    "task": ("version",),
}


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One record. Fields with default values are omitted."""


class ContentRecord(Record, frozen=True, kw_only=True):
    """A content of a resource: one of the two fields."""

    text: str | None = None
    base64: str | None = None


class CommentRecord(Record, frozen=True, kw_only=True):
    """A comment on a task."""

    at: str
    author: str
    text: str


def _record_type(described: EntityType) -> type[Struct]:
    """Derive the record of an entity: its fields, and at the end its text or the content of a resource.

    Times are written in ISO 8601, and the project is written by its name, empty for the default project. A
    task names its project anyway, so its record only says whether it is shared with the project's members.
    """
    given = {field.name: field for field in msgspec.structs.fields(described.struct)}
    order = [name for name in given if name not in (*_FROM_CONTENT, *_ASSIGNED[described.kind])]
    if (body := BODY_FIELDS.get(described.kind)) is not None:
        order.remove(body)
        order.append(body)
    fields = [
        ("shared", bool, False)
        if name == "project_id"
        else (name, *_record_field(described.kind, given[name]))
        for name in order
    ]
    if described.kind == "resource":
        fields += [(name, str | None, None) for name in ContentRecord.__struct_fields__]
    return msgspec.defstruct(
        f"{described.kind.capitalize()}Record", fields, bases=(Record,), module=__name__, kw_only=True
    )


def _record_field(kind: Kind, field: FieldInfo) -> tuple[Any, Any]:
    """Return the type and the default value of a field of a record."""
    if field.name == "user":
        return str, DEFAULT_USER
    if field.name == "comments":
        return tuple[CommentRecord, ...], ()
    if field.name in _TIMES or (field.name == "project" and kind in NUMBERED_KINDS):
        return (str, "") if field.required else (str | None, None)
    return field.type, field.type() if field.required else field.default


RECORD_TYPES: Final[Mapping[Kind, type[Struct]]] = {
    kind: _record_type(described) for kind, described in ENTITY_TYPES.items()
}


def to_record(entity: Entity, project: str = "", content: bytes | None = None) -> Struct:
    """Convert an entity to a record.

    `project`: the name of the project of a prompt or resource. `content`: the content of a resource; `None`
    if it is written to another file.
    """
    kind = kind_of(entity)
    values = {name: value for name, value in asdict(entity).items() if name not in _ASSIGNED[kind]}
    for name in _TIMES:
        if values.get(name) is not None:
            values[name] = format_time(values[name])
    if kind in NUMBERED_KINDS:
        values["project"] = project
    if isinstance(entity, Resource):
        for name in _FROM_CONTENT:
            del values[name]
        if content is not None:
            values |= encode_content(content, text=entity.is_text)
    if isinstance(entity, Task):
        values["shared"] = values.pop("project_id") is not None
        values["comments"] = tuple(
            CommentRecord(at=format_time(item.at), author=item.author, text=item.text)
            for item in entity.comments
        )
    return RECORD_TYPES[kind](**values)


def to_entity(kind: Kind, record: Struct, project: int = 0) -> SourceEntity:
    """Convert a record to an entity, with the content of a resource. Raises `Invalid`.

    `project`: the id of the project, or of that of a prompt, a resource or a shared task, in this source.
    """
    values, content = asdict(record), b""
    if kind == "resource":
        content = decode_content(record)
        del values["text"], values["base64"]
        values |= {"sha256": "", "size": len(content)}
    if kind == "project":
        values["id"] = project
    if kind in NUMBERED_KINDS:
        values |= {"project": project, "number": 0}
    if kind == "task":
        values["project_id"] = project if values.pop("shared") else None
        values["comments"] = tuple(map(_to_comment, values["comments"]))
        _require_status(values["status"], values["completed_at"])
    for name in _TIMES:
        if name in values:
            values[name] = _parse_time_field(name, values[name])
    created = values["created_at"] = values.get("created_at") or 0
    values["updated_at"] = values.get("updated_at") or created
    return SourceEntity(ENTITY_TYPES[kind].struct(**values), content)


def _to_comment(record: CommentRecord) -> Comment:
    return Comment(_parse_time_field("at", record.at) or 0, record.author, record.text)


def _require_status(status: str, completed_at: str | None) -> None:
    """Raise `Invalid` if the fields contradict each other. Without a status, it follows."""
    if status != DEFAULT_STATUS and (status == "done") != bool(completed_at):
        problem = "status must be done if completed_at is set, and only then"
        raise Invalid([Problem("status", problem)])


def named_project(kind: Kind, record: Any, ids: Mapping[str, int]) -> int:
    """Return the id of the project that a prompt, a resource or a shared task names, else 0.

    `ids`: by name. Raises `Invalid`.
    """
    if kind not in NUMBERED_KINDS and not (kind == "task" and record.shared):
        return 0
    if kind == "task" and not record.project:
        raise Invalid([Problem("project", "a shared task must name its project")])
    if record.project not in ids:
        problem = f"project '{record.project[:100]}' is not listed in projects"
        raise Invalid([Problem("project", problem)])
    return ids[record.project]


def _parse_time_field(field: str, text: str | None) -> int | None:
    """Return a time in microseconds; `None` if the field is empty. Raises `Invalid`."""
    if not text:
        return None
    time = parse_time(text)
    if time is None:
        raise Invalid([Problem(field, f"{field} must be a time like 2026-03-01T17:00:00.000000Z")])
    return time


def encode_content(content: bytes, *, text: bool = True) -> dict[str, Any]:
    """Return a content as `text` if `text` is set and it is UTF-8, else as `base64`."""
    if text:
        try:
            return {"text": content.decode()}
        except UnicodeDecodeError:
            pass
    return {"base64": b64encode(content).decode()}


def decode_content(record: Any) -> bytes:
    """Return the bytes of a content: the `text` or the `base64` of a record. Raises `Invalid`."""
    if (record.text is None) == (record.base64 is None):
        raise Invalid([Problem("content", "exactly one of text and base64 is required")])
    if record.text is not None:
        return bytes(record.text.encode())
    try:
        return decode_base64(record.base64)
    except ValueError as error:
        raise Invalid([Problem("base64", "base64 must be valid base64")]) from error


def decode_entry(location: str, decode: Callable[[Any], T], item: bytes | Raw) -> SourceEntry[T]:
    """Decode an item of an export, or return the problem with it."""
    try:
        return location, decode(item)
    except (msgspec.DecodeError, UnicodeError) as error:
        return location, Problem("", str(error))
    except RecursionError:
        return location, Problem("", "too deeply nested")
    except Invalid as error:
        return location, error.problems[0]
