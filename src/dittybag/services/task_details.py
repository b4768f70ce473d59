"""A task with everything around it: what it is a part of, what it waits for, and who holds it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.domain.claims import Claim
from dittybag.domain.ports import Transaction
from dittybag.domain.tasks import Task
from dittybag.services.caller import Caller
from dittybag.services.task_access import find_task, find_task_or_none

#: At most this many of the tasks that block a task are returned.
_MAX_BLOCKERS: Final = 20


class TaskParts(Struct, frozen=True):
    """The number of parts of a task, and how many of them are done or dropped."""

    total: int
    ended: int


class TaskDetails(Struct, frozen=True, kw_only=True):
    """A task, and what is around it as far as the caller can see it."""

    task: Task
    parts: TaskParts
    parent: Task | None
    #: Those of the parent, this task included.
    siblings: TaskParts
    #: What blocks the task, ended or not.
    blockers: list[Task]
    #: `None` if nobody holds it.
    claim: Claim | None


async def task_details(transaction: Transaction, caller: Caller, id: int) -> TaskDetails:
    """Return a task with what is around it. Raises `TaskNotFound`."""
    task = await find_task(transaction, caller, id)
    parent = None if task.parent is None else await find_task_or_none(transaction, caller, task.parent)
    found = [
        await find_task_or_none(transaction, caller, blocker) for blocker in task.blocked_by[:_MAX_BLOCKERS]
    ]
    claim = await transaction.claims.get(id)
    return TaskDetails(
        task=task,
        parts=TaskParts(*await transaction.edges.parts(id)),
        parent=parent,
        siblings=TaskParts(0, 0) if parent is None else TaskParts(*await transaction.edges.parts(parent.id)),
        blockers=[blocker for blocker in found if blocker is not None],
        claim=claim if claim is not None and claim.is_live(transaction.now) else None,
    )
