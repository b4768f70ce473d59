"""Changes: the log of every write, with what was there before and after."""

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
    """One row of the log."""

    seq: int
    #: The first change of the same use case: what was done together is undone together.
    batch: int
    at: int
    actor: str
    action: Action
    kind: Kind
    #: The id of what was changed.
    entity: str
    project: int | None
    before: Entity | None
    after: Entity | None


class ChangeNotification(Struct, frozen=True):
    """That something has changed: as much as caches and subscribers need to know."""

    kind: Kind
    project: int | None
    #: Resources only: the URIs it had before and has now.
    uris: tuple[str, ...] = ()
    #: Whether lists look different now, and not just what is behind them.
    listed: bool = True


_KIND_OF: dict[type[Entity], Kind] = {struct: kind for kind, struct in KINDS.items()}


def kind_of(entity: Entity) -> Kind:
    """Which kind of thing this is."""
    return _KIND_OF[type(entity)]


def key_of(entity: Entity) -> str:
    """The id of a thing, as the log has it."""
    return str(entity.id)


def label_of(entity: Entity) -> str:
    """What people call a thing."""
    return entity.title if isinstance(entity, Task | Prompt) else entity.name


def project_of(entity: Entity) -> int | None:
    """The project a thing is in. Tasks name theirs freely, and are in none."""
    if isinstance(entity, Project):
        return entity.id
    return None if isinstance(entity, Task) else entity.project
