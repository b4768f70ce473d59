"""Use cases for the change log: browse, undo and restore."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Change, Purged, require_content
from dittybag.domain.entities import Entity, Kind
from dittybag.domain.errors import (
    ChangedMeanwhile,
    ChangeNotFound,
    ChangePurged,
    NameTaken,
    NotAllowed,
    ProjectGone,
    TitleTaken,
    UriTaken,
)
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.services.caller import Caller, ScopedStore, readable_project, writable_project
from dittybag.services.project_service import delete_contents

#: Number of changes of one entity to read at a time.
_PAGE: Final = 100

#: Maximum number of changes that one request scans. A search for text has to decode the changes, so it scans
#: fewer of them, and a maximum number of bytes.
_MAX_SCANNED: Final = 50_000
_MAX_TEXT_SCANNED: Final = 15_000
_MAX_TEXT_BYTES: Final = 16 * 1024 * 1024
#: Maximum size of the changes on a page, which has at least one change.
_MAX_PAGE_BYTES: Final = 8 * 1024 * 1024
#: Actors are collected from this many recent changes.
_RECENT: Final = 5000
_MAX_ACTORS: Final = 100
#: Maximum number of changes of a batch in an undo plan.
_MAX_PLANNED: Final = 200


class ChangePage(Struct, frozen=True):
    """A page of changes, newest first, and where the next pages start."""

    changes: list[Change]
    #: The `seq` before which there may be older changes; `None` if there are none.
    older: int | None
    #: The `seq` after which there may be newer changes; `None` if there are none.
    newer: int | None
    #: Whether the page is short because the scan reached its limit.
    is_truncated: bool = False
    #: The addresses of existing entities and their projects, by kind and id.
    addresses: dict[tuple[Kind, str], str] = {}


class UndoPlan(Struct, frozen=True):
    """What undoing a change would do."""

    change: Change
    #: The changes of its batch, newest first, up to a maximum number.
    batch: list[Change]
    total: int
    #: Later changes of the same entities, which would be overwritten, newest first.
    later: list[Change]

    @property
    def seen(self) -> int:
        """The newest `seq` in this plan."""
        return max(change.seq for change in (*self.batch, *self.later))


class UndoResult(Struct, frozen=True):
    """The changes that were undone, and how to undo the undo."""

    changes: list[Change]
    #: The `seq` of the undo itself; `None` if nothing had to change.
    by: int | None


class ChangeFilter(Struct, frozen=True):
    """A filter for changes."""

    kind: Kind | None = None
    actor: str | None = None
    #: Text in the name, title or URI of an entity.
    text: str | None = None
    #: Changes of all projects, which only the owner of the machine can see.
    all_projects: bool = False


class HistoryService:
    """Lists changes, and restores entities to their state before or after a change.

    Methods without a caller are for the owner of the machine, who can see everything.
    """

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)
        #: For methods of the owner of the machine.
        self._unscoped = store

    async def page(
        self,
        caller: Caller,
        *,
        kind: Kind | None = None,
        entity: str | None = None,
        before: int | None = None,
        limit: int = 20,
    ) -> list[Change]:
        """Return changes of the caller's project and tasks, newest first."""

        async def work(transaction: Transaction) -> list[Change]:
            if caller.principal is not None:
                await readable_project(transaction, caller)
            query = ChangeQuery(
                project=caller.project,
                kind=kind,
                entity=entity,
                before=before,
                limit=limit,
                user=caller.viewer,
            )
            return await transaction.changes.page(query)

        # A selective filter may scan much of the log.
        is_selective = kind is not None or caller.viewer is not None
        return await self._store.read(caller, work, slow=is_selective and entity is None)

    async def browse(
        self,
        caller: Caller,
        wanted: ChangeFilter = ChangeFilter(),  # noqa: B008  # it cannot be changed
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
    ) -> ChangePage:
        """Return a page of matching changes of the caller's project and tasks.

        The page has the newest changes, those before `before`, or those after `after`. The scan is limited;
        see `ChangePage.is_truncated`.
        """
        _require_owner(caller, wanted)

        async def work(transaction: Transaction) -> ChangePage:
            if caller.principal is not None:
                await readable_project(transaction, caller)
            found = await _browse(transaction, caller, wanted, before=before, after=after, limit=limit)
            return replace(found, addresses=await _addresses(transaction, found.changes))

        return await self._store.read(caller, work, slow=True)

    async def actors(self, caller: Caller, wanted: ChangeFilter) -> list[str]:
        """Return the actors of recent changes that the caller can see."""
        _require_owner(caller, wanted)

        async def work(transaction: Transaction) -> list[str]:
            if caller.principal is not None:
                await readable_project(transaction, caller)
            project = None if wanted.all_projects else caller.project
            since = max(await transaction.changes.newest_seq() - _RECENT, 0)
            query = ChangeQuery(project=project, after=since, limit=_MAX_ACTORS, user=caller.viewer)
            return await transaction.changes.actors(query)

        return await self._store.read(caller, work, slow=True)

    async def get_with_contents(self, caller: Caller, seq: int) -> tuple[Change, bytes | None, bytes | None]:
        """Return a change and, for a resource, its content before and after. Raises `ChangeNotFound`."""

        async def work(transaction: Transaction) -> tuple[Change, bytes | None, bytes | None]:
            change = await _find_visible(transaction, caller, seq)
            old, new = [
                await transaction.content(state.sha256) if isinstance(state, Resource) else None
                for state in (change.before, change.after)
            ]
            return change, old, new

        return await self._store.read(caller, work)

    async def plan_undo(self, caller: Caller, seq: int) -> UndoPlan:
        """Return what undoing a change would do. Raises `ChangeNotFound` and `ChangePurged`."""

        async def work(transaction: Transaction) -> UndoPlan:
            change = await _find_visible(transaction, caller, seq)
            total = await transaction.changes.batch_size(change.batch)
            batch = await transaction.changes.batch(change.batch, _MAX_PLANNED)
            if not all(is_visible(caller, item) for item in batch) or len(batch) < min(total, _MAX_PLANNED):
                raise ChangeNotFound(seq)
            require_content(batch)
            batch.reverse()
            later = [item for item in await _later_changes(transaction, batch) if item.batch != change.batch]
            return UndoPlan(change, batch, total, later)

        return await self._store.read(caller, work, slow=True)

    async def page_all(
        self,
        project: int | None,
        *,
        kind: Kind | None = None,
        entity: str | None = None,
        name: str | None = None,
        actor: str | None = None,
        since: int | None = None,
        before: int | None = None,
        limit: int = 20,
    ) -> list[Change]:
        """Return changes of a project and of tasks, or of all projects, newest first.

        `entity`: an id. `name`: a name, title or URI that the entity ever had. `since`: microseconds since
        1970.
        """

        query = ChangeQuery(
            project=project,
            kind=kind,
            entity=entity,
            name=name,
            actor=actor,
            since=since,
            before=before,
            limit=limit,
        )
        return await self._unscoped.read(lambda transaction: transaction.changes.page(query), slow=True)

    async def get(self, seq: int) -> Change:
        """Return a change of any project. Raises `ChangeNotFound`."""

        async def work(transaction: Transaction) -> Change:
            found = await transaction.changes.get(seq)
            if found is None:
                raise ChangeNotFound(seq)
            return found

        return await self._unscoped.read(work)

    async def contents(self, *states: Entity | Purged | None) -> list[bytes | None]:
        """Return the contents of states of resources; `None` for other entities."""

        async def work(transaction: Transaction) -> list[bytes | None]:
            return [
                await transaction.content(state.sha256) if isinstance(state, Resource) else None
                for state in states
            ]

        return await self._unscoped.read(work)

    async def batches_of(self, changes: Iterable[Change]) -> list[Change]:
        """Return all changes of the batches of these changes, newest first."""
        batches = dict.fromkeys(change.batch for change in changes)

        async def work(transaction: Transaction) -> list[Change]:
            found = [change for batch in batches for change in await transaction.changes.batch(batch)]
            return sorted(found, key=lambda change: change.seq, reverse=True)

        return await self._unscoped.read(work, slow=True)

    async def later_changes(self, changes: Sequence[Change]) -> list[Change]:
        """Return later changes of the entities of these changes, newest first."""

        async def work(transaction: Transaction) -> list[Change]:
            return await _later_changes(transaction, changes)

        return await self._unscoped.read(work, slow=True)

    async def undo_all(
        self, changes: Sequence[Change], *, actor: str, overwriting: Iterable[Change] = ()
    ) -> None:
        """Undo all these changes, newest first, in one batch that can itself be undone.

        Raises `ChangedMeanwhile` if that would overwrite later changes that are not in `overwriting`, and
        `ChangePurged`.
        """
        known = {change.seq for change in overwriting}

        async def work(transaction: Transaction) -> None:
            # They may have been purged since they were read.
            stored = await transaction.changes.by_seqs([change.seq for change in changes])
            require_content(stored)
            if any(change.seq not in known for change in await _later_changes(transaction, stored)):
                raise ChangedMeanwhile
            for change in stored:
                await _restore(transaction, change, change.before)

        await self._unscoped.write(work, actor=actor)

    async def undo_in_any_project(self, caller: Caller, seq: int, *, seen: int) -> UndoResult:
        """Like `undo`, but in any project for the owner of the machine.

        Raises `ChangedMeanwhile` if that would overwrite changes later than `seen`.
        """

        async def work(transaction: Transaction) -> UndoResult:
            change = await _find_visible(transaction, caller, seq)
            if caller.principal is not None:
                await writable_project(transaction, caller)
            newest = await transaction.changes.newest_seq()
            undone = await _undo(transaction, caller, change, seen)
            latest = [await transaction.changes.latest(item.kind, item.entity) for item in undone[:1]]
            by = next((item.seq for item in latest if item is not None and item.seq > newest), None)
            return UndoResult(undone, by)

        return await self._store.write(caller, work)

    async def undo(self, caller: Caller, seq: int) -> list[Change]:
        """Undo a change and the rest of its batch. Returns the changes that were undone.

        Later changes of the same entities are overwritten. An undo can itself be undone.
        """

        async def work(transaction: Transaction) -> list[Change]:
            return await _undo(transaction, caller, await _find_undoable(transaction, caller, seq))

        return await self._store.write(caller, work)

    async def restore_in_any_project(self, seq: int, *, actor: str) -> Change:
        """Like `restore`, but in any project. Returns the change."""

        async def work(transaction: Transaction) -> Change:
            change = await transaction.changes.get(seq)
            if change is None:
                raise ChangeNotFound(seq)
            await _restore(transaction, change, change.after)
            return change

        return await self._unscoped.write(work, actor=actor)

    async def restore(self, caller: Caller, seq: int) -> Entity | None:
        """Restore an entity to its state right after a change. Returns `None` if that deleted it."""

        async def work(transaction: Transaction) -> Entity | None:
            change = await _find_undoable(transaction, caller, seq)
            _require_permission(caller, change)
            return await _restore(transaction, change, change.after)

        return await self._store.write(caller, work)


