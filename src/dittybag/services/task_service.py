"""Use cases for tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Change, Purged, require_content
from dittybag.domain.entities import ENTITY_TYPES, Entity
from dittybag.domain.errors import ChangedMeanwhile, ProjectNotFound, TaskNotFound, require
from dittybag.domain.ports import Store, Transaction, Write
from dittybag.domain.projects import Project
from dittybag.domain.queries import TaskQuery
from dittybag.domain.task_drafts import TaskDraft, TaskImport
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
from dittybag.services.caller import (
    Caller,
    ScopedStore,
    checked_query,
    owner_reading,
    reading,
    require_write_scope,
    writing,
)
from dittybag.services.entity_writes import create, delete_all, next_version, require_version, update
from dittybag.services.history_service import restore_state


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


async def create_task(transaction: Transaction, caller: Caller, /, **fields: Any) -> Task:
    """Create a task. `fields`: fields of `Task`."""
    require_write_scope(caller)
    now = transaction.now
    task = Task(id=0, user=caller.user, created_at=now, updated_at=now, **_validate(fields))
    return await create(transaction, task)


async def task_project(transaction: Transaction, caller: Caller, name: str | None) -> Project | None:
    """Return the project of a new task. Raises `ProjectNotFound`."""
    if name is None:
        return None
    project = await transaction.projects.by_name(name)
    if project is None:
        raise ProjectNotFound(name)
    return project


async def create_tasks(
    transaction: Transaction, caller: Caller, drafts: Sequence[Mapping[str, Any]]
) -> list[Task]:
    """Create tasks in one batch: all of them or, if one is invalid, none. `drafts`: fields of each."""
    return [await create_task(transaction, caller, **draft) for draft in drafts]


async def find_task(transaction: Transaction, caller: Caller, id: int) -> Task:
    """Return a task of the caller. Raises `TaskNotFound`."""
    task = await transaction.tasks.get(caller.user, id)
    if task is None:
        raise TaskNotFound(id)
    return task


async def find_own_tasks(transaction: Transaction, caller: Caller, ids: Sequence[int]) -> list[Task]:
    """Return tasks that the caller may change, each once. Raises `TaskNotFound`."""
    require_write_scope(caller)
    return [await find_task(transaction, caller, task_id) for task_id in dict.fromkeys(ids)]


async def page_tasks(transaction: Transaction, caller: Caller, query: TaskQuery) -> list[Task]:
    """Return tasks of the caller by descending priority, then in creation order."""
    return await transaction.tasks.page(replace(query, user=caller.user))


async def update_task(
    transaction: Transaction,
    caller: Caller,
    /,
    id: int,
    *,
    version: int | None = None,
    done: bool | None = None,
    **fields: Any,
) -> Task:
    """Change the given fields, and complete or reopen the task if `done` is given.

    Raises `Outdated` if `version` is given and not the current version.
    """
    require_write_scope(caller)
    fields = _validate(fields)
    (task,) = await find_own_tasks(transaction, caller, [id])
    require_version(task, version)
    if done is not None and done != task.completed:
        fields["completed_at"] = transaction.now if done else None
    return await update(transaction, task, **fields)


async def complete_task(transaction: Transaction, caller: Caller, id: int) -> Task:
    """Complete a task. A completed task stays as it is."""
    (mark,) = await complete_tasks(transaction, caller, [id])
    return mark.task


async def complete_tasks(transaction: Transaction, caller: Caller, ids: Sequence[int]) -> list[TaskMark]:
    """Complete tasks: all of them or, if one does not exist, none."""
    return await _mark(transaction, caller, ids, transaction.now)


async def reopen_tasks(transaction: Transaction, caller: Caller, ids: Sequence[int]) -> list[TaskMark]:
    """Reopen tasks: all of them or, if one does not exist, none."""
    return await _mark(transaction, caller, ids, None)


async def _mark(
    transaction: Transaction, caller: Caller, ids: Sequence[int], completed_at: int | None
) -> list[TaskMark]:
    tasks = await find_own_tasks(transaction, caller, ids)
    changed = {
        task.id: next_version(task, transaction.now, completed_at=completed_at)
        for task in tasks
        if task.completed != (completed_at is not None)
    }
    await transaction.write_all(
        [Write("update", task, changed[task.id]) for task in tasks if task.id in changed]
    )
    return [TaskMark(changed.get(task.id, task), task.id in changed) for task in tasks]


async def delete_task(transaction: Transaction, caller: Caller, id: int) -> Task:
    (task,) = await delete_tasks(transaction, caller, [id])
    return task


async def delete_tasks(transaction: Transaction, caller: Caller, ids: Sequence[int]) -> list[Task]:
    """Delete tasks: all of them or, if one does not exist, none."""
    return await delete_all(transaction, await find_own_tasks(transaction, caller, ids))


async def search_tasks(
    transaction: Transaction,
    caller: Caller,
    text: str,
    *,
    title: bool = True,
    notes: bool = True,
    limit: int | None = None,
    max_bytes: int | None = None,
) -> tuple[int, list[Task]]:
    """Count the open and completed tasks that contain every word of a text; return the first of them.

    Case and accents do not matter. `max_bytes`: the maximum size of the texts of the returned tasks.
    """
    query = TaskQuery(
        user=caller.user,
        text=checked_query(text),
        in_title=title,
        in_notes=notes,
        limit=limit,
        max_bytes=max_bytes,
    )
    return await transaction.tasks.search(query)


async def list_tasks(
    transaction: Transaction,
    caller: Caller,
    filter: TaskFilter,
    *,
    order: TaskOrder,
    limit: int,
    offset: int,
) -> TaskColumn:
    """Return the number of matching tasks and a page of them."""
    checked_query(filter.text)
    _, [found] = await transaction.tasks.columns(
        caller.user, filter, None, [0], span=range(1), order=order, limit=limit, offset=offset
    )
    return found


async def task_board(
    transaction: Transaction,
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
    keys = _column_keys(filter, by)
    last = first + width if keys is None else min(first + width, len(keys))
    count, columns = await transaction.tasks.columns(
        caller.user, filter, by, keys, span=range(min(first, last), last), order=order, limit=limit
    )
    return TaskBoard(columns, count)


async def completion_counts(transaction: Transaction, caller: Caller, since: int) -> dict[int, int]:
    """Count the tasks completed since a time, by quarter of an hour since 1970."""
    return await transaction.tasks.completion_counts(caller.user, since)


async def latest_task_change(transaction: Transaction, caller: Caller, id: int) -> Change:
    """Return the latest change of a task, even a deleted one. Raises `TaskNotFound`."""
    change = await transaction.changes.latest("task", str(id))
    if change is None or not isinstance(change.state, Task | Purged) or change.state.user != caller.user:
        raise TaskNotFound(id)
    if isinstance(change.state, Purged):
        require_content([change])
    return change


async def undo_latest_task_change(
    transaction: Transaction, caller: Caller, id: int, seq: int
) -> Entity | None:
    """Undo the latest change of a task. Returns the restored task, or `None` if the change created it.

    Raises `ChangedMeanwhile` if `seq` is no longer the latest change.
    """
    require_write_scope(caller)
    latest = await latest_task_change(transaction, caller, id)
    if latest.seq != seq:
        raise ChangedMeanwhile
    require_content([latest])
    return await restore_state(transaction, latest, latest.before)


async def task_groups(transaction: Transaction, caller: Caller) -> list[TaskGroup]:
    """Count all and completed tasks by project and priority."""
    return await transaction.tasks.groups(caller.user)


async def task_stats(transaction: Transaction, caller: Caller) -> TaskStats:
    groups = await task_groups(transaction, caller)
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


async def count_all_tasks(transaction: Transaction) -> int:
    """Count the tasks of all users, for the owner of the machine."""
    return await transaction.tasks.count_all()


def _validate(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields as they are stored. Raises `Invalid`."""
    require(problems(**fields))
    return ENTITY_TYPES["task"].normalise(fields)


