"""Descriptions of projects, prompts, resources and tasks: the one list of the fields of each.

Storage, export files, JSON output, diffs, forms, undo and import are derived from these descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from dittybag.domain import prompts, resources, tasks
from dittybag.domain.errors import Conflict, NameTaken, TitleTaken, UriTaken
from dittybag.domain.names import NAME_LENGTH
from dittybag.domain.projects import NAME_LENGTH as PROJECT_NAME_LENGTH
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.domain.times import iso

Entity = Project | Prompt | Resource | Task
Kind = Literal["project", "prompt", "resource", "task"]

#: How a value is written: a line, text with several lines, a number, a list of words or of numbers, JSON,
#: comments, a time in microseconds since 1970, or the SHA-256 of a content that is stored separately.
FieldFormat = Literal["line", "text", "number", "list", "numbers", "json", "comments", "time", "content"]
#: The formats of fields that are stored as a JSON array.
JSON_FORMATS: Final[frozenset[FieldFormat]] = frozenset(("numbers", "json", "comments"))


class Field(Struct, frozen=True):
    """A field that people edit."""

    name: str
    #: What people call it, as in `Time estimate`.
    label: str
    format: FieldFormat = "line"
    #: In characters; `None` if the text is limited in another way, or not a text.
    max_length: int | None = None
    #: Whether it may be missing. An empty text is stored as `None`.
    optional: bool = False

    def text(self, entity: Entity | None) -> str:
        """Return the value of the field as text; empty if there is none. For a content, its SHA-256."""
        value: Any = None if entity is None else getattr(entity, self.name)
        if value is None or value == ():
            return ""
        if self.format == "time":
            return iso(value)
        if self.format in ("list", "numbers"):
            return ", ".join(map(str, value))
        if self.format == "comments":
            return "\n\n".join(f"{iso(item.at)} {item.author}:\n{item.text}" for item in value)
        return msgspec.json.encode(value).decode() if self.format == "json" else str(value)


class EntityType(Struct, frozen=True, kw_only=True):
    """What all entities of a kind have in common."""

    kind: Kind
    struct: type[Any]
    table: str
    #: The column with the number of a row. A new row gets its number from the store.
    key: str
    #: The fields that people edit, in the order of forms. These are shown in diffs and compared by an import.
    edited: tuple[Field, ...]
    #: Fields whose values follow from edited fields.
    derived: tuple[str, ...] = ()
    #: Fields whose values are unique within the project or, for projects, within the workspace. Each has the
    #: error for a value that is taken and the name of the project.
    unique: Mapping[str, Callable[[str, Any], Conflict]] = {}
    #: Fields that are not shown: they locate the entity.
    hidden: frozenset[str] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        """All fields, as columns of the table and in the change log."""
        return self.struct.__struct_fields__  # type: ignore[no-any-return]

    def field(self, name: str) -> Field:
        """Return an edited field by its name."""
        return next(field for field in self.edited if field.name == name)

    def edited_values(self, entity: Any) -> dict[str, Any]:
        """Return the values that people edit, and those that follow from them."""
        return {
            name: getattr(entity, name) for name in (*(field.name for field in self.edited), *self.derived)
        }

    def normalise(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return valid fields as they are stored."""
        optional = _optional_fields(self.kind)
        stored = {name: value or None if name in optional else value for name, value in fields.items()}
        if not stored.get("time_estimate", True):
            # An empty one is absent.
            del stored["time_estimate"]
        if "tags" in fields:
            stored["tags"] = prompts.normalise_tags(fields["tags"])
        return stored

    def changed_fields(self, before: Entity | None, after: Entity | None) -> list[Field]:
        """Return the edited fields that differ between two states; all that have a value if one is `None`."""
        return [field for field in self.edited if field.text(before) != field.text(after)]