async def _browse(
    transaction: Transaction,
    caller: Caller,
    wanted: ChangeFilter,
    *,
    before: int | None,
    after: int | None,
    limit: int,
) -> ChangePage:
    changes = transaction.changes
    newest = await changes.newest_seq()
    # The scanned range, exclusive.
    if after is not None:
        low, high = (
            after,
            min(after + (_MAX_SCANNED if wanted.text is None else _MAX_TEXT_SCANNED), newest) + 1,
        )
    else:
        high = newest + 1 if before is None else min(before, newest + 1)
        low = max(high - _MAX_SCANNED, 0)
        if wanted.text is not None:
            low = await changes.window_start(high, _MAX_TEXT_SCANNED, _MAX_TEXT_BYTES) - 1
    query = ChangeQuery(
        project=None if wanted.all_projects else caller.project,
        after=low,
        before=high,
        limit=limit + 1,
        oldest_first=after is not None,
        kind=wanted.kind,
        actor=wanted.actor,
        text=wanted.text,
        user=caller.viewer,
    )
    found = await changes.find_seqs(query)
    shown = fit_page(found[:limit])
    is_more = len(shown) < len(found)
    page = await changes.by_seqs(shown)
    if after is not None:
        newer = page[0].seq if is_more else (high - 1 if high <= newest else None)
        return ChangePage(
            page, page[-1].seq if page else after + 1, newer, is_truncated=not is_more and newer is not None
        )
    older = page[-1].seq if is_more else (low + 1 if low > 0 else None)
    return ChangePage(
        page,
        older,
        None if high > newest else (page[0].seq if page else high - 1),
        is_truncated=not is_more and older is not None,
    )


