"""Changes: the log of all writes, with the state before and after each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.entities import JSON_FORMATS, Entity, Kind, label_of, type_of
from dittybag.domain.errors import ChangePurged
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task

Action = Literal["create", "update", "delete", "restore"]
#: How a change was made: in the web UI, by a command, or by a tool of an MCP server.
Interface = Literal["web", "cli", "mcp"]
#: What undoing a change does to its entity.
UndoEffect = Literal["delete", "restore", "revert"]

#: The label of an entity whose content was purged.
PURGED_LABEL: Final = "(purged)"
_PAST_TENSES: Final = {"create": "created", "update": "changed", "delete": "deleted"}


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
    #: `None` for changes from before it was logged, and where it is not known.
    interface: Interface | None = None

    @property
    def state(self) -> Entity | Purged:
        """The state after the change, or before it if the change deleted the entity."""
        state = self.after if self.after is not None else self.before
        assert state is not None
        return state

    @property
    def label(self) -> str:
        """The name or title of the changed entity for people."""
        return PURGED_LABEL if isinstance(self.state, Purged) else label_of(self.state)

    @property
    def verb(self) -> str:
        """What the change did, as in `created`."""
        before, after = self.before, self.after
        if self.action == "restore":
            return "removed" if after is None else "restored" if before is None else "reverted"
        if isinstance(before, Task) and isinstance(after, Task) and before.completed != after.completed:
            return "completed" if after.completed else "reopened"
        return _PAST_TENSES[self.action]

    @property
    def undo_effect(self) -> UndoEffect:
        """What undoing the change does to its entity."""
        if self.before is None:
            return "delete"
        return "restore" if self.after is None else "revert"

    @property
    def purged(self) -> Purged | None:
        """The record of the purge if the state before or after the change was purged."""
        return next((state for state in (self.after, self.before) if isinstance(state, Purged)), None)


class BatchCount(Struct, frozen=True):
    """The number of changes of a batch with the same kind of entity and the same action."""

    batch: int
    kind: Kind
    action: Action
    count: int
    #: The `seq` of the last of them.
    last: int


class SeenActor(Struct, frozen=True):
    """An actor who made changes through an interface."""

    actor: str
    interface: Interface | None
    #: The `seq` and the time of the last of them.
    last: int
    last_at: int


class ChangeNotification(Struct, frozen=True):
    """What caches and subscribers need to know about a change."""

    kind: Kind
    project: int | None
    #: Resources only: the URIs before and after the change.
    uris: tuple[str, ...] = ()
    #: Whether lists changed, not only the content behind an entry.
    listed: bool = True


def undo_effects(changes: Iterable[Change]) -> list[tuple[Change, UndoEffect]]:
    """Return what undoing these changes, newest first, does to each entity, with its oldest change."""
    oldest = {(change.kind, change.entity): change for change in changes}
    return [(change, change.undo_effect) for change in oldest.values()]


def outline(change: Change) -> Change:
    """Return a change without the long texts of its states."""
    return replace(change, before=_without_texts(change.before), after=_without_texts(change.after))


def _without_texts(state: Entity | Purged | None) -> Entity | Purged | None:
    if state is None or isinstance(state, Purged):
        return state
    texts = [
        field.name
        for field in type_of(state).edited
        if field.format == "text" or field.format in JSON_FORMATS
    ]
    return replace(state, **{name: value[:0] for name in texts if (value := getattr(state, name))})


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
