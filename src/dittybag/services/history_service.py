"""Use cases of the change log: look back, and bring back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Change, Entity, Kind
from dittybag.domain.errors import (
    ChangedMeanwhile,
    ChangeNotFound,
    NameTaken,
    NotAllowed,
    ProjectGone,
    TitleTaken,
    UriTaken,
)
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.services.caller import Caller, ScopedStore, readable_project, writable_project
from dittybag.services.project_service import delete_contents

#: So many changes of one thing are looked at at a time.
_PAGE: Final = 100

#: Whoever looks for something rare looks through so many changes at a time; for a name, which stands further
#: inside, through fewer of them and so many bytes.
_LOOKED: Final = 50_000
_LOOKED_INTO: Final = 15_000
_BYTES_LOOKED_INTO: Final = 16 * 1024 * 1024
#: So many bytes of changes are shown at a time, however few changes that may be.
_BYTES_SHOWN: Final = 8 * 1024 * 1024
#: Among so many changes somebody is found who has made one.
_RECENT: Final = 5000
_MOST_ACTORS: Final = 100
#: So much of what was done together is looked at before it is undone.
_PLANNED: Final = 200


class ChangePage(Struct, frozen=True):
    """Some changes, the newest first, and where to look on."""

    changes: list[Change]
    #: Before which change there may be more; nothing if there are none.
    older: int | None
    #: After which change there may be more.
    newer: int | None
    #: Whether it ends because enough was looked at, though less was found.
    is_truncated: bool = False
    #: How the things and their projects are addressed that are still there, by kind and id.
    addresses: dict[tuple[Kind, str], str] = {}


class UndoPlan(Struct, frozen=True):
    """What it means to undo a change."""

    change: Change
    #: What was done and is undone together, the newest first: all of it, or as much as was looked at.
    together: list[Change]
    total: int
    #: What was done since to the same things, and would be overwritten; the newest first.
    later: list[Change]

    @property
    def seen(self) -> int:
        """The last change that whoever sees this knows of."""
        return max(change.seq for change in (*self.together, *self.later))


class UndoResult(Struct, frozen=True):
    """What was undone, and the change by which that can be undone."""

    changes: list[Change]
    #: Nothing if everything was already as it had been.
    by: int | None


class ChangeFilter(Struct, frozen=True):
    """Which changes are looked for."""

    kind: Kind | None = None
    actor: str | None = None
    #: Stands in a name, title or URI of a thing.
    text: str | None = None
    #: In all projects, which only the owner of the machine sees.
    everywhere: bool = False


class HistoryService:
    """Lists changes, and restores what was there before or after one.

    Use cases without a caller are for the owner of the machine, who may see everything.
    """

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)
        #: For use cases of the owner of the machine.
        self._everything = store

    async def page(
        self,
        caller: Caller,
        *,
        kind: Kind | None = None,
        entity: str | None = None,
        before: int | None = None,
        limit: int = 20,
    ) -> list[Change]:
        """What happened in the caller's project and to the caller's tasks, the newest first."""

        async def work(transaction: Transaction) -> list[Change]:
            if caller.principal is not None:
                await readable_project(transaction, caller)
            return await transaction.changes.page(
                caller.project,
                kind=kind,
                entity=entity,
                before=before,
                limit=limit,
                user=caller.viewer,
            )

        # Whoever looks for something rare looks through much of the log.
        is_rare = kind is not None or caller.viewer is not None
        return await self._store.read(caller, work, slow=is_rare and entity is None)

    async def browse(
        self,
        caller: Caller,
        wanted: ChangeFilter = ChangeFilter(),  # noqa: B008  # it cannot be changed
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
    ) -> ChangePage:
        """What happened in the caller's project and to the caller's tasks, as far as it is quickly found.

        The newest, those before a change, or those after one.
        """
        _require_owner(caller, wanted)

        async def work(transaction: Transaction) -> ChangePage:
            if caller.principal is not None:
                await readable_project(transaction, caller)
            found = await _browse(transaction, caller, wanted, before=before, after=after, limit=limit)
            return replace(found, addresses=await _addresses(transaction, found.changes))

        return await self._store.read(caller, work, slow=True)

    async def actors(self, caller: Caller, wanted: ChangeFilter) -> list[str]:
        """Who has changed something lately that the caller sees."""
        _require_owner(caller, wanted)

        async def work(transaction: Transaction) -> list[str]:
            if caller.principal is not None:
                await readable_project(transaction, caller)
            project = None if wanted.everywhere else caller.project
            since = max(await transaction.changes.newest_seq() - _RECENT, 0)
            return await transaction.changes.actors(
                project, after=since, limit=_MOST_ACTORS, user=caller.viewer
            )

        return await self._store.read(caller, work, slow=True)

    async def get_with_contents(self, caller: Caller, seq: int) -> tuple[Change, bytes | None, bytes | None]:
        """One change, and what a resource held before and after. Raises `ChangeNotFound`."""

        async def work(transaction: Transaction) -> tuple[Change, bytes | None, bytes | None]:
            change = await _visible(transaction, caller, seq)
            old, new = [
                await transaction.content(state.sha256) if isinstance(state, Resource) else None
                for state in (change.before, change.after)
            ]
            return change, old, new

        return await self._store.read(caller, work)

    async def plan_undo(self, caller: Caller, seq: int) -> UndoPlan:
        """What it would mean to undo a change. Raises `ChangeNotFound`."""

        async def work(transaction: Transaction) -> UndoPlan:
            change = await _visible(transaction, caller, seq)
            total = await transaction.changes.batch_size(change.batch)
            together = await transaction.changes.batch(change.batch, _PLANNED)
            if not all(_is_seen(caller, item) for item in together) or len(together) < min(total, _PLANNED):
                raise ChangeNotFound(seq)
            together.reverse()
            later = [item for item in await _later(transaction, together) if item.batch != change.batch]
            return UndoPlan(change, together, total, later)

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
        """What happened, the newest first, in a project and to tasks, or everywhere.

        `entity`: an id. `name`: a name, title or URI that a thing ever had. `since`: microseconds since 1970.
        """

        async def work(transaction: Transaction) -> list[Change]:
            return await transaction.changes.page(
                project,
                kind=kind,
                entity=entity,
                name=name,
                actor=actor,
                since=since,
                before=before,
                limit=limit,
            )

        return await self._everything.read(work, slow=True)

    async def get(self, seq: int) -> Change:
        """One change, in whichever project. Raises `ChangeNotFound`."""

        async def work(transaction: Transaction) -> Change:
            found = await transaction.changes.get(seq)
            if found is None:
                raise ChangeNotFound(seq)
            return found

        return await self._everything.read(work)

    async def contents(self, *states: Entity | None) -> list[bytes | None]:
        """What resources hold or held; nothing for anything else."""

        async def work(transaction: Transaction) -> list[bytes | None]:
            return [
                await transaction.content(state.sha256) if isinstance(state, Resource) else None
                for state in states
            ]

        return await self._everything.read(work)

    async def batches_of(self, changes: Iterable[Change]) -> list[Change]:
        """All that was done together with any of these changes, the newest first."""
        batches = dict.fromkeys(change.batch for change in changes)

        async def work(transaction: Transaction) -> list[Change]:
            found = [change for batch in batches for change in await transaction.changes.batch(batch)]
            return sorted(found, key=lambda change: change.seq, reverse=True)

        return await self._everything.read(work, slow=True)

    async def later_changes(self, changes: Sequence[Change]) -> list[Change]:
        """What has happened since to things that these changes are about, the newest first."""

        async def work(transaction: Transaction) -> list[Change]:
            return await _later(transaction, changes)

        return await self._everything.read(work, slow=True)

    async def undo_all(
        self, changes: Sequence[Change], *, actor: str, overwriting: Iterable[Change] = ()
    ) -> None:
        """Put back what was there before all these changes, the newest first. It can be undone as one.

        Raises `ChangedMeanwhile` if that would overwrite anything but `overwriting`.
        """
        known = {change.seq for change in overwriting}

        async def work(transaction: Transaction) -> None:
            if any(change.seq not in known for change in await _later(transaction, changes)):
                raise ChangedMeanwhile
            for change in changes:
                await _put(transaction, change, change.before)

        await self._everything.write(work, actor=actor)

    async def undo_in_any_project(self, caller: Caller, seq: int, *, seen: int) -> UndoResult:
        """Like `undo`, but for the owner of the machine in whichever project.

        Raises `ChangedMeanwhile` if that would overwrite changes that came after `seen`.
        """

        async def work(transaction: Transaction) -> UndoResult:
            change = await _visible(transaction, caller, seq)
            if caller.principal is not None:
                await writable_project(transaction, caller)
            newest = await transaction.changes.newest_seq()
            undone = await _undo(transaction, caller, change, seen)
            latest = [await transaction.changes.latest(item.kind, item.entity) for item in undone[:1]]
            by = next((item.seq for item in latest if item is not None and item.seq > newest), None)
            return UndoResult(undone, by)

        return await self._store.write(caller, work)

    async def undo(self, caller: Caller, seq: int) -> list[Change]:
        """Put back what was there before a change and before all that was done together with it.

        What came later is overwritten; that, too, can be undone. The changes that were undone.
        """

        async def work(transaction: Transaction) -> list[Change]:
            return await _undo(transaction, caller, await _existing(transaction, caller, seq))

        return await self._store.write(caller, work)

    async def restore_in_any_project(self, change: Change, *, actor: str) -> Entity | None:
        """Like `restore`, in whichever project."""

        async def work(transaction: Transaction) -> Entity | None:
            return await _put(transaction, change, change.after)

        return await self._everything.write(work, actor=actor)

    async def restore(self, caller: Caller, seq: int) -> Entity | None:
        """Make one thing again what it was right after a change; nothing, if that deleted it."""

        async def work(transaction: Transaction) -> Entity | None:
            change = await _existing(transaction, caller, seq)
            _require_right(caller, change)
            return await _put(transaction, change, change.after)

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
    # What lies between the two is looked at, without them.
    if after is not None:
        low, high = after, min(after + (_LOOKED if wanted.text is None else _LOOKED_INTO), newest) + 1
    else:
        high = newest + 1 if before is None else min(before, newest + 1)
        low = max(high - _LOOKED, 0)
        if wanted.text is not None:
            low = await changes.window_start(high, _LOOKED_INTO, _BYTES_LOOKED_INTO) - 1
    found = await changes.find_seqs(
        None if wanted.everywhere else caller.project,
        after=low,
        before=high,
        limit=limit + 1,
        oldest_first=after is not None,
        kind=wanted.kind,
        actor=wanted.actor,
        text=wanted.text,
        user=caller.viewer,
    )
    shown = _fitting(found[:limit])
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


def _fitting(found: Sequence[tuple[int, int]]) -> list[int]:
    """The numbers of the first of these, with their sizes, that can be shown at once."""
    shown: list[int] = []
    total = 0
    for seq, size in found:
        total += size
        if shown and total > _BYTES_SHOWN:
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
    """Put back what was there. Raises `ChangedMeanwhile` if that overwrites later changes than `seen`."""
    undone = await transaction.changes.batch(change.batch)
    whole = len(undone) == await transaction.changes.batch_size(change.batch)
    if not whole or not all(_is_seen(caller, item) for item in undone):
        # What was done together is undone together, or not at all.
        raise ChangeNotFound(change.seq)
    for item in undone:
        _require_right(caller, item)
    if seen is not None and any(item.seq > seen for item in await _later(transaction, undone)):
        raise ChangedMeanwhile
    for item in reversed(undone):
        await _put(transaction, item, item.before)
    return undone


def _require_owner(caller: Caller, wanted: ChangeFilter) -> None:
    if wanted.everywhere and caller.principal is not None:
        raise NotAllowed("Only the owner of the machine sees all projects")


async def _visible(transaction: Transaction, caller: Caller, seq: int) -> Change:
    """A change that the caller may see. Raises `ChangeNotFound`: a foreign one is as good as none."""
    if caller.principal is not None:
        await readable_project(transaction, caller)
    change = await transaction.changes.get(seq)
    if change is None or not _is_seen(caller, change):
        raise ChangeNotFound(seq)
    return change


async def _later(transaction: Transaction, changes: Sequence[Change]) -> list[Change]:
    first: dict[tuple[Kind, str], int] = {}
    for change in changes:
        key = change.kind, change.entity
        first[key] = min(change.seq, first.get(key, change.seq))
    chosen = {change.seq for change in changes}
    found = []
    for (kind, entity), seq in first.items():
        before: int | None = None
        while before is None or before > seq:
            page = await transaction.changes.page(None, kind=kind, entity=entity, before=before, limit=_PAGE)
            found += [change for change in page if change.seq > seq and change.seq not in chosen]
            before = page[-1].seq if len(page) == _PAGE else 0
    return sorted(found, key=lambda change: change.seq, reverse=True)


async def _existing(transaction: Transaction, caller: Caller, seq: int) -> Change:
    """A change that the caller may take back. Raises `ChangeNotFound`: a foreign one is as good as none."""
    if caller.principal is not None:
        await writable_project(transaction, caller)
    change = await transaction.changes.get(seq)
    if change is None or change.project not in (None, caller.project) or not _is_seen(caller, change):
        raise ChangeNotFound(seq)
    return change


def _is_seen(caller: Caller, change: Change) -> bool:
    """Whether a change is of the caller's project or of the caller's tasks."""
    if caller.principal is None:
        return True
    entity = change.after if change.after is not None else change.before
    return entity.user == caller.user if isinstance(entity, Task) else change.project == caller.project


def _require_right(caller: Caller, change: Change) -> None:
    """Raises `NotAllowed` for a whole project: undoing that it was made takes away everything in it."""
    if change.kind == "project" and caller.principal is not None and not caller.principal.has("admin"):
        raise NotAllowed("To undo what was done to a whole project, use a token with the scope admin")


async def _put(transaction: Transaction, change: Change, wanted: Entity | None) -> Entity | None:
    """Make a thing what is `wanted`: every byte and time of it, but for the version, which only grows."""
    latest = await transaction.changes.latest(change.kind, change.entity)
    assert latest is not None
    current = latest.after
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
    await _require_room(transaction, current, restored)
    return await transaction.write("restore", current, restored)


async def _require_room(transaction: Transaction, current: Entity | None, restored: Entity) -> None:
    """Raises a conflict if something else has the name, title or URI by now."""
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