def fit_page(found: Sequence[tuple[int, int]]) -> list[int]:
    """Return the sequence numbers that fit on a page. `found`: the `seq` and size of each change."""
    shown: list[int] = []
    total = 0
    for seq, size in found:
        total += size
        if shown and total > _MAX_PAGE_BYTES:
            break
        shown.append(seq)
    return shown


async def _addresses(transaction: Transaction, changes: Iterable[Change]) -> dict[tuple[Kind, str], str]:
    ids: dict[Kind, dict[str, None]] = {}
    for change in changes:
        ids.setdefault(change.kind, {})[change.entity] = None
        if change.project is not None:
            ids.setdefault("project", {})[str(change.project)] = None
    return {
        (kind, entity): address
        for kind, entities in ids.items()
        for entity, address in (await transaction.changes.addresses(kind, list(entities))).items()
    }


async def _undo(
    transaction: Transaction, caller: Caller, change: Change, seen: int | None = None
) -> list[Change]:
    """Undo a batch. Raises `ChangedMeanwhile` if that would overwrite changes later than `seen`."""
    undone = await transaction.changes.batch(change.batch)
    whole = len(undone) == await transaction.changes.batch_size(change.batch)
    if not whole or not all(is_visible(caller, item) for item in undone):
        # A batch is undone as a whole or not at all.
        raise ChangeNotFound(change.seq)
    for item in undone:
        _require_permission(caller, item)
    require_content(undone)
    if seen is not None and any(item.seq > seen for item in await _later_changes(transaction, undone)):
        raise ChangedMeanwhile
    for item in reversed(undone):
        await _restore(transaction, item, item.before)
    return undone


