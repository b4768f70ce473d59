"""Edges, layers, the critical path and what a task blocks, in graphs of tasks."""

from __future__ import annotations

import pytest
from hypothesis import given

from dittybag.domain.task_graph import TaskGraph, TaskState
from dittybag.domain.task_order import (
    TaskEdge,
    WorkOrder,
    all_blocked,
    count_blocked,
    critical_path,
    direct_edges,
    layers,
    work_order,
)
from dittybag.domain.tasks import TaskStatus
from tests.domain.task_graphs import MINUTE, NOW, chain, graph_of, graphs, large_graph


def waits(graph: TaskGraph, *, only_open: bool = False) -> set[tuple[int, int]]:
    """Return all pairs of a task and one that waits for it, as a definition and not as a program."""
    tasks = {node: task for node, task in graph.tasks.items() if not (only_open and task.ended)}
    return {
        (source, target)
        for source in tasks
        for target in tasks
        if source in tasks[target].blocked_by or tasks[source].parent == target
        if source != target
    }


def chains(graph: TaskGraph) -> list[list[int]]:
    """Return all chains of open tasks."""
    pairs = waits(graph, only_open=True)
    found = [[node] for node, task in graph.tasks.items() if not task.ended]
    for path in found:
        found += [[*path, target] for source, target in pairs if source == path[-1]]
    return found


def reachable(pairs: set[tuple[int, int]], start: int) -> set[int]:
    found: set[int] = set()
    while more := {target for source, target in pairs if source in found | {start}} - found:
        found |= more
    return found


@given(graphs())
def test_the_critical_path_is_the_first_of_the_longest_chains(graph: TaskGraph) -> None:
    def rank(path: list[int]) -> tuple[int, list[tuple[int, int]]]:
        return -len(path), [(-graph.tasks[node].priority, node) for node in path]

    assert critical_path(graph) == min(
        (path for path in chains(graph) if len(path) > 1), key=rank, default=[]
    )


@pytest.mark.parametrize(
    ("graph", "path"),
    [
        (graph_of({}), []),
        (graph_of({1: [], 2: []}), []),
        (graph_of({1: [], 2: [1], 3: [2], 4: []}, fields={4: {"priority": 5}}), [1, 2, 3]),
        # A done task interrupts a chain.
        (graph_of({1: [], 2: [1], 3: [2], 4: [3], 5: [4]}, fields={2: {"status": "done"}}), [3, 4, 5]),
        # A task comes after its parts.
        (graph_of({1: [], 2: [], 3: [2]}, {2: 1, 3: 1}), [2, 3, 1]),
        # Priority before node, and the first task before the second.
        (graph_of({1: [], 2: [1], 3: [], 4: [3]}, fields={3: {"priority": 4}}), [3, 4]),
        (graph_of({1: [], 2: [1], 3: [1]}, fields={3: {"priority": 4}}), [1, 3]),
        (graph_of({1: [], 2: [1], 3: [1]}), [1, 2]),
    ],
    ids=["empty", "no chain", "longest", "ended", "parts", "first", "second", "id"],
)
def test_the_critical_path(graph: TaskGraph, path: list[int]) -> None:
    assert critical_path(graph) == path


@given(graphs())
def test_edges_are_those_of_blockers_and_parts(graph: TaskGraph) -> None:
    order = work_order(graph)
    assert {(edge.source, edge.target) for edge in order.edges} == waits(graph)
    assert len(order.edges) == len(waits(graph))
    for edge in order.edges:
        assert (edge.kind == "part") == (graph.tasks[edge.source].parent == edge.target)


@given(graphs(cyclic=True))
def test_all_edges_point_forward_even_if_there_are_cycles(graph: TaskGraph) -> None:
    order = work_order(graph)
    assert sorted(order.ids) == sorted(graph.tasks)
    position = {node: number for number, node in enumerate(order.ids)}
    layer = layers(order)
    for edge in order.edges:
        assert position[edge.source] < position[edge.target]
        assert layer[edge.source] < layer[edge.target]
    for node, number in layer.items():
        assert number == max((layer[blocker] + 1 for blocker in order.blockers[node]), default=0)
    # Edges are left out only behind cycles.
    pairs = waits(graph)
    circular = {node for node in graph.tasks if node in reachable(pairs, node)}
    kept = {(edge.source, edge.target) for edge in order.edges}
    for source, _ in pairs - kept:
        assert circular & {source} or any(source in reachable(pairs, node) for node in circular)
    path = critical_path(graph)
    assert len(path) == len(set(path))


