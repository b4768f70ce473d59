"""Use cases for the change log: browse, compare, undo and restore."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Change, Purged, outline, require_content
from dittybag.domain.entities import Entity, Kind, project_of
from dittybag.domain.errors import (
    ChangedMeanwhile,
    ChangeNotFound,
    ChangePurged,
    NotAllowed,
    ProjectGone,
    TooManyChanges,
)
from dittybag.domain.ports import Store, Transaction, Write
from dittybag.domain.projects import Project
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.services.caller import Caller, ScopedStore, readable_project, reading, writable_project, writing
from dittybag.services.entity_writes import require_unique
from dittybag.services.project_service import content_deletions, task_renames
from dittybag.services.task_access import require_unlocked
from dittybag.services.task_claims import require_unclaimed

#: Number of changes to look up at a time. Those that are read at once are limited in size, too.
_SCANNED_AT_ONCE: Final = 500
#: Number of changes to undo at a time; each may have the complete text twice.
_UNDONE_AT_ONCE: Final = 20
#: At most this many changes are selected by a query, because a plan holds all of them.
MAX_UNDONE: Final = 100_000

#: Maximum number of changes that one request scans. A search for text has to decode the changes, so it scans
#: fewer of them, and a maximum number of bytes.
MAX_SCANNED: Final = 50_000
MAX_TEXT_SCANNED: Final = 15_000
_MAX_TEXT_BYTES: Final = 16 * 1024 * 1024
#: Maximum size of the changes on a page, which has at least one change.
_MAX_PAGE_BYTES: Final = 8 * 1024 * 1024
#: Actors are collected from this many recent changes.
_RECENT: Final = 5000
_MAX_ACTORS: Final = 100
#: Number of changes on a page, unless the query limits it.
_PER_PAGE: Final = 50


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


class Comparison(Struct, frozen=True):
    """The states before and after a change, or after each of two changes of an entity."""

    first: Change
    last: Change | None
    before: Entity | Purged | None
    after: Entity | Purged | None
    #: The contents of the states of a resource.
    old: bytes | None
    new: bytes | None


class UndoSelection(Struct, frozen=True, kw_only=True):
    """Changes to undo, each with the rest of its batch: one change, the last ones, or all that match."""

    #: Only changes of this project and of tasks; `None` for all projects.
    project: int | None = None
    seq: int | None = None
    #: Only changes after this one. Change 1 created the workspace itself.
    after: int = 1
    #: This many batches.
    last: int | None = None
    actor: str | None = None
    #: Microseconds since 1970.
    since: int | None = None


class UndoPlan(Struct, frozen=True):
    """What undoing changes would do."""

    #: Newest first. If they were not selected by `seq`, they lack long texts.
    changes: list[Change]
    #: The number of changes to undo, of which `changes` may have only the first.
    total: int
    #: Later changes of the same entities, which would be overwritten, newest first and without long texts.
    later: list[Change]
    #: The `seq` of the newest change in the log.
    seen: int


class UndoResult(Struct, frozen=True):
    """The changes that were undone, oldest first, and how to undo the undo."""

    changes: list[Change]
    #: The `seq` of the undo itself; `None` if nothing had to change.
    by: int | None


# Browsing


async def page_changes(transaction: Transaction, caller: Caller, query: ChangeQuery) -> list[Change]:
    """Return changes. Only the owner of the machine can see those of all projects."""
    return await transaction.changes.page(await visible_query(transaction, caller, query))


async def browse_changes(transaction: Transaction, caller: Caller, query: ChangeQuery) -> ChangePage:
    """Return a page of changes: the newest, those before `query.before`, or the next after `query.after`.

    The next ones are selected by `query.oldest_first`; they too are returned newest first. The scan is
    limited; see `ChangePage.is_truncated`.
    """
    found = await _browse(transaction, await visible_query(transaction, caller, query))
    return replace(found, addresses=await find_addresses(transaction, found.changes))


async def list_actors(transaction: Transaction, caller: Caller, query: ChangeQuery) -> list[str]:
    """Return the actors of recent changes that the caller can see."""
    since = max(await transaction.changes.newest_seq() - _RECENT, 0)
    query = ChangeQuery(project=query.project, after=since, limit=_MAX_ACTORS)
    return await transaction.changes.actors(await visible_query(transaction, caller, query))


async def compare_changes(
    transaction: Transaction, caller: Caller, seq: int, other: int | None = None
) -> Comparison:
    """Return what a change modified, or how its entity differs after another change of it.

    Raises `ChangeNotFound`.
    """
    first = await find_change(transaction, caller, seq)
    last = None if other is None else await find_change(transaction, caller, other)
    before, after = (first.before, first.after) if last is None else (first.after, last.after)
    old, new = [
        await transaction.content(state.sha256) if isinstance(state, Resource) else None
        for state in (before, after)
    ]
    return Comparison(first, last, before, after, old, new)


async def visible_query(transaction: Transaction, caller: Caller, query: ChangeQuery) -> ChangeQuery:
    """Return a query for what the caller can see."""
    if caller.principal is None:
        return query
    if query.project != caller.project:
        raise NotAllowed("Only the owner of this machine can see all projects")
    await readable_project(transaction, caller)
    return replace(query, user=caller.viewer)


def is_visible(caller: Caller, change: Change) -> bool:
    """Return whether a change belongs to the caller's project or tasks."""
    if caller.principal is None:
        return True
    if change.kind != "task" or change.project is not None:
        return change.project == caller.project
    return isinstance(change.state, Task | Purged) and change.state.user == caller.user