def _require_owner(caller: Caller, wanted: ChangeFilter) -> None:
    if wanted.all_projects and caller.principal is not None:
        raise NotAllowed("Only the owner of this machine can see all projects")


async def _find_visible(transaction: Transaction, caller: Caller, seq: int) -> Change:
    """Return a change that the caller can see. Raises `ChangeNotFound`, also for changes of others."""
    if caller.principal is not None:
        await readable_project(transaction, caller)
    change = await transaction.changes.get(seq)
    if change is None or not is_visible(caller, change):
        raise ChangeNotFound(seq)
    return change


async def _later_changes(transaction: Transaction, changes: Sequence[Change]) -> list[Change]:
    first: dict[tuple[Kind, str], int] = {}
    for change in changes:
        key = change.kind, change.entity
        first[key] = min(change.seq, first.get(key, change.seq))
    chosen = {change.seq for change in changes}
    found = []
    for (kind, entity), seq in first.items():
        before: int | None = None
        while before is None or before > seq:
            query = ChangeQuery(kind=kind, entity=entity, before=before, limit=_PAGE)
            page = await transaction.changes.page(query)
            found += [change for change in page if change.seq > seq and change.seq not in chosen]
            before = page[-1].seq if len(page) == _PAGE else 0
    return sorted(found, key=lambda change: change.seq, reverse=True)


