"""The graph of tasks: which one waits for which."""

from __future__ import annotations

from msgspec.structs import replace

from dittybag.domain.ports import Transaction
from dittybag.domain.task_graph import MAX_GRAPH, GraphQuery, TaskGraph
from dittybag.services.caller import Caller
from dittybag.services.task_access import find_task, visible_view


async def task_graph(
    transaction: Transaction,
    caller: Caller,
    project: str | None,
    root: int | None,
    ended: bool,  # noqa: FBT001  # passed on by position
) -> TaskGraph:
    """Return the open tasks, or all of them, with their edges, those with the highest priority first.

    `root`: only the tasks that this one waits for, and those that wait for it, ended ones included.
    """
    query = GraphQuery(user=caller.user, view=await visible_view(transaction, caller))
    if root is None:
        query = replace(query, project=project, ended=ended)
    else:
        await find_task(transaction, caller, root)
        query = replace(query, ids=tuple(await _connected(transaction, root)), ended=True)
    total, found = await transaction.edges.graph(query)
    return TaskGraph({task.id: task for task in found}, total - len(found))


async def _connected(transaction: Transaction, root: int) -> list[int]:
    """Return a task, those that it waits for and those that wait for it, in all."""
    found = {root: None}
    for neighbours in (transaction.edges.blockers, transaction.edges.blocked):
        level = [root]
        while level and len(found) < MAX_GRAPH:
            new = dict.fromkeys(other for _, other in await neighbours(level))
            level = [number for number in new if number not in found]
            found |= dict.fromkeys(level)
    return list(found)
