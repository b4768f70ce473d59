"""Changes: the log of all writes, with the state before and after each."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task

Entity = Project | Prompt | Resource | Task
Kind = Literal["project", "prompt", "resource", "task"]
Action = Literal["create", "update", "delete", "restore"]

KINDS: dict[Kind, type[Entity]] = {
    "project": Project,
    "prompt": Prompt,
    "resource": Resource,
    "task": Task,
}


class Change(Struct, frozen=True, kw_only=True):
    """One entry of the change log."""

    seq: int
    #: The `seq` of the first change of the same use case. A batch is undone as a whole.
    batch: int
    at: int
    actor: str
    action: Action
    kind: Kind
    #: The id of the changed entity.
    entity: str
    project: int | None
    before: Entity | None
    after: Entity | None


class ChangeNotification(Struct, frozen=True):
    """What caches and subscribers need to know about a change."""

    kind: Kind
    project: int | None
    #: Resources only: the URIs before and after the change.
    uris: tuple[str, ...] = ()
    #: Whether lists changed, not only the content behind an entry.
    listed: bool = True


_KIND_OF: dict[type[Entity], Kind] = {struct: kind for kind, struct in KINDS.items()}


def kind_of(entity: Entity) -> Kind:
    """Return the kind of an entity."""
    return _KIND_OF[type(entity)]


def key_of(entity: Entity) -> str:
    """Return the id of an entity as a string, as in the change log."""
    return str(entity.id)


def label_of(entity: Entity) -> str:
    """Return the name or title of an entity for people."""
    if isinstance(entity, Prompt):
        return entity.label
    return entity.title if isinstance(entity, Task) else entity.name


def project_of(entity: Entity) -> int | None:
    """Return the project of an entity. Tasks have none: their project is free text."""
    if isinstance(entity, Project):
        return entity.id
    return None if isinstance(entity, Task) else entity.project
