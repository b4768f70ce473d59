"""Changes: the log of all writes, with the state before and after each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

from dittybag.domain.errors import ChangePurged
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task

Entity = Project | Prompt | Resource | Task
Kind = Literal["project", "prompt", "resource", "task"]
Action = Literal["create", "update", "delete", "restore"]

#: The label of an entity whose content was purged.
PURGED_LABEL: Final = "(purged)"

KINDS: dict[Kind, type[Entity]] = {
    "project": Project,
    "prompt": Prompt,
    "resource": Resource,
    "task": Task,
}


class Purged(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="state", tag="purged"):
    """What the change log keeps of a purged state: who purged it and when, but not what it was."""

    by: str
    at: int
    version: int
    #: Prompts and resources only: the `seq` of the change that created the entity.
    number: int = 0
    #: Tasks only: the user who can see the change.
    user: str = ""


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
    before: Entity | Purged | None
    after: Entity | Purged | None

    @property
    def state(self) -> Entity | Purged:
        """The state after the change, or before it if the change deleted the entity."""
        state = self.after if self.after is not None else self.before
        assert state is not None
        return state

    @property
    def purged(self) -> Purged | None:
        """The record of the purge if the state before or after the change was purged."""
        return next((state for state in (self.after, self.before) if isinstance(state, Purged)), None)


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


def label_of(entity: Entity | Purged) -> str:
    """Return the name or title of an entity for people."""
    if isinstance(entity, Purged):
        return PURGED_LABEL
    if isinstance(entity, Prompt):
        return entity.label
    return entity.title if isinstance(entity, Task) else entity.name


def project_of(entity: Entity) -> int | None:
    """Return the project of an entity. Tasks have none: their project is free text."""
    if isinstance(entity, Project):
        return entity.id
    return None if isinstance(entity, Task) else entity.project


def purged_state(state: Entity, *, by: str, at: int) -> Purged:
    """Return what the change log keeps of a state."""
    number = state.number if isinstance(state, Prompt | Resource) else 0
    user = state.user if isinstance(state, Task) else ""
    return Purged(by=by, at=at, version=state.version, number=number, user=user)


def require_content(changes: Iterable[Change]) -> None:
    """Raise `ChangePurged` if the content of a change was purged."""
    for change in changes:
        if (purged := change.purged) is not None:
            raise ChangePurged(change.seq, purged.by, purged.at)
