"""Use cases for purging: removing content for good, with every version in the change log."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Change, Purged, purged_state
from dittybag.domain.entities import Entity, Kind
from dittybag.domain.errors import (
    ChangePurged,
    NotAllowed,
    NothingToPurge,
    ProjectProtected,
    PurgeUnfinished,
    StorageError,
)
from dittybag.domain.ports import PurgedStates, Store, Transaction
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import Resource
from dittybag.services.caller import Caller, require_write_scope, writable_project
from dittybag.services.history_service import is_visible, iterate_changes

EntityKey: TypeAlias = tuple[Kind, str]

#: What belongs to a project and is purged with it.
_CONTENT_KINDS: Final[tuple[Kind, ...]] = ("prompt", "resource", "task")


class Selection(Struct, frozen=True):
    """What to purge: entities as a whole, or only their history."""

    entities: tuple[EntityKey, ...]
    #: Keep the current versions, and purge all earlier ones.
    keep_current: bool = False


class PurgeItem(Struct, frozen=True):
    """An entity of which something is purged."""

    kind: Kind
    id: str
    #: Its last name or title.
    label: str
    project: int | None
    #: Whether the entity itself is deleted, not only its history.
    deletes: bool
    #: The number of purged versions.
    versions: int


class PurgeService:
    """Removes content for good.

    A purge has two steps. The first removes the content from the tables and the change log, in transactions;
    the second, `finish`, removes what is left of it in free pages. An interruption between them is recorded.
    Callers other than the owner of the machine need the admin scope, and can purge what they can change.
    """

    def __init__(self, store: Store) -> None:
        #: Without a viewer: contents are shared by projects. Every use case checks the caller's permissions.
        self._store = store

    async def plan(self, caller: Caller, selection: Selection) -> list[PurgeItem]:
        """Return what would be purged. Raises `NothingToPurge`, `ChangePurged` and `NotAllowed`."""
        _require_admin(caller)
        purge = partial(_purge, caller=caller, selection=selection, dry_run=True)
        return await self._store.read(purge, slow=True)

    async def run(self, caller: Caller, selection: Selection) -> list[PurgeItem]:
        """Purge the selection and return what was purged.

        Raises the same as `plan`, and `PurgeUnfinished` if content may be left in free pages.
        """
        _require_admin(caller)
        purge = partial(_purge, caller=caller, selection=selection, dry_run=False)
        items = await self._store.write(purge, actor=caller.actor, interface=caller.interface)
        await self.finish()
        return items

    async def is_unfinished(self) -> bool:
        """Return whether purged content may still be in free pages."""
        return await self._store.read(lambda transaction: transaction.pending_purge()) is not None

    async def finish(self) -> bool:
        """Remove what purges have left in the store. Returns whether there was anything to do.

        Raises `PurgeUnfinished`.
        """
        number = await self._store.read(lambda transaction: transaction.pending_purge())
        if number is None:
            return False
        try:
            await self._store.write(lambda transaction: transaction.delete_unused_contents(), actor="")
            await self._store.scrub()
            await self._store.write(lambda transaction: transaction.complete_purges(number), actor="")
        except StorageError as error:
            raise PurgeUnfinished(str(error)) from error
        return True


class _Collector:
    """Collects the states to purge from changes, which are added newest first for each entity."""

    def __init__(self, caller: Caller, selection: Selection) -> None:
        self._actor = caller.actor
        self._keep_current = selection.keep_current
        #: The entities of which a change was added.
        self._seen: set[EntityKey] = set()
        self._items: dict[EntityKey, PurgeItem] = {}
        self._uris: dict[str, None] = {}
        #: Pairs of a change and whether its states before and after are purged.
        self.states: list[tuple[Change, bool, bool]] = []

    @property
    def items(self) -> list[PurgeItem]:
        return list(self._items.values())

    def add(self, change: Change, *, deletes: bool = False) -> None:
        """Add a change. `deletes`: the entity itself is deleted by this purge."""
        key = change.kind, change.entity
        is_current = key not in self._seen
        self._seen.add(key)
        before = _has_content(change.before)
        after = _has_content(change.after) and not (is_current and self._keep_current)
        if not before and not after:
            return
        self.states.append((change, before, after))
        label = change.label
        item = self._items.get(key) or PurgeItem(*key, label, change.project, deletes, 0)
        self._items[key] = replace(item, versions=item.versions + after)
        for state in (change.before, change.after):
            if isinstance(state, Resource):
                self._uris[state.uri] = None

    def clear(self) -> None:
        """Forget the collected states, but not the items."""
        self.states = []
        self._uris.clear()

    async def write(self, transaction: Transaction) -> None:
        """Purge the collected states."""

        def purged(state: Any) -> Purged:
            return purged_state(state, by=self._actor, at=transaction.now)

        await transaction.changes.purge_states(
            [
                PurgedStates(
                    change.seq,
                    purged(change.before) if before else None,
                    purged(change.after) if after else None,
                )
                for change, before, after in self.states
            ]
        )
        for uri in self._uris:
            if await transaction.find("resource", uri=uri) is None:
                await transaction.sessions.delete_with(uri.encode())


def _has_content(state: Entity | Purged | None) -> bool:
    return not isinstance(state, Purged | None)


async def _purge(
    transaction: Transaction, caller: Caller, selection: Selection, *, dry_run: bool
) -> list[PurgeItem]:
    await _require_permission(transaction, caller, selection.entities)
    collector = _Collector(caller, selection)
    for key in await _with_contents(transaction, selection):
        entity = None if selection.keep_current else await _current(transaction, key)
        if entity is not None and not dry_run:
            await transaction.write("delete", entity, None)
        async for change in iterate_changes(transaction, _query(key)):
            collector.add(change, deletes=entity is not None)
        if not dry_run:
            await collector.write(transaction)
        collector.clear()
    if not collector.items and not selection.keep_current:
        raise await _nothing_to_purge(transaction, selection.entities[0])
    if not dry_run and collector.items:
        await transaction.record_purge()
    return collector.items


async def _nothing_to_purge(transaction: Transaction, key: EntityKey) -> NothingToPurge | ChangePurged:
    latest = await transaction.changes.latest(*key)
    purged = None if latest is None else latest.purged
    if latest is None or purged is None:
        return NothingToPurge(f"{key[0]}:{key[1]}")
    return ChangePurged(latest.seq, purged.by, purged.at)


def _require_admin(caller: Caller) -> None:
    if caller.principal is not None and not caller.principal.has("admin"):
        raise NotAllowed("Use a token with the admin scope to purge content")


async def _require_permission(transaction: Transaction, caller: Caller, keys: Sequence[EntityKey]) -> None:
    """Raise `NothingToPurge` for entities that do not exist or are hidden from the caller."""
    latest = {key: await transaction.changes.latest(*key) for key in keys}
    if caller.principal is not None:
        if all(_is_private_task(key, change) for key, change in latest.items()):
            require_write_scope(caller)
        else:
            await writable_project(transaction, caller)
    for (kind, entity), change in latest.items():
        if change is None or not is_visible(caller, change):
            raise NothingToPurge(f"{kind}:{entity}")


def _is_private_task(key: EntityKey, latest: Change | None) -> bool:
    return key[0] == "task" and (latest is None or latest.project is None)


async def _with_contents(transaction: Transaction, selection: Selection) -> list[EntityKey]:
    """Return the selected entities, each project after everything that ever belonged to it."""
    found: dict[EntityKey, None] = {}
    for key in selection.entities:
        if key[0] == "project" and not selection.keep_current:
            for content in await _contents(transaction, int(key[1])):
                found[content] = None
        found[key] = None
    return list(found)


async def _contents(transaction: Transaction, project: int) -> dict[EntityKey, None]:
    """Return what belongs to a project, or did until it was deleted."""
    found: dict[EntityKey, None] = {}
    for kind in _CONTENT_KINDS:
        # The query also finds the tasks of users.
        async for change in iterate_changes(transaction, ChangeQuery(project=project, kind=kind)):
            if change.project == project:
                found[kind, change.entity] = None
    for key in [key for key in found if key[0] == "task"]:
        latest = await transaction.changes.latest(*key)
        if latest is None or latest.project != project:
            # It was moved.
            del found[key]
    return found


def _query(key: EntityKey) -> ChangeQuery:
    """Return the query for all changes of an entity."""
    return ChangeQuery(kind=key[0], entity=key[1])


async def _current(transaction: Transaction, key: EntityKey) -> Entity | None:
    kind, text = key
    found: Entity | None = await transaction.find(kind, id=int(text) if kind in ("project", "task") else text)
    if isinstance(found, Project) and found.name == DEFAULT_PROJECT:
        raise ProjectProtected(found.name)
    return found
