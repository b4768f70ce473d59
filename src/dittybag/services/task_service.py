"""Use cases for tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Change, Purged, require_content
from dittybag.domain.errors import ChangedMeanwhile, Outdated, TaskNotFound, require
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.queries import TaskQuery
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
    """The number of tasks by project, priority and status."""

    by_project: dict[str | None, int]
    by_priority: dict[int, int]
    total: int
    completed: int


class TaskMark(Struct, frozen=True):
    """A task that was completed or reopened, and whether that changed it."""

    task: Task
    changed: bool


class TaskBoard(Struct, frozen=True):
    """Some columns of a board and the number of all its columns."""

    columns: list[TaskColumn]
    #: Including the columns that are not in `columns`.
    count: int


class TaskService:
    """Creates, finds, lists, changes, completes and deletes tasks. Users see only their own."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

    async def create(self, caller: Caller, **fields: Any) -> Task:
        """Create a task. `fields`: fields of `Task`."""
        require_write_scope(caller)
        fields = _validate(fields)

        async def work(transaction: Transaction) -> Task:
            now = transaction.now
            task = Task(id=0, user=caller.user, created_at=now, updated_at=now, **fields)
            stored = await transaction.write("create", None, task)
            assert stored is not None
            return stored

        return await self._store.write(caller, work)

    async def get(self, caller: Caller, id: int) -> Task:
        async def work(transaction: Transaction) -> Task:
            return await _find_task(transaction, caller, id)

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
        """Return tasks by descending priority, then in creation order."""

        query = TaskQuery(
            user=caller.user,
            project=project,
            priority=priority,
            completed=None if completed else False,
            limit=limit,
            offset=offset,
        )
        return await self._store.read(caller, lambda transaction: transaction.tasks.page(query))

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
        """Return the matching tasks in the order of `page`. `completed`: `None` for open and completed."""

        query = TaskQuery(
            user=caller.user,
            project=project,
            priority=priority,
            completed=completed,
            due_by=due_by,
            limit=limit,
        )
        return await self._store.read(caller, lambda transaction: transaction.tasks.page(query), slow=True)

    async def update(self, caller: Caller, id: int, *, version: int | None = None, **fields: Any) -> Task:
        """Change the given fields. Raises `Outdated` if `version` is given and not the current version."""
        require_write_scope(caller)
        fields = _validate(fields)

        async def work(transaction: Transaction) -> Task:
            task = await _find_task(transaction, caller, id)
            if version is not None and version != task.version:
                raise Outdated("task", task.title)
            changed = replace(task, **fields, updated_at=transaction.now, version=task.version + 1)
            await transaction.write("update", task, changed)
            return changed

        return await self._store.write(caller, work)

    async def complete(self, caller: Caller, id: int) -> Task:
        """Complete a task. A completed task stays as it is."""
        require_write_scope(caller)

        async def work(transaction: Transaction) -> Task:
            task = await _find_task(transaction, caller, id)
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
            task = await _find_task(transaction, caller, id)
            await transaction.write("delete", task, None)
            return task

        return await self._store.write(caller, work)

    async def complete_all(self, caller: Caller, ids: Sequence[int]) -> list[TaskMark]:
        """Complete tasks: all of them or, if one does not exist, none."""
        return await self._mark(caller, ids, lambda now: now)

    async def reopen_all(self, caller: Caller, ids: Sequence[int]) -> list[TaskMark]:
        """Reopen tasks: all of them or, if one does not exist, none."""
        return await self._mark(caller, ids, lambda now: None)

    async def _mark(
        self, caller: Caller, ids: Sequence[int], completed_at: Callable[[int], int | None]
    ) -> list[TaskMark]:
        require_write_scope(caller)

        async def work(transaction: Transaction) -> list[TaskMark]:
            now = transaction.now
            marks = []
            for task_id in dict.fromkeys(ids):
                task = await _find_task(transaction, caller, task_id)
                changed = replace(
                    task, completed_at=completed_at(now), updated_at=now, version=task.version + 1
                )
                is_changed = changed.completed != task.completed
                if is_changed:
                    await transaction.write("update", task, changed)
                marks.append(TaskMark(changed if is_changed else task, is_changed))
            return marks

        return await self._store.write(caller, work)

    async def delete_all(self, caller: Caller, ids: Sequence[int]) -> list[Task]:
        """Delete tasks: all of them or, if one does not exist, none."""
        require_write_scope(caller)

        async def work(transaction: Transaction) -> list[Task]:
            deleted = []
            for task_id in dict.fromkeys(ids):
                task = await _find_task(transaction, caller, task_id)
                await transaction.write("delete", task, None)
                deleted.append(task)
            return deleted

        return await self._store.write(caller, work)

    async def search(
        self,
        caller: Caller,
        query: str,
        *,
        title: bool = True,
        notes: bool = True,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> tuple[int, list[Task]]:
        """Count the open and completed tasks that contain every word of `query`; return the first of them.

        Case and accents do not matter. `max_bytes`: the maximum size of the texts of the returned tasks.
        """
        wanted = TaskQuery(
            user=caller.user,
            text=checked_query(query),
            in_title=title,
            in_notes=notes,
            limit=limit,
            max_bytes=max_bytes,
        )
        return await self._store.read(caller, lambda transaction: transaction.tasks.search(wanted), slow=True)

    async def listing(
        self, caller: Caller, filter: TaskFilter, *, order: TaskOrder, limit: int, offset: int
    ) -> TaskColumn:
        """Return the number of matching tasks and a page of them."""
        checked_query(filter.text)

        async def work(transaction: Transaction) -> TaskColumn:
            _, [found] = await transaction.tasks.columns(
                caller.user, filter, None, [0], span=range(1), order=order, limit=limit, offset=offset
            )
            return found

        return await self._store.read(caller, work, slow=True)

    async def board(
        self,
        caller: Caller,
        filter: TaskFilter,
        by: TaskGrouping,
        *,
        order: TaskOrder,
        limit: int,
        width: int,
        first: int = 0,
    ) -> TaskBoard:
        """Return `width` columns from column `first` on, each with its first tasks.

        All priorities and energies are columns, highest first. Of projects, those with the most tasks come
        first.
        """
        checked_query(filter.text)

        async def work(transaction: Transaction) -> TaskBoard:
            keys = _column_keys(filter, by)
            last = first + width if keys is None else min(first + width, len(keys))
            count, columns = await transaction.tasks.columns(
                caller.user, filter, by, keys, span=range(min(first, last), last), order=order, limit=limit
            )
            return TaskBoard(columns, count)

        return await self._store.read(caller, work, slow=True)

    async def completion_counts(self, caller: Caller, since: int) -> dict[int, int]:
        """Count the tasks completed since a time, by quarter of an hour since 1970."""

        async def work(transaction: Transaction) -> dict[int, int]:
            return await transaction.tasks.completion_counts(caller.user, since)

        return await self._store.read(caller, work, slow=True)

    async def latest_change(self, caller: Caller, id: int) -> Change:
        """Return the latest change of a task, even a deleted one. Raises `TaskNotFound`."""

        async def work(transaction: Transaction) -> Change:
            return await _latest_change(transaction, caller, id)

        return await self._store.read(caller, work)

    async def undo_latest(self, caller: Caller, id: int, seq: int) -> Task | None:
        """Undo the latest change of a task. Returns the restored task, or `None` if the change created it.

        Raises `ChangedMeanwhile` if `seq` is no longer the latest change.
        """
        require_write_scope(caller)

        async def work(transaction: Transaction) -> Task | None:
            latest = await _latest_change(transaction, caller, id)
            if latest.seq != seq:
                raise ChangedMeanwhile
            require_content([latest])
            wanted, current = latest.before, latest.after
            assert isinstance(wanted, Task | None)
            assert isinstance(current, Task | None)
            if wanted is None:
                await transaction.write("restore", current, None)
                return None
            last = wanted if current is None else current
            return await transaction.write("restore", current, replace(wanted, version=last.version + 1))

        return await self._store.write(caller, work)

    async def count_all(self) -> int:
        """Count the tasks of all users, for the owner of the machine."""

        async def work(transaction: Transaction) -> int:
            return await transaction.tasks.count_all()

        return await self._store.read(None, work, slow=True)

    async def groups(self, caller: Caller) -> list[TaskGroup]:
        """Count all and completed tasks by project and priority."""

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


def _validate(fields: dict[str, Any]) -> dict[str, Any]:
    """Validate fields and return them as they are stored: an empty string as `None`. Raises `Invalid`."""
    require(problems(**fields))
    return {
        name: value or None if name in ("project", "notes", "due_date") else value
        for name, value in fields.items()
    }


def _column_keys(filter: TaskFilter, by: TaskGrouping) -> list[int] | list[str] | None:
    """Return the keys of a board's columns, or `None` if they depend on the tasks."""
    if by == "priority":
        every = list(range(PRIORITIES[1], PRIORITIES[0] - 1, -1))
        return every if filter.priority is None else [filter.priority]
    if by == "energy":
        return list(reversed(ENERGIES)) if filter.energy is None else [filter.energy]
    return None if filter.project is None else [filter.project]


async def _latest_change(transaction: Transaction, caller: Caller, id: int) -> Change:
    change = await transaction.changes.latest("task", str(id))
    if change is None or not isinstance(change.state, Task | Purged) or change.state.user != caller.user:
        raise TaskNotFound(id)
    if isinstance(change.state, Purged):
        require_content([change])
    return change


async def _find_task(transaction: Transaction, caller: Caller, id: int) -> Task:
    task = await transaction.tasks.get(caller.user, id)
    if task is None:
        raise TaskNotFound(id)
    return task
