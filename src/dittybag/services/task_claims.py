"""Checks of claims: an agent that writes to a claimed task has to name its fence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dittybag.domain.errors import ClaimLost, TaskClaimed
from dittybag.domain.ports import Transaction
from dittybag.domain.tasks import Task
from dittybag.services.caller import Caller

if TYPE_CHECKING:
    from dittybag.domain.claims import Claim


async def require_fence(
    transaction: Transaction, caller: Caller, task: Task, fence: int | None
) -> Claim | None:
    """Return the claim with this fence, renewed; `None` if none is needed.

    Raises `ClaimLost` if the fence is no longer valid. Without one, raises `TaskClaimed` if somebody holds
    the task, unless the caller is a person, who may change every task.
    """
    if fence is None:
        await require_unclaimed(transaction, caller, [task.id])
        return None
    claim = await transaction.claims.get(task.id)
    if claim is not None and claim.is_live(transaction.now):
        if claim.fence == fence:
            renewed = replace(claim, until=transaction.now + claim.lease)
            await transaction.claims.put(renewed)
            return renewed
        raise ClaimLost(task.id, fence, holder=claim.holder, since=claim.claimed_at)
    raise ClaimLost(task.id, fence)


async def require_unclaimed(transaction: Transaction, caller: Caller, tasks: Sequence[int]) -> None:
    """Raise `TaskClaimed` if somebody holds one of the tasks and the caller is an agent."""
    if caller.interface != "mcp":
        return
    for claim in await transaction.claims.of_tasks(tasks):
        if claim.is_live(transaction.now):
            raise TaskClaimed(claim.task, claim.holder, claim.claimed_at, claim.until)
