"""The edges between tasks: a task must not wait for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dittybag.domain.errors import Invalid, Problem, TaskCycle, TaskNotFound, clip
from dittybag.domain.ports import Transaction
from dittybag.domain.tasks import Task
from dittybag.services.caller import Caller
from dittybag.services.task_access import find_task, require_unlocked

#: Of a cycle, at most this many tasks are named.
_MAX_NAMED: Final = 20


async def require_edges(
    transaction: Transaction, caller: Caller, task: Task, *, blocked_by: Sequence[int], parent: int | None
) -> None:
    """Raise an error if a task cannot have these edges: to tasks that do not exist, or in a cycle."""
    new = [blocker for blocker in blocked_by if blocker not in task.blocked_by]
    for blocker in new:
        await require_task(transaction, caller, blocker, "blocked_by")
    if parent is not None and parent != task.parent:
        found = await require_task(transaction, caller, parent, "parent")
        # The parent will wait for the task.
        await require_unlocked(transaction, caller, found.project_id)
    # A task waits for those that block it, and its parent waits for it. Nothing waits for a new task.
    path = await _path(transaction, dict.fromkeys(new), task.id) if task.id else None
    if path is not None:
        raise TaskCycle(await task_titles(transaction, caller, [task.id, *path]))
    if parent is None or parent == task.parent:
        return
    if (
        path := await _path(transaction, {task.id: None} | dict.fromkeys(blocked_by, task.id), parent)
    ) is not None:
        raise TaskCycle(await task_titles(transaction, caller, [parent, *path]))


async def require_no_cycle(transaction: Transaction, task: int) -> None:
    """Raise `TaskCycle` if a stored task waits for itself."""
    blockers = [blocker for _, blocker in await transaction.edges.blockers([task])]
    if (path := await _path(transaction, dict.fromkeys(blockers), task)) is not None:
        raise TaskCycle([f"task {number}" for number in (task, *path)])


async def require_task(transaction: Transaction, caller: Caller, id: int, field: str) -> Task:
    """Return a task that a field or a filter names. Raises `Invalid`."""
    try:
        return await find_task(transaction, caller, id)
    except TaskNotFound:
        raise Invalid([Problem(field, f"{field}: task {id} does not exist")]) from None


async def _path(transaction: Transaction, start: Mapping[int, int | None], goal: int) -> list[int] | None:
    """Return tasks, each of which waits for the next and the last for `goal`; `None` if there is no path.

    `start`: the tasks to start from, each with the one that waits for it, if any.
    """
    before = dict(start)
    if goal not in before:
        # One query: a chain may be of any length.
        if not before or not await transaction.edges.leads_to(list(before), goal):
            return None
        blockers: dict[int, list[int]] = {}
        for task, blocker in await transaction.edges.all_blockers(list(before)):
            blockers.setdefault(task, []).append(blocker)
        level = list(before)
        while goal not in before:
            following = {blocker: task for task in level for blocker in blockers.get(task, ())}
            level = [blocker for blocker in following if blocker not in before]
            before |= {blocker: following[blocker] for blocker in level}
    return _trace(before, goal)


def _trace(before: Mapping[int, int | None], goal: int) -> list[int]:
    path: list[int] = []
    task = before[goal]
    while task is not None:
        path.append(task)
        task = before[task]
    return path[::-1]


async def task_titles(transaction: Transaction, caller: Caller, ids: Sequence[int]) -> list[str]:
    """Return the tasks for people. A task that the caller cannot see is named by its number only."""
    titles = []
    for number in ids[:_MAX_NAMED]:
        try:
            task = await find_task(transaction, caller, number)
        except TaskNotFound:
            titles.append(f"task {number}" if number else "the new task")
        else:
            titles.append(f"task {number} '{clip(task.title, 60)}'")
    return titles if len(ids) <= _MAX_NAMED else [*titles, f"{len(ids) - _MAX_NAMED} more tasks"]
