"""What all writes of entities have in common: versions and unique fields."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import replace

from dittybag.domain.entities import Entity, Kind, kind_of, type_of
from dittybag.domain.errors import Conflict, Outdated
from dittybag.domain.ports import Transaction, Write
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task

E = TypeVar("E", Project, Prompt, Resource, Task)


def given_fields(values: Struct, *without: str) -> dict[str, Any]:
    """Return the fields of a struct that are set, except `without`."""
    return {
        name: value
        for name in values.__struct_fields__
        if name not in without and (value := getattr(values, name)) is not UNSET
    }


def require_version(entity: Prompt | Resource | Task, version: int | None) -> None:
    """Raise `Outdated` if `version` is given and not the current version."""
    if version is not None and version != entity.version:
        name = entity.title if isinstance(entity, Task) else entity.name
        raise Outdated(kind_of(entity), name, version=entity.version)


def next_version(entity: E, now: int, **fields: Any) -> E:
    """Return an entity with some fields changed now."""
    return replace(entity, **fields, updated_at=now, version=entity.version + 1)


async def create(transaction: Transaction, entity: E) -> E:
    """Store a new entity and return it with its number."""
    stored = await transaction.write("create", None, entity)
    assert stored is not None
    return stored


async def update(transaction: Transaction, entity: E, **fields: Any) -> E:
    """Change some fields of an entity. Returns its next version."""
    changed = next_version(entity, transaction.now, **fields)
    await transaction.write("update", entity, changed)
    return changed


async def delete_all(transaction: Transaction, entities: Iterable[E]) -> list[E]:
    """Delete entities, each once. Returns them."""
    deleted = list({entity.id: entity for entity in entities}.values())
    await transaction.write_all([Write("delete", entity, None) for entity in deleted])
    return deleted


#: Finds out whether an entity of a project has a value of a unique field.
_LOOKUPS: Final[Mapping[tuple[Kind, str], Callable[[Transaction, int, str], Awaitable[object]]]] = {
    ("project", "name"): lambda transaction, _, name: transaction.projects.by_name(name),
    ("prompt", "name"): lambda transaction, project, name: transaction.prompts.name_taken(project, name),
    ("prompt", "title"): lambda transaction, project, title: transaction.prompts.title_taken(project, title),
    ("resource", "name"): lambda transaction, project, name: transaction.resources.by_name(project, name),
    ("resource", "uri"): lambda transaction, project, uri: transaction.resources.by_uri(project, uri),
}


async def is_taken(
    transaction: Transaction, kind: Kind, project: Project | None, field: str, value: str
) -> object:
    """Return something true if an entity of a project, or a project, has a value of a unique field."""
    if transaction.presumes_free:
        return None
    return await _LOOKUPS[kind, field](transaction, 0 if project is None else project.id, value)


async def find_conflicts(
    transaction: Transaction, before: Entity | None, after: Entity, project: Project | None
) -> list[Conflict]:
    """Return a conflict for each new value of a unique field that another entity has."""
    described = type_of(after)
    return [
        error(value, None if project is None else project.name)
        for field, error in described.unique.items()
        if (value := getattr(after, field)) != getattr(before, field, None)
        and await is_taken(transaction, described.kind, project, field, value)
    ]


async def require_unique(
    transaction: Transaction, before: Entity | None, after: Entity, project: Project | None
) -> None:
    """Raise a conflict if another entity has a new value of a unique field."""
    if conflicts := await find_conflicts(transaction, before, after, project):
        raise conflicts[0]