async def find_change(
    transaction: Transaction, caller: Caller, seq: int, project: int | None = None
) -> Change:
    """Return a change of a project, or of any. Raises `ChangeNotFound`, also for changes of others."""
    if caller.principal is not None:
        await readable_project(transaction, caller)
    change = await transaction.changes.get(seq)
    if change is None or not is_visible(caller, change):
        raise ChangeNotFound(seq)
    if project is not None and change.project not in (None, project):
        raise ChangeNotFound(seq)
    return change


async def iterate_changes(transaction: Transaction, query: ChangeQuery) -> AsyncIterator[Change]:
    """Yield changes, newest first."""
    while page := await read_page(transaction, query):
        for change in page:
            yield change
        query = replace(query, before=page[-1].seq)


async def read_page(transaction: Transaction, query: ChangeQuery) -> list[Change]:
    """Return the newest matching changes, as many as fit on a page."""
    found = await transaction.changes.find_seqs(replace(query, limit=_SCANNED_AT_ONCE))
    return await transaction.changes.by_seqs(fit_page(found)) if found else []


async def _browse(transaction: Transaction, query: ChangeQuery) -> ChangePage:
    changes = transaction.changes
    newest = await changes.newest_seq()
    limit = _PER_PAGE if query.limit is None else query.limit
    # The scanned range, exclusive.
    if query.oldest_first:
        low = query.after
        high = min(low + (MAX_SCANNED if query.text is None else MAX_TEXT_SCANNED), newest) + 1
    else:
        high = newest + 1 if query.before is None else min(query.before, newest + 1)
        low = max(high - MAX_SCANNED, 0)
        if query.text is not None:
            low = await text_window_start(transaction, high) - 1
    found = await changes.find_seqs(replace(query, after=low, before=high, limit=limit + 1))
    shown = fit_page(found[:limit])
    is_more = len(shown) < len(found)
    page = await changes.by_seqs(shown)
    if query.oldest_first:
        newer = page[0].seq if is_more else (high - 1 if high <= newest else None)
        older: int | None = page[-1].seq if page else low + 1
        return ChangePage(page, older, newer, is_truncated=not is_more and newer is not None)
    older = page[-1].seq if is_more else (low + 1 if low > 0 else None)
    newer = None if high > newest else (page[0].seq if page else high - 1)
    return ChangePage(page, older, newer, is_truncated=not is_more and older is not None)


async def text_window_start(transaction: Transaction, before: int) -> int:
    """Return the first `seq` of the changes that a search for text reads."""
    return await transaction.changes.window_start(before, MAX_TEXT_SCANNED, _MAX_TEXT_BYTES)


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


async def find_addresses(transaction: Transaction, changes: Iterable[Change]) -> dict[tuple[Kind, str], str]:
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


# Undoing


async def plan_undo(
    transaction: Transaction, caller: Caller, selection: UndoSelection, *, limit: int | None = None
) -> UndoPlan:
    """Return what undoing changes would do. `limit`: the maximum number of changes of one batch in the plan.

    Raises `ChangeNotFound`, `ChangePurged` and `TooManyChanges`.
    """
    seen = await transaction.changes.newest_seq()
    changes, total = await _select(transaction, caller, selection, limit=limit)
    batches = {change.batch for change in changes}
    later = [item for item in await _later_changes(transaction, changes) if item.batch not in batches]
    return UndoPlan(changes, total, later, seen)