@given(graphs(cyclic=True))
def test_what_a_task_blocks(graph: TaskGraph) -> None:
    order = work_order(graph, only_open=True)
    assert sorted(order.ids) == sorted(node for node, task in graph.tasks.items() if not task.ended)
    pairs = {(edge.source, edge.target) for edge in order.edges}
    counts = count_blocked(order)
    for node in order.ids:
        assert set(order.blocked[node]) == {target for source, target in pairs if source == node}
        assert all_blocked(order, node) == reachable(pairs, node)
        assert counts[node] == len(reachable(pairs, node))


def test_a_task_that_is_not_in_the_order_blocks_nothing() -> None:
    assert all_blocked(work_order(graph_of({1: []})), 7) == set()


def waiting_through_open_tasks(graph: TaskGraph, pairs: set[tuple[int, int]], start: int) -> set[int]:
    """Return what waits for a task through chains in which no open task comes before an ended one."""
    found: set[int] = set()
    chains = [[start]]
    for path in chains:
        for source, target in pairs:
            if source == path[-1]:
                found.add(target)
                if graph.tasks[source].ended or not graph.tasks[target].ended:
                    chains.append([*path, target])
    return found


@given(graphs())
def test_direct_edges_are_those_that_follow_from_no_others(graph: TaskGraph) -> None:
    order = work_order(graph)
    direct = direct_edges(order)
    for edge in order.edges:
        others = waits(graph) - {(edge.source, edge.target)}
        follows = edge.target in waiting_through_open_tasks(graph, others, edge.source)
        assert (edge in direct) == (edge.kind == "part" or not follows)
    assert len(direct) == len(set(direct))


def test_an_edge_does_not_follow_from_those_of_a_done_task() -> None:
    graph = graph_of({1: [], 2: [1], 3: [1, 2]}, fields={2: {"status": "done"}})
    assert TaskEdge(1, 3, "blocks") in direct_edges(work_order(graph))
    reopened = graph_of({1: [], 2: [1], 3: [1, 2]})
    assert TaskEdge(1, 3, "blocks") not in direct_edges(work_order(reopened))


def test_a_part_that_also_blocks_is_one_edge() -> None:
    graph = graph_of({1: [2], 2: []}, {2: 1})
    assert work_order(graph).edges == [TaskEdge(2, 1, "part")]


def test_equal_tasks_are_ordered_by_priority_and_id() -> None:
    graph = graph_of({3: [], 1: [], 2: []}, fields={2: {"priority": 5}})
    assert work_order(graph).ids == [2, 1, 3]


def test_a_chain_of_10_000_tasks() -> None:
    graph = chain(10_000)
    order = work_order(graph)
    assert critical_path(graph) == order.ids == list(range(1, 10_001))
    assert layers(order)[10_000] == 9_999
    assert count_blocked(order)[1] == len(all_blocked(order, 1)) == 9_999
    assert len(direct_edges(order)) == 9_999


def test_10_000_tasks_with_30_000_edges() -> None:
    graph = large_graph(10_000, 3)
    order = work_order(graph)
    assert len(order.edges) > 29_900
    path = critical_path(graph)
    assert len(path) == max(layers(order).values()) + 1
    assert count_blocked(order)[1] == len(all_blocked(order, 1))
    assert len(direct_edges(order)) < len(order.edges)


def test_a_ring_of_10_000_tasks_ends() -> None:
    count = 10_000
    order: WorkOrder = work_order(graph_of({node: [node % count + 1] for node in range(1, count + 1)}))
    assert len(order.ids) == count
    assert len(order.edges) == count - 1


@pytest.mark.parametrize(
    ("status", "waits_for", "held_until", "state", "worker"),
    [
        ("todo", 0, None, "ready", "ann"),
        ("todo", 2, None, "blocked", "ann"),
        ("doing", 0, None, "doing", "ann"),
        ("doing", 0, NOW + MINUTE, "doing", "agent"),
        ("doing", 0, NOW, "ready", "ann"),
        ("review", 1, None, "review", "ann"),
        ("done", 0, None, "done", "ann"),
        ("dropped", 0, None, "dropped", "ann"),
    ],
)
def test_the_state_and_the_worker_of_a_task(
    status: TaskStatus, waits_for: int, held_until: int | None, state: TaskState, worker: str
) -> None:
    blockers = range(2, 2 + waits_for)
    fields = {"status": status, "assignee": "ann", "holder": "agent", "held_until": held_until}
    task = graph_of({1: blockers, 2: [], 3: []}, fields={1: fields}).tasks[1]
    assert (task.state(NOW), task.worker(NOW)) == (state, worker)
