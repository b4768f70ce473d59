"""Use cases of the change log: look back, and bring back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from satchel.domain.changes import Change, Entity, Kind
from satchel.domain.errors import (
    ChangedMeanwhile,
    ChangeNotFound,
    NameTaken,
    NotAllowed,
    ProjectGone,
    TitleTaken,
    UriTaken,
)
from satchel.domain.ports import Store, Transaction
from satchel.domain.projects import Project
from satchel.domain.prompts import Prompt
from satchel.domain.resources import Resource
from satchel.domain.tasks import Task
from satchel.services.caller import Caller, project_of, project_to_change
from satchel.services.projects import empty

#: So many changes of one thing are looked at at a time.
_PAGE: Final = 100


class History:
    """Lists changes, and restores what was there before or after one.

    Use cases without a caller are for the owner of the machine, who may see everything.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

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
            if caller.grant is not None:
                await project_of(transaction, caller)
            return await transaction.changes.page(
                caller.project,
                kind=kind,
                entity=entity,
                before=before,
                limit=limit,
                user=caller.only_user,
            )

        # Whoever looks for something rare looks through much of the log.
        is_rare = kind is not None or caller.only_user is not None
        return await self._store.read(work, slow=is_rare and entity is None)

    async def log(
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

        return await self._store.read(work, slow=True)

    async def change(self, seq: int) -> Change:
        """One change, in whichever project. Raises `ChangeNotFound`."""

        async def work(transaction: Transaction) -> Change:
            found = await transaction.changes.get(seq)
            if found is None:
                raise ChangeNotFound(seq)
            return found

        return await self._store.read(work)

    async def contents(self, *states: Entity | None) -> list[bytes | None]:
        """What resources hold or held; nothing for anything else."""

        async def work(transaction: Transaction) -> list[bytes | None]:
            return [
                await transaction.content(state.sha256) if isinstance(state, Resource) else None
                for state in states
            ]

        return await self._store.read(work)

    async def together(self, changes: Iterable[Change]) -> list[Change]:
        """All that was done together with any of these changes, the newest first."""
        batches = dict.fromkeys(change.batch for change in changes)

        async def work(transaction: Transaction) -> list[Change]:
            found = [change for batch in batches for change in await transaction.changes.batch(batch)]
            return sorted(found, key=lambda change: change.seq, reverse=True)

        return await self._store.read(work, slow=True)

    async def later(self, changes: Sequence[Change]) -> list[Change]:
        """What has happened since to things that these changes are about, the newest first."""

        async def work(transaction: Transaction) -> list[Change]:
            return await _later(transaction, changes)

        return await self._store.read(work, slow=True)

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

        await self._store.write(work, actor=actor)

    async def undo(self, caller: Caller, seq: int) -> list[Change]:
        """Put back what was there before a change and before all that was done together with it.

        What came later is overwritten; that, too, can be undone. The changes that were undone.
        """

        async def work(transaction: Transaction) -> list[Change]:
            change = await _existing(transaction, caller, seq)
            undone = await transaction.changes.batch(change.batch)
            if not all(_is_seen(caller, item) for item in undone):
                # What was done together is undone together, or not at all.
                raise ChangeNotFound(seq)
            for item in undone:
                _require_right(caller, item)
            for item in reversed(undone):
                await _put(transaction, item, item.before)
            return undone

        return await self._store.write(work, actor=caller.actor)

    async def restore_any(self, change: Change, *, actor: str) -> Entity | None:
        """Like `restore`, in whichever project."""

        async def work(transaction: Transaction) -> Entity | None:
            return await _put(transaction, change, change.after)

        return await self._store.write(work, actor=actor)

    async def restore(self, caller: Caller, seq: int) -> Entity | None:
        """Make one thing again what it was right after a change; nothing, if that deleted it."""

        async def work(transaction: Transaction) -> Entity | None:
            change = await _existing(transaction, caller, seq)
            _require_right(caller, change)
            return await _put(transaction, change, change.after)

        return await self._store.write(work, actor=caller.actor)


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
    if caller.grant is not None:
        await project_to_change(transaction, caller)
    change = await transaction.changes.get(seq)
    if change is None or change.project not in (None, caller.project) or not _is_seen(caller, change):
        raise ChangeNotFound(seq)
    return change


def _is_seen(caller: Caller, change: Change) -> bool:
    """Whether a change is of the caller's project or of the caller's tasks."""
    if caller.grant is None:
        return True
    entity = change.after if change.after is not None else change.before
    return entity.user == caller.user if isinstance(entity, Task) else change.project == caller.project


def _require_right(caller: Caller, change: Change) -> None:
    """Raises `NotAllowed` for a whole project: undoing that it was made takes away everything in it."""
    if change.kind == "project" and caller.grant is not None and not caller.grant.has("admin"):
        raise NotAllowed("To undo what was done to a whole project, use a token with the scope admin")


async def _put(transaction: Transaction, change: Change, wanted: Entity | None) -> Entity | None:
    """Make a thing what is `wanted`: every byte and time of it, but for the version, which only grows."""
    latest = await transaction.changes.latest(change.kind, change.entity)
    assert latest is not None
    current = latest.after
    if wanted is None:
        if current is not None:
            if isinstance(current, Project):
                await empty(transaction, current)
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