async def undo_changes(
    transaction: Transaction, caller: Caller, selection: UndoSelection, *, seen: int | None = None
) -> UndoResult:
    """Undo changes, newest first, in one batch that can itself be undone.

    Later changes of the same entities are overwritten. `seen`: the `seen` of the plan; raises
    `ChangedMeanwhile` if an entity was changed since then.
    """
    if caller.principal is not None:
        await writable_project(transaction, caller)
    before = None if seen is None or selection.seq is not None else seen + 1
    changes, _ = await _select(transaction, caller, selection, before=before)
    for change in changes:
        _require_permission(caller, change)
    await _require_unclaimed(transaction, caller, changes)
    if seen is not None and any(item.seq > seen for item in await _later_changes(transaction, changes)):
        raise ChangedMeanwhile
    newest = await transaction.changes.newest_seq()
    seqs = [change.seq for change in changes]
    for start in range(0, len(seqs), _UNDONE_AT_ONCE):
        for change in await transaction.changes.by_seqs(seqs[start : start + _UNDONE_AT_ONCE]):
            await restore_state(transaction, caller, change, change.before)
    return UndoResult(changes[::-1], await first_seq_after(transaction, newest))


async def first_seq_after(transaction: Transaction, seq: int) -> int | None:
    """Return the `seq` of the first change after another one."""
    found = await transaction.changes.find_seqs(ChangeQuery(after=seq, limit=1, oldest_first=True))
    return found[0][0] if found else None


async def restore_entity(
    transaction: Transaction, caller: Caller, seq: int, *, project: int | None = None
) -> Entity | None:
    """Restore an entity to its state right after a change. Returns `None` if that deleted it.

    `project`: only a change of this project or of a task; `None` for any.
    """
    if caller.principal is not None:
        await writable_project(transaction, caller)
    change = await find_change(transaction, caller, seq, project)
    _require_permission(caller, change)
    await _require_unclaimed(transaction, caller, [change])
    return await restore_state(transaction, caller, change, change.after)


async def _select(
    transaction: Transaction,
    caller: Caller,
    selection: UndoSelection,
    *,
    before: int | None = None,
    limit: int | None = None,
) -> tuple[list[Change], int]:
    """Return the selected changes with the rest of their batches, newest first, and their number."""
    changes: list[Change] = []
    total = 0
    for batch in await _selected_batches(transaction, caller, selection, before):
        found = await transaction.changes.batch(batch, limit)
        is_whole = caller.principal is None and limit is None
        size = len(found) if is_whole else await transaction.changes.batch_size(batch)
        is_complete = len(found) >= (size if limit is None else min(size, limit))
        if not is_complete or not await _may_undo(transaction, caller, found):
            # A batch is undone as a whole or not at all.
            raise ChangeNotFound(batch if selection.seq is None else selection.seq)
        require_content(found)
        total += size
        changes += found if selection.seq is not None else map(outline, found)
    return sorted(changes, key=lambda change: change.seq, reverse=True), total


async def _may_undo(transaction: Transaction, caller: Caller, batch: Iterable[Change]) -> bool:
    """Return whether a batch has only changes of the caller's project, and of others that they may change."""
    others = {change.project for change in batch if not is_visible(caller, change)}
    if not others or None in others:
        return not others
    return others.isdisjoint(await transaction.accounts.projects_locked_for(caller.user))


async def _selected_batches(
    transaction: Transaction, caller: Caller, selection: UndoSelection, before: int | None
) -> Iterable[int]:
    if selection.seq is not None:
        return [(await find_change(transaction, caller, selection.seq, selection.project)).batch]
    query = ChangeQuery(
        project=selection.project,
        actor=selection.actor,
        since=selection.since,
        after=selection.after,
        before=before,
    )
    query = await visible_query(transaction, caller, query)
    if selection.last is None and (count := await _count(transaction, query)) > MAX_UNDONE:
        raise TooManyChanges(count, MAX_UNDONE)
    batches: dict[int, None] = {}
    async for change in iterate_changes(transaction, query):
        batches[change.batch] = None
        if len(batches) == selection.last:
            break
    return batches


async def _count(transaction: Transaction, query: ChangeQuery) -> int:
    count = 0
    query = replace(query, limit=MAX_UNDONE)
    while found := await transaction.changes.find_seqs(query):
        count += len(found)
        query = replace(query, before=found[-1][0])
    return count


async def _later_changes(transaction: Transaction, changes: Sequence[Change]) -> list[Change]:
    """Return later changes of the entities of these changes, newest first, without long texts."""
    first: dict[tuple[Kind, str], int] = {}
    for change in changes:
        key = change.kind, change.entity
        first[key] = min(change.seq, first.get(key, change.seq))
    chosen = {change.seq for change in changes}
    found = [
        outline(change)
        for (kind, entity), seq in first.items()
        async for change in iterate_changes(transaction, ChangeQuery(kind=kind, entity=entity, after=seq))
        if change.seq not in chosen
    ]
    return sorted(found, key=lambda change: change.seq, reverse=True)