def _column_keys(filter: TaskFilter, by: TaskGrouping) -> list[int] | list[str] | None:
    """Return the keys of a board's columns, or `None` if they depend on the tasks."""
    if by == "priority":
        every = list(range(PRIORITIES[1], PRIORITIES[0] - 1, -1))
        return every if filter.priority is None else [filter.priority]
    if by == "energy":
        return list(reversed(ENERGIES)) if filter.energy is None else [filter.energy]
    return None if filter.project is None else [filter.project]


class TaskService:
    """Creates, finds, lists, changes, completes and deletes tasks. Users see only their own."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

    create = writing(create_task)
    create_all = writing(create_tasks)
    get = reading(find_task)
    page = reading(page_tasks)
    update = writing(update_task)
    complete = writing(complete_task)
    delete = writing(delete_task)
    complete_all = writing(complete_tasks)
    reopen_all = writing(reopen_tasks)
    delete_all = writing(delete_tasks)
    search = reading(search_tasks, slow=True)
    listing = reading(list_tasks, slow=True)
    board = reading(task_board, slow=True)
    completion_counts = reading(completion_counts, slow=True)
    latest_change = reading(latest_task_change)
    undo_latest = writing(undo_latest_task_change)
    count_all = owner_reading(count_all_tasks, slow=True)
    groups = reading(task_groups, slow=True)
    stats = reading(task_stats, slow=True)

    async def plan(
        self, caller: Caller, drafts: Sequence[TaskDraft], project: str | None = None
    ) -> list[Task]:
        """Create tasks with edges between them, all of them or none. See `plan_tasks`."""
        from dittybag.services.task_plan import plan_tasks

        return await writing(plan_tasks)(self, caller, drafts, project)

    async def import_drafts(
        self,
        caller: Caller,
        drafts: Sequence[TaskDraft],
        project: str | None = None,
        *,
        dry_run: bool = False,
    ) -> TaskImport:
        """Create the tasks that were not imported before. See `import_tasks`."""
        from dittybag.services.task_plan import import_tasks

        return await writing(import_tasks)(self, caller, drafts, project, dry_run=dry_run)