async def _find_undoable(transaction: Transaction, caller: Caller, seq: int) -> Change:
    """Return a change that the caller may undo. Raises `ChangeNotFound`, also for changes of others."""
    if caller.principal is not None:
        await writable_project(transaction, caller)
    change = await transaction.changes.get(seq)
    if change is None or change.project not in (None, caller.project) or not is_visible(caller, change):
        raise ChangeNotFound(seq)
    return change


def is_visible(caller: Caller, change: Change) -> bool:
    """Return whether a change belongs to the caller's project or tasks."""
    if caller.principal is None:
        return True
    if change.kind != "task":
        return change.project == caller.project
    return isinstance(change.state, Task | Purged) and change.state.user == caller.user


def _require_permission(caller: Caller, change: Change) -> None:
    """Raise `NotAllowed` for changes of projects: undoing a creation deletes everything in the project."""
    if change.kind == "project" and caller.principal is not None and not caller.principal.has("admin"):
        raise NotAllowed("Use a token with the admin scope to undo a change to a whole project")


async def _restore(transaction: Transaction, change: Change, wanted: Entity | Purged | None) -> Entity | None:
    """Restore an entity to `wanted`, including its times. Only the version is new: it always increases.

    Raises `ChangePurged` if `wanted`, or the last state of a deleted entity, was purged.
    """
    latest = await transaction.changes.latest(change.kind, change.entity)
    assert latest is not None
    current = latest.after
    purged = change.before if wanted is None else wanted
    if isinstance(purged, Purged):
        raise ChangePurged(change.seq, purged.by, purged.at)
    if isinstance(current, Purged):
        raise ChangePurged(latest.seq, current.by, current.at)
    assert not isinstance(wanted, Purged)
    if wanted is None:
        if current is not None:
            if isinstance(current, Project):
                await delete_contents(transaction, current)
            await transaction.write("restore", current, None)
        return None
    last = current if current is not None else latest.before
    assert last is not None
    restored: Any = replace(wanted, version=last.version + 1)
    if current is not None and replace(current, version=restored.version) == restored:
        return current
    await _require_unique(transaction, current, restored)
    return await transaction.write("restore", current, restored)


async def _require_unique(transaction: Transaction, current: Entity | None, restored: Entity) -> None:
    """Raise a conflict if another entity has taken the name, title or URI."""
    if isinstance(restored, Task):
        return
    if isinstance(restored, Project):
        found = await transaction.projects.by_name(restored.name)
        if found is not None and found.id != restored.id:
            raise NameTaken("project", restored.name)
        return
    project = await transaction.projects.get(restored.project)
    if project is None:
        raise ProjectGone
    if isinstance(restored, Prompt):
        old = current if isinstance(current, Prompt) else None
        if (old is None or old.name != restored.name) and await transaction.prompts.name_taken(
            project.id, restored.name
        ):
            raise NameTaken("prompt", restored.name, project.name)
        if (old is None or old.title != restored.title) and await transaction.prompts.title_taken(
            project.id, restored.title
        ):
            raise TitleTaken(restored.title, project.name)
    elif isinstance(restored, Resource):
        by_name = await transaction.resources.by_name(project.id, restored.name)
        if by_name is not None and by_name.id != restored.id:
            raise NameTaken("resource", restored.name, project.name)
        by_uri = await transaction.resources.by_uri(project.id, restored.uri)
        if by_uri is not None and by_uri.id != restored.id:
            raise UriTaken(restored.uri, project.name)
