"""Tasks in work whose claim is gone: nobody would ever be given them, so they are to do again."""

from __future__ import annotations

from msgspec.structs import replace

from dittybag.domain.ports import Transaction
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.tasks import ASSIGNEE_LENGTH, Task
from dittybag.services.caller import Caller
from dittybag.services.history_service import iterate_changes


async def without_claim(transaction: Transaction, task: Task) -> Task:
    """Return a task as it is without its claim: to do and assigned to nobody if its work began with one.

    A task that a person moved to Doing has no claim, and stays.
    """
    if task.status != "doing" or not await _was_claimed(transaction, task.id):
        return task
    return replace(task, status="todo", assignee=None)


async def _was_claimed(transaction: Transaction, task: int) -> bool:
    """Whether the last work on a task began with a claim, which assigns the task to the actor.

    A person may move a task to Doing that is theirs already.
    """
    async for change in iterate_changes(transaction, ChangeQuery(kind="task", entity=str(task))):
        before, after = change.before, change.after
        if change.action == "restore" or not isinstance(after, Task) or after.status != "doing":
            continue
        if not isinstance(before, Task):
            # It was made in work.
            return False
        if before.status != "doing" or before.assignee != after.assignee:
            is_new = before.assignee != after.assignee or change.interface == "mcp"
            return is_new and after.assignee == change.actor[:ASSIGNEE_LENGTH]
    return False


async def unclaimed_task(transaction: Transaction, caller: Caller, task: Task) -> Task:
    """See `without_claim`."""
    return await without_claim(transaction, task)