_PROJECT: Final = EntityType(
    kind="project",
    struct=Project,
    table="projects",
    key="id",
    edited=(Field("name", "Name", max_length=PROJECT_NAME_LENGTH), Field("pins", "Pinned", "list")),
    unique={"name": partial(NameTaken, "project")},
)
_PROMPT: Final = EntityType(
    kind="prompt",
    struct=Prompt,
    table="prompts",
    key="number",
    edited=(
        Field("title", "Title", max_length=prompts.TITLE_LENGTH),
        Field("name", "Name", max_length=NAME_LENGTH),
        Field("description", "Description", "text", prompts.DESCRIPTION_LENGTH, optional=True),
        Field("tags", "Tags", "list"),
        Field("content", "Content", "text"),
        Field("arguments", "Arguments", "json"),
    ),
    unique={"name": partial(NameTaken, "prompt"), "title": TitleTaken},
    hidden=frozenset(("number", "project")),
)
_RESOURCE: Final = EntityType(
    kind="resource",
    struct=Resource,
    table="resources",
    key="number",
    edited=(
        Field("name", "Name", max_length=NAME_LENGTH),
        Field("title", "Title", max_length=prompts.TITLE_LENGTH, optional=True),
        Field("uri", "URI", max_length=resources.URI_LENGTH),
        Field("mime_type", "Type"),
        Field("description", "Description", "text", prompts.DESCRIPTION_LENGTH, optional=True),
        Field("sha256", "Content", "content"),
    ),
    derived=("size",),
    unique={"name": partial(NameTaken, "resource"), "uri": UriTaken},
    hidden=frozenset(("number", "project")),
)
_TASK: Final = EntityType(
    kind="task",
    struct=Task,
    table="tasks",
    key="id",
    edited=(
        Field("title", "Title", max_length=tasks.TITLE_LENGTH),
        Field("project", "Project", max_length=tasks.PROJECT_LENGTH, optional=True),
        Field("priority", "Priority", "number"),
        Field("energy", "Energy"),
        Field("time_estimate", "Time estimate", max_length=tasks.TIME_ESTIMATE_LENGTH),
        Field("due_date", "Due", optional=True),
        Field("status", "Status"),
        Field("completed_at", "Done", "time"),
        Field("assignee", "Assignee", max_length=tasks.ASSIGNEE_LENGTH, optional=True),
        Field("labels", "Labels", "list"),
        Field("parent", "Part of", "number"),
        Field("blocked_by", "Blocked by", "numbers"),
        Field("links", "Links", "list"),
        Field("notes", "Notes", "text", optional=True),
        Field("comments", "Comments", "comments"),
    ),
    hidden=frozenset(("user", "project_id")),
)

ENTITY_TYPES: Final[Mapping[Kind, EntityType]] = {
    described.kind: described for described in (_PROJECT, _PROMPT, _RESOURCE, _TASK)
}


@cache
def _optional_fields(kind: Kind) -> frozenset[str]:
    return frozenset(field.name for field in ENTITY_TYPES[kind].edited if field.optional)


_TYPES_BY_STRUCT: Final[Mapping[type, EntityType]] = {
    described.struct: described for described in ENTITY_TYPES.values()
}


def type_of(entity: Entity) -> EntityType:
    """Return the description of an entity."""
    return _TYPES_BY_STRUCT[type(entity)]


def kind_of(entity: Entity) -> Kind:
    """Return the kind of an entity."""
    return type_of(entity).kind


def key_of(entity: Entity) -> str:
    """Return the id of an entity as a string, as in the change log."""
    return str(entity.id)


def label_of(entity: Entity) -> str:
    """Return the name or title of an entity for people."""
    return entity.label if isinstance(entity, Prompt | Task) else entity.name


def project_of(entity: Entity) -> int | None:
    """Return the id of the project of an entity; `None` for a task that is its user's alone."""
    if isinstance(entity, Project):
        return entity.id
    return entity.project_id if isinstance(entity, Task) else entity.project


def to_data(entity: Entity) -> dict[str, Any]:
    """Return the fields of an entity for JSON output."""
    hidden = type_of(entity).hidden
    return {name: value for name, value in struct_data(entity).items() if name not in hidden}


def struct_data(value: Struct) -> dict[str, Any]:
    """Return all fields of a struct for JSON output, with times in ISO 8601."""
    return {name: _json_value(name, item) for name, item in msgspec.structs.asdict(value).items()}


def _json_value(name: str, value: Any) -> Any:
    if name.endswith("_at") and value is not None:
        return iso(value)
    if name == "comments":
        return [struct_data(comment) | {"at": iso(comment.at)} for comment in value]
    # Encoding an argument would leave out its defaults.
    return [msgspec.structs.asdict(item) for item in value] if name == "arguments" else value
