"""The order of work in a graph of tasks: edges, layers, the critical path and what a task blocks.

Nothing here is recursive, so that chains can be of any length. A store has no cycles; if a graph has one
nevertheless, some edges of the tasks that wait for it are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from dittybag.domain.task_graph import GraphTask, TaskGraph

#: `part`: the source is a part of the target, which waits for it.
EdgeKind = Literal["blocks", "part"]


class TaskEdge(Struct, frozen=True):
    """Two tasks of which `target` waits for `source`."""

    source: int
    target: int
    kind: EdgeKind


class WorkOrder(Struct, frozen=True):
    """Tasks in an order in which all edges point forward."""

    ids: list[int]
    edges: list[TaskEdge]
    #: What each task waits for, and what waits for it.
    blockers: dict[int, list[int]]
    blocked: dict[int, list[int]]
    #: Tasks that are done or dropped.
    ended: set[int]


def work_order(graph: TaskGraph, *, only_open: bool = False) -> WorkOrder:
    """Put tasks into an order in which they can be done. Of several, the first has the highest priority."""
    tasks = [task for task in graph.tasks.values() if not (only_open and task.ended)]
    ids = [task.id for task in sorted(tasks, key=_rank)]
    edges = _edges(tasks)
    order = _sort(ids, edges)
    position = {node: number for number, node in enumerate(order)}
    edges = [edge for edge in edges if position[edge.source] < position[edge.target]]
    blockers: dict[int, list[int]] = {node: [] for node in order}
    blocked: dict[int, list[int]] = {node: [] for node in order}
    for edge in sorted(edges, key=lambda edge: (position[edge.source], position[edge.target])):
        blockers[edge.target].append(edge.source)
        blocked[edge.source].append(edge.target)
    return WorkOrder(order, edges, blockers, blocked, {task.id for task in tasks if task.ended})


def _rank(task: GraphTask) -> tuple[int, int]:
    return -task.priority, task.id


def _edges(tasks: Sequence[GraphTask]) -> list[TaskEdge]:
    """Return the edges between these tasks, at most one for two tasks. A part also blocks."""
    known = {task.id for task in tasks}
    kinds: dict[tuple[int, int], EdgeKind] = {}
    for task in tasks:
        for blocker in task.blocked_by:
            if blocker in known and blocker != task.id:
                kinds.setdefault((blocker, task.id), "blocks")
        if task.parent in known and task.parent != task.id:
            kinds[task.id, task.parent] = "part"
    return [TaskEdge(source, target, kind) for (source, target), kind in sorted(kinds.items())]


def _sort(ids: Sequence[int], edges: Sequence[TaskEdge]) -> list[int]:
    blocked: dict[int, list[int]] = {node: [] for node in ids}
    waiting = dict.fromkeys(ids, 0)
    for edge in edges:
        blocked[edge.source].append(edge.target)
        waiting[edge.target] += 1
    order = [node for node in ids if not waiting[node]]
    placed, candidates, position = set(order), iter(ids), 0
    while position < len(ids):
        if position == len(order):
            # All others wait for a cycle.
            order.append(next(node for node in candidates if node not in placed))
            placed.add(order[-1])
        for target in blocked[order[position]]:
            waiting[target] -= 1
            if not waiting[target] and target not in placed:
                order.append(target)
                placed.add(target)
        position += 1
    return order


def layers(order: WorkOrder) -> dict[int, int]:
    """Return the layer of each task: 0 if it waits for none, otherwise one more than the last of those."""
    found: dict[int, int] = {}
    for node in order.ids:
        found[node] = 1 + max((found[blocker] for blocker in order.blockers[node]), default=-1)
    return found


def critical_path(graph: TaskGraph) -> list[int]:
    """Return the longest chain of open tasks, the first to do first; none if no task waits for another.

    Of several, it is the one whose first tasks have the highest priority, then the lowest id. Estimates do
    not count: most tasks have the default one.
    """
    order = work_order(graph, only_open=True)
    lengths: dict[int, int] = {}
    for node in reversed(order.ids):
        lengths[node] = 1 + max((lengths[target] for target in order.blocked[node]), default=0)
    path: list[int] = []
    candidates = order.ids if order.edges else []
    while candidates:
        path.append(min(candidates, key=lambda node: (-lengths[node], _rank(graph.tasks[node]))))
        candidates = order.blocked[path[-1]]
    return path


def all_blocked(order: WorkOrder, node: int) -> set[int]:
    """Return all tasks that wait for a task, directly or through others."""
    found: set[int] = set()
    pending = [node]
    while pending:
        for target in order.blocked.get(pending.pop(), ()):
            if target not in found:
                found.add(target)
                pending.append(target)
    return found


def count_blocked(order: WorkOrder) -> dict[int, int]:
    """Return the number of tasks that wait for each task, directly or through others."""
    return {node: bits.bit_count() for node, bits in _blocked_bits(order, _places(order)).items()}


def direct_edges(order: WorkOrder) -> list[TaskEdge]:
    """Return the edges without those that follow from others: if 3 waits for 2 and 2 for 1, then 3 for 1.

    Edges of parts never follow from others.
    """
    places = _places(order)
    bits = _blocked_bits(order, places)
    parts = {(edge.source, edge.target) for edge in order.edges if edge.kind == "part"}
    found = []
    for source in order.ids:
        # What waits for one of the targets comes after it in the order.
        covered = 0
        for target in order.blocked[source]:
            is_part = (source, target) in parts
            if is_part or not covered >> places[target] & 1:
                found.append(TaskEdge(source, target, "part" if is_part else "blocks"))
            if _passes_on(order, source, target):
                covered |= bits[target]
    return found


def _passes_on(order: WorkOrder, source: int, target: int) -> bool:
    """Whether what waits for the target also waits for the source: not if only the target has ended."""
    return target not in order.ended or source in order.ended


def _places(order: WorkOrder) -> dict[int, int]:
    # The last task has the first place, so that the numbers of bits stay small for most tasks.
    return {node: place for place, node in enumerate(reversed(order.ids))}


def _blocked_bits(order: WorkOrder, places: dict[int, int]) -> dict[int, int]:
    """Return what waits for each task as a set of bits: 10,000 of them take 12 MB, sets would take 2 GB."""
    found: dict[int, int] = {}
    for node in reversed(order.ids):
        bits = 0
        for target in order.blocked[node]:
            bits |= 1 << places[target]
            if _passes_on(order, node, target):
                bits |= found[target]
        found[node] = bits
    return found
