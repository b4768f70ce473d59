"""The graph of tasks: which one waits for which."""

from __future__ import annotations

from msgspec.structs import replace

from dittybag.domain.ports import Transaction
from dittybag.domain.task_graph import MAX_GRAPH, GraphQuery, GraphTask, TaskGraph
from dittybag.services.caller import Caller
from dittybag.services.task_access import find_task, visible_view


async def task_graph(
    transaction: Transaction, caller: Caller, query: GraphQuery, root: int | None
) -> TaskGraph:
    """Return the tasks of a query with their edges, those with the highest priority first.

    If there are more than its limit, up to half of them are tasks that wait for others, and what they wait
    for. `root`: only the tasks that this one waits for, and those that wait for it, ended ones included.
    """
    query = replace(query, user=caller.user, view=await visible_view(transaction, caller))
    if root is not None:
        await find_task(transaction, caller, root)
        ids = tuple(await _connected(transaction, root))
        query = replace(query, project=None, ids=ids, ended=True, limit=MAX_GRAPH)
    total, found = await transaction.edges.graph(query)
    if total > len(found) and root is None:
        found = [*await _waiting(transaction, query), *found]
    chosen = list({task.id: task for task in found}.values())[: query.limit]
    chosen.sort(key=lambda task: (-task.priority, task.id))
    return TaskGraph({task.id: task for task in chosen}, total - len(chosen))


async def _waiting(transaction: Transaction, query: GraphQuery) -> list[GraphTask]:
    """Return tasks of a query that wait for others, and what they wait for: about half of its limit."""
    _, waiting = await transaction.edges.graph(replace(query, waiting=True, limit=query.limit // 4))
    numbers = [task.id for task in waiting]
    edges = await transaction.edges.blockers(numbers, query.limit // 4) if numbers else []
    blockers = tuple({blocker for _, blocker in edges}.difference(numbers))
    return (
        [*waiting, *(await transaction.edges.graph(replace(query, ids=blockers)))[1]] if blockers else waiting
    )


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
