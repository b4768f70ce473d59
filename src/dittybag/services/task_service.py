"""Use cases of tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.errors import ChangedMeanwhile, Outdated, TaskNotFound, require
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.tasks import (
    ENERGIES,
    PRIORITIES,
    Task,
    TaskColumn,
    TaskFilter,
    TaskGroup,
    TaskGrouping,
    TaskOrder,
    problems,
)
from dittybag.services.caller import Caller, ScopedStore, checked_query, require_write_scope


class TaskStats(Struct, frozen=True):
    """How many tasks there are, by project, priority and status."""

    by_project: dict[str | None, int]
    by_priority: dict[int, int]
    total: int
    completed: int


class TaskMark(Struct, frozen=True):
    """A task that was marked as done or not done, and whether it had not been that before."""

    task: Task
    changed: bool


class TaskBoard(Struct, frozen=True):
    """Tasks in columns, and how many columns there are."""

    columns: list[TaskColumn]
    #: With those that are not here.
    count: int


class TaskService:
    """Create, find, list, change, complete and delete tasks. Everybody sees only their own."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

    async def create(self, caller: Caller, **fields: Any) -> Task:
        """Store a new task; `fields` are those of `Task`, as far as they are given."""
        require_write_scope(caller)
        fields = _checked(fields)

        async def work(transaction: Transaction) -> Task:
            now = transaction.now
            task = Task(id=0, user=caller.user, created_at=now, updated_at=now, **fields)
            stored = await transaction.write("create", None, task)
            assert stored is not None
            return stored

        return await self._store.write(caller, work)

    async def get(self, caller: Caller, id: int) -> Task:
        async def work(transaction: Transaction) -> Task:
            return await _existing(transaction, caller, id)

        return await self._store.read(caller, work)

    async def page(
        self,
        caller: Caller,
        *,
        project: str | None,
        priority: int | None,
        completed: bool,
        limit: int,
        offset: int,
    ) -> list[Task]:
        """The highest priority first, then in the order of creation."""

        async def work(transaction: Transaction) -> list[Task]:
            return await transaction.tasks.page(
                caller.user,
                project=project,
                priority=priority,
                completed=completed,
                limit=limit,
                offset=offset,
            )

        return await self._store.read(caller, work)

    async def filter(
        self,
        caller: Caller,
        *,
        project: str | None = None,
        priority: int | None = None,
        completed: bool | None = False,
        due_by: str | None = None,
        limit: int | None = None,
    ) -> list[Task]:
        """Those that fit, ordered like a page. `completed`: nothing for done ones and others."""

        async def work(transaction: Transaction) -> list[Task]:
            return await transaction.tasks.filter(
                caller.user,
                project=project,
                priority=priority,
                completed=completed,
                due_by=due_by,
                limit=limit,
            )

        return await self._store.read(caller, work, slow=True)

    async def update(self, caller: Caller, id: int, *, version: int | None = None, **fields: Any) -> Task:
        """Change the fields that are given; with `version`, only if it has not been changed since then."""
        require_write_scope(caller)
        fields = _checked(fields)

        async def work(transaction: Transaction) -> Task:
            task = await _existing(transaction, caller, id)
            if version is not None and version != task.version:
                raise Outdated("task", task.title)
            changed = replace(task, **fields, updated_at=transaction.now, version=task.version + 1)
            await transaction.write("update", task, changed)
            return changed

        return await self._store.write(caller, work)

    async def complete(self, caller: Caller, id: int) -> Task:
        """Mark a task as done. One that is done already stays as it is."""
        require_write_scope(caller)

        async def work(transaction: Transaction) -> Task:
            task = await _existing(transaction, caller, id)
            if task.completed:
                return task
            now = transaction.now
            done = replace(task, completed_at=now, updated_at=now, version=task.version + 1)
            await transaction.write("update", task, done)
            return done

        return await self._store.write(caller, work)

    async def delete(self, caller: Caller, id: int) -> Task:
        require_write_scope(caller)

        async def work(transaction: Transaction) -> Task:
            task = await _existing(transaction, caller, id)
            await transaction.write("delete", task, None)
            return task

        return await self._store.write(caller, work)

    async def complete_all(self, caller: Caller, ids: Sequence[int]) -> list[TaskMark]:
        """Mark tasks as done, all of them or, if one is missing, none."""
        return await self._mark(caller, ids, lambda now: now)

    async def reopen_all(self, caller: Caller, ids: Sequence[int]) -> list[TaskMark]:
        """Mark tasks as not done, all of them or, if one is missing, none."""
        return await self._mark(caller, ids, lambda now: None)

    async def _mark(
        self, caller: Caller, ids: Sequence[int], completed_at: Callable[[int], int | None]
    ) -> list[TaskMark]:
        require_write_scope(caller)

        async def work(transaction: Transaction) -> list[TaskMark]:
            now = transaction.now
            marks = []
            for number in dict.fromkeys(ids):
                task = await _existing(transaction, caller, number)
                changed = replace(
                    task, completed_at=completed_at(now), updated_at=now, version=task.version + 1
                )
                is_news = changed.completed != task.completed
                if is_news:
                    await transaction.write("update", task, changed)
                marks.append(TaskMark(changed if is_news else task, is_news))
            return marks

        return await self._store.write(caller, work)

    async def delete_all(self, caller: Caller, ids: Sequence[int]) -> list[Task]:
        """Delete tasks, all of them or, if one is missing, none."""
        require_write_scope(caller)

        async def work(transaction: Transaction) -> list[Task]:
            gone = []
            for number in dict.fromkeys(ids):
                task = await _existing(transaction, caller, number)
                await transaction.write("delete", task, None)
                gone.append(task)
            return gone

        return await self._store.write(caller, work)

    async def search(
        self, caller: Caller, query: str, *, title: bool = True, notes: bool = True, limit: int | None = None
    ) -> tuple[int, list[Task]]:
        """Those with `query` in them, in any case, done ones too."""
        checked_query(query)

        async def work(transaction: Transaction) -> tuple[int, list[Task]]:
            return await transaction.tasks.search(caller.user, query, title=title, notes=notes, limit=limit)

        return await self._store.read(caller, work, slow=True)

    async def listing(
        self, caller: Caller, choice: TaskFilter, *, order: TaskOrder, limit: int, offset: int
    ) -> TaskColumn:
        """How many of them there are, and a page of them."""
        checked_query(choice.text)

        async def work(transaction: Transaction) -> TaskColumn:
            _, [found] = await transaction.tasks.columns(
                caller.user, choice, None, [0], span=range(1), order=order, limit=limit, offset=offset
            )
            return found

        return await self._store.read(caller, work, slow=True)

    async def board(
        self,
        caller: Caller,
        choice: TaskFilter,
        by: TaskGrouping,
        *,
        order: TaskOrder,
        limit: int,
        width: int,
        first: int = 0,
    ) -> TaskBoard:
        """The first tasks of each column, for so many columns as it is wide, from number `first` on.

        Priorities and energies are all there, from the highest on; of projects, those with the most tasks.
        """
        checked_query(choice.text)

        async def work(transaction: Transaction) -> TaskBoard:
            keys = _keys(choice, by)
            last = first + width if keys is None else min(first + width, len(keys))
            count, columns = await transaction.tasks.columns(
                caller.user, choice, by, keys, span=range(min(first, last), last), order=order, limit=limit
            )
            return TaskBoard(columns, count)

        return await self._store.read(caller, work, slow=True)

    async def completion_counts(self, caller: Caller, since: int) -> dict[int, int]:
        """How many were done in each quarter of an hour, counted from 1970, since a time."""

        async def work(transaction: Transaction) -> dict[int, int]:
            return await transaction.tasks.completion_counts(caller.user, since)

        return await self._store.read(caller, work, slow=True)

    async def latest_change(self, caller: Caller, id: int) -> Change:
        """What was done last to a task, also to one that is gone. Raises `TaskNotFound`."""

        async def work(transaction: Transaction) -> Change:
            return await _latest_change(transaction, caller, id)

        return await self._store.read(caller, work)

    async def undo_latest(self, caller: Caller, id: int, seq: int) -> Task | None:
        """Make a task again what it was before a change, its latest; nothing, if that created it.

        Raises `ChangedMeanwhile` if it is not the latest any more.
        """
        require_write_scope(caller)

        async def work(transaction: Transaction) -> Task | None:
            latest = await _latest_change(transaction, caller, id)
            if latest.seq != seq:
                raise ChangedMeanwhile
            wanted, current = latest.before, latest.after
            if wanted is None:
                await transaction.write("restore", current, None)
                return None
            last = wanted if current is None else current
            assert isinstance(wanted, Task)
            return await transaction.write("restore", current, replace(wanted, version=last.version + 1))

        return await self._store.write(caller, work)

    async def count_all(self) -> int:
        """How many there are of all users: for the owner of the machine."""

        async def work(transaction: Transaction) -> int:
            return await transaction.tasks.count_all()

        return await self._store.read(None, work, slow=True)

    async def groups(self, caller: Caller) -> list[TaskGroup]:
        """How many there are of each project and priority, and how many of them are done."""

        async def work(transaction: Transaction) -> list[TaskGroup]:
            return await transaction.tasks.groups(caller.user)

        return await self._store.read(caller, work, slow=True)

    async def stats(self, caller: Caller) -> TaskStats:
        groups = await self.groups(caller)
        by_project: dict[str | None, int] = {}
        by_priority: dict[int, int] = {}
        for group in groups:
            by_project[group.project] = by_project.get(group.project, 0) + group.total
            by_priority[group.priority] = by_priority.get(group.priority, 0) + group.total
        return TaskStats(
            by_project,
            by_priority,
            total=sum(group.total for group in groups),
            completed=sum(group.completed for group in groups),
        )


def _checked(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields as they are stored: an empty text means none. Raises `Invalid`."""
    require(problems(**fields))
    return {
        name: value or None if name in ("project", "notes", "due_date") else value
        for name, value in fields.items()
    }


def _keys(choice: TaskFilter, by: TaskGrouping) -> list[int] | list[str] | None:
    """The columns of a board, as far as they are known beforehand."""
    if by == "priority":
        every = list(range(PRIORITIES[1], PRIORITIES[0] - 1, -1))
        return every if choice.priority is None else [choice.priority]
    if by == "energy":
        return list(reversed(ENERGIES)) if choice.energy is None else [choice.energy]
    return None if choice.project is None else [choice.project]


async def _latest_change(transaction: Transaction, caller: Caller, id: int) -> Change:
    change = await transaction.changes.latest("task", str(id))
    task = None if change is None else change.after or change.before
    if change is None or not isinstance(task, Task) or task.user != caller.user:
        raise TaskNotFound(id)
    return change


async def _existing(transaction: Transaction, caller: Caller, id: int) -> Task:
    task = await transaction.tasks.get(caller.user, id)
    if task is None:
        raise TaskNotFound(id)
    return task
