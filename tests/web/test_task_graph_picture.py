"""The picture of a graph of tasks: positions and lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.task_graph import TaskGraph
from dittybag.web.task_graph_layout import (
    BOX_HEIGHT,
    BOX_WIDTH,
    MAX_EDGES,
    MAX_TASKS,
    EdgeLine,
    GraphLayout,
    TaskBox,
    edges_of,
    lay_out,
)
from tests.domain.task_graphs import chain, graph_of, graphs, large_graph


def boxes_of(layout: GraphLayout) -> dict[int, TaskBox]:
    return {box.task.id: box for box in layout.boxes}


def passed_boxes(layout: GraphLayout, line: EdgeLine) -> Iterator[int]:
    """Yield the tasks that a line runs through on its way through a layer."""
    for start, end in zip(line.points[1:-1:2], line.points[2:-1:2], strict=True):
        assert start[1] == end[1]
        for box in layout.boxes:
            if box.x == start[0] and box.y < start[1] < box.y + BOX_HEIGHT:
                yield box.task.id


@given(st.one_of(graphs(9), graphs(9, cyclic=True)))
def test_nothing_overlaps_and_all_lines_lead_to_the_right(graph: TaskGraph) -> None:
    layout = lay_out(graph)
    boxes = boxes_of(layout)
    assert set(boxes) == set(graph.tasks)
    for one, other in combinations(layout.boxes, 2):
        assert abs(one.x - other.x) > BOX_WIDTH or abs(one.y - other.y) > BOX_HEIGHT
    for box in layout.boxes:
        assert 0 < box.x < layout.width - BOX_WIDTH
        assert 0 < box.y < layout.height - BOX_HEIGHT
    assert len(layout.lines) + layout.left_out_edges == len(edges_of(graph.tasks.values()))
    for line in layout.lines:
        source, target = boxes[line.edge.source], boxes[line.edge.target]
        assert line.points[0] == (source.x + BOX_WIDTH, source.y + BOX_HEIGHT / 2)
        assert line.points[-1] == (target.x, target.y + BOX_HEIGHT / 2)
        assert [x for x, _ in line.points] == sorted(x for x, _ in line.points)
        assert all(0 < y < layout.height for _, y in line.points)
        assert list(passed_boxes(layout, line)) == []


@given(graphs(9))
def test_without_a_cycle_every_edge_is_drawn(graph: TaskGraph) -> None:
    layout = lay_out(graph)
    assert layout.left_out_edges == 0
    assert {line.edge for line in layout.lines} == set(edges_of(graph.tasks.values()))


def test_a_chain_is_a_straight_line() -> None:
    layout = lay_out(chain(12))
    assert len({box.y for box in layout.boxes}) == 1
    assert [box.task.id for box in layout.boxes] == list(range(1, 13))
    assert all("C" not in line.path for line in layout.lines)


def test_tasks_without_edges_are_in_rows_below_the_others() -> None:
    boxes = boxes_of(lay_out(graph_of({1: [], 2: [1], 3: [], 4: [], 5: [], 6: [], 7: []})))
    assert boxes[1].y == boxes[2].y < boxes[3].y
    assert [boxes[node].y for node in (4, 5, 6)] == [boxes[3].y] * 3
    assert boxes[7].y > boxes[6].y


def test_a_part_leads_to_its_whole() -> None:
    [line] = lay_out(graph_of({1: [], 2: []}, {2: 1})).lines
    assert (line.edge.source, line.edge.target, line.edge.is_part) == (2, 1, True)


@pytest.mark.parametrize(
    "new_graph", [partial(chain, 10_000), partial(large_graph, 10_000, 3)], ids=["chain", "large"]
)
def test_of_10_000_tasks_those_that_can_be_done_first_are_drawn(new_graph: Callable[[], TaskGraph]) -> None:
    graph = new_graph()
    layout = lay_out(TaskGraph(graph.tasks, left_out=7))
    assert (len(layout.boxes), layout.left_out) == (MAX_TASKS, 9_707)
    ready = [task.id for task in graph.tasks.values() if not task.ended and not task.blocked_by]
    assert set(ready[:MAX_TASKS]) <= set(boxes_of(layout)) or len(ready) > MAX_TASKS


def test_too_many_edges_are_left_out_and_counted() -> None:
    # All tasks of the second half wait for all of the first half.
    layout = lay_out(graph_of({node: range(1, 151) if node > 150 else () for node in range(1, 301)}))
    assert (len(layout.lines), layout.left_out_edges) == (MAX_EDGES, 150 * 150 - MAX_EDGES)


def test_long_edges_are_left_out_if_there_are_very_many() -> None:
    # The last 100 tasks wait for a chain of 100, and for 100 others.
    first = {node: [node - 1] if node > 1 else [] for node in range(1, 101)}
    last = {node: [100, *range(101, 201)] for node in range(201, 301)}
    layout = lay_out(graph_of({**first, **{node: [] for node in range(101, 201)}, **last}))
    assert len(layout.boxes) == 300
    assert layout.left_out_edges > 0
    drawn = {(line.edge.source, line.edge.target) for line in layout.lines}
    assert {(node, node + 1) for node in range(1, 100)} <= drawn


def test_an_empty_graph_is_an_empty_picture() -> None:
    assert lay_out(graph_of({})).boxes == []
