"""A task with those that it is connected to."""

from __future__ import annotations

from msgspec import Struct

from dittybag.domain.claims import Claim
from dittybag.domain.ports import Transaction
from dittybag.domain.task_graph import GraphQuery, GraphTask
from dittybag.domain.tasks import Task
from dittybag.services.caller import Caller
from dittybag.services.task_access import find_task, visible_view


class TaskRelations(Struct, frozen=True, kw_only=True):
    """A task with those that it is connected to, as far as the caller can see them."""

    task: Task
    #: The live claim of the task.
    claim: Claim | None
    parent: GraphTask | None
    parts: list[GraphTask]
    #: What must be done or dropped before the task, except for its parts.
    blockers: list[GraphTask]
    #: The tasks that wait for this one, except for its parent.
    blocks: list[GraphTask]


async def task_relations(transaction: Transaction, caller: Caller, id: int) -> TaskRelations:
    """Return a task with those that it is connected to. Raises `TaskNotFound`."""
    task = await find_task(transaction, caller, id)
    edges = [*await transaction.edges.blockers([id]), *await transaction.edges.blocked([id])]
    query = GraphQuery(
        user=caller.user,
        view=await visible_view(transaction, caller),
        ended=True,
        ids=tuple(dict.fromkeys(other for _, other in edges)),
    )
    _, others = await transaction.edges.graph(query)
    claim = await transaction.claims.get(id)
    return TaskRelations(
        task=task,
        claim=claim if claim is not None and claim.is_live(transaction.now) else None,
        parent=next((other for other in others if other.id == task.parent), None),
        parts=[other for other in others if other.parent == id],
        blockers=[other for other in others if other.id in task.blocked_by],
        blocks=[other for other in others if id in other.blocked_by],
    )