def _require_permission(caller: Caller, change: Change) -> None:
    """Raise `NotAllowed` for changes of projects: undoing a creation deletes everything in the project.

    Everybody who may change the project may undo a change of its pins.
    """
    before, after = change.before, change.after
    if isinstance(before, Project) and isinstance(after, Project) and before.name == after.name:
        return
    if change.kind == "project" and caller.principal is not None and not caller.principal.has("admin"):
        raise NotAllowed("Use a token with the admin scope to undo a change to a whole project")


async def _require_unclaimed(transaction: Transaction, caller: Caller, changes: Iterable[Change]) -> None:
    """Raise `TaskClaimed` if an agent would restore a task that somebody holds."""
    tasks = dict.fromkeys(int(change.entity) for change in changes if change.kind == "task")
    await require_unclaimed(transaction, caller, list(tasks))


async def _require_task_access(
    transaction: Transaction, caller: Caller, change: Change, latest: Change, wanted: Entity | Purged | None
) -> None:
    """Raise an error unless the caller may change a task as it is now and as it would be.

    It may have moved to another project, or have become somebody else's, since a change that the caller sees.
    """
    if caller.principal is None or change.kind != "task":
        return
    stored: Task | None = await transaction.find("task", id=int(change.entity))
    if (stored is None) != (latest.after is None):
        # Its latest change is hidden from the caller.
        raise ChangeNotFound(change.seq)
    for state in (latest.before if stored is None else stored, wanted):
        if isinstance(state, Task):
            if state.project_id is None and state.user != caller.user:
                raise ChangeNotFound(change.seq)
            await require_unlocked(transaction, caller, state.project_id)


async def restore_state(
    transaction: Transaction, caller: Caller, change: Change, wanted: Entity | Purged | None
) -> Entity | None:
    """Restore an entity to `wanted`, including its times. Only the version is new: it always increases.

    Raises `ChangePurged` if `wanted`, or the last state of a deleted entity, was purged, `ProjectGone`,
    `ChangeNotFound` or `NotAllowed` if a task belongs to others now, and `TaskCycle` if it would wait for
    itself.
    """
    latest = await transaction.changes.latest(change.kind, change.entity)
    assert latest is not None
    await _require_task_access(transaction, caller, change, latest, wanted)
    current = latest.after
    purged = change.before if wanted is None else wanted
    if isinstance(purged, Purged):
        raise ChangePurged(change.seq, purged.by, purged.at)
    if isinstance(current, Purged):
        raise ChangePurged(latest.seq, current.by, current.at)
    assert not isinstance(wanted, Purged)
    if wanted is None:
        if current is not None:
            contents = await content_deletions(transaction, current) if isinstance(current, Project) else []
            await transaction.write_all([*contents, Write("restore", current, None)])
        return None
    last = current if current is not None else latest.before
    assert last is not None
    project = await _project_of(transaction, wanted)
    restored: Any = replace(wanted, version=last.version + 1)
    if isinstance(restored, Task) and project is not None:
        # The project may have been renamed since then.
        restored = replace(restored, project=project.name)
    if isinstance(restored, Task) and not (isinstance(current, Task) and current.status == "doing"):
        # Few commands restore anything.
        from dittybag.services.lost_claims import without_claim

        restored = await without_claim(transaction, restored)
    if current is not None and replace(current, version=restored.version) == restored:
        return current
    await require_unique(transaction, current, restored, project)
    tasks = await task_renames(transaction, restored, "restore") if isinstance(restored, Project) else []
    stored = (await transaction.write_all([Write("restore", current, restored), *tasks]))[0]
    if isinstance(stored, Task):
        # Few commands restore anything.
        from dittybag.services.task_edges import require_no_cycle

        # Other tasks may have got edges since then.
        await require_no_cycle(transaction, stored.id)
    return stored


async def _project_of(transaction: Transaction, wanted: Entity) -> Project | None:
    """Return the project that a state belongs to, if it belongs to one. Raises `ProjectGone`."""
    number = None if isinstance(wanted, Project) else project_of(wanted)
    if number is None:
        return None
    project = await transaction.projects.get(number)
    if project is None:
        raise ProjectGone
    return project


class HistoryService:
    """Lists changes, and restores entities to their state before or after a change.

    A caller without a principal is the owner of the machine, who can see everything.
    """

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

    browse = reading(browse_changes, slow=True)
    actors = reading(list_actors, slow=True)
    compare = reading(compare_changes)
    plan_undo = reading(plan_undo, slow=True)
    undo = writing(undo_changes)
    restore = writing(restore_entity)

    async def page(self, caller: Caller, query: ChangeQuery) -> list[Change]:
        """See `page_changes`."""
        # A selective query may scan much of the log.
        is_plain = query == ChangeQuery(project=query.project, before=query.before, limit=query.limit)
        is_slow = query.entity is None and (caller.viewer is not None or not is_plain)
        return await self._store.read(caller, page_changes, query, slow=is_slow)
