"""The picture of a graph of tasks: positions, lines, texts and links."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.task_graph import TaskGraph
from dittybag.domain.task_order import critical_path, direct_edges, work_order
from dittybag.web.task_graph_layout import (
    BOX_HEIGHT,
    BOX_WIDTH,
    MAX_EDGES,
    MAX_TASKS,
    EdgeRoute,
    GraphLayout,
    Point,
    lay_out,
)
from dittybag.web.task_graph_svg import draw_graph, text_width, wrap
from tests.domain.task_graphs import MINUTE, NOW, chain, graph_of, graphs, large_graph
from tests.e2e.xss_payloads import PAYLOADS

SVG = "{http://www.w3.org/2000/svg}"
#: The elements and attributes of a picture. There is no script, and no style.
ALLOWED = {
    "svg": {
        "class", "role", "aria-labelledby", "aria-describedby", "width", "height", "viewBox", "font-family",
    },
    "title": {"id"},
    "desc": {"id"},
    "g": {"class", "fill", "stroke", "transform"},
    "a": {"class", "href", "transform"},
    "path": {"d", "fill", "stroke", "stroke-width", "stroke-dasharray"},
    "rect": {"class", "x", "y", "width", "height", "rx", "fill", "stroke", "stroke-width"},
    "text": {"class", "x", "y", "font-size", "font-weight", "text-anchor", "fill"},
}  # fmt: skip


def link(task: int) -> str:
    return f"/p/default/tasks/{task}"


def parse(svg: str) -> ET.Element:
    """Parse a picture, and check its elements and attributes."""
    root = ET.fromstring(svg)
    for element in root.iter():
        name = element.tag.removeprefix(SVG)
        assert set(element.attrib) <= ALLOWED[name], element.attrib
    return root


def tasks_of(root: ET.Element) -> dict[int, ET.Element]:
    """Return the links to tasks by their ids."""
    return {int(item.attrib["href"].rpartition("/")[2]): item for item in root.iter(f"{SVG}a")}


def texts(element: ET.Element, of_class: str) -> list[str]:
    return [item.text or "" for item in element.iter(f"{SVG}text") if item.get("class") == of_class]


# Positions


def passed_boxes(layout: GraphLayout, route: EdgeRoute) -> Iterator[int]:
    """Yield the tasks that a line runs through on its way through a layer."""
    for start, end in zip(route.points[1:-1:2], route.points[2:-1:2], strict=True):
        assert start.y == end.y
        for node, corner in layout.corners.items():
            if corner.x == start.x and corner.y < start.y < corner.y + BOX_HEIGHT:
                yield node


def crossings(layout: GraphLayout) -> int:
    """Return the number of pairs of edges without a common end that cross in the space between two layers."""
    pieces = [
        (route.points[number], route.points[number + 1], route.edge)
        for route in layout.routes
        for number in range(0, len(route.points), 2)
    ]
    return sum(
        (start.y - other_start.y) * (end.y - other_end.y) < 0
        for (start, end, edge), (other_start, other_end, other) in combinations(pieces, 2)
        if start.x == other_start.x and edge.source != other.source and edge.target != other.target
    )


@given(st.one_of(graphs(9), graphs(9, cyclic=True)))
def test_nothing_overlaps_and_all_edges_lead_to_the_right(graph: TaskGraph) -> None:
    layout = lay_out(graph)
    assert set(layout.corners) == set(graph.tasks)
    for one, other in combinations(layout.corners.values(), 2):
        assert abs(one.x - other.x) > BOX_WIDTH or abs(one.y - other.y) > BOX_HEIGHT
    for corner in layout.corners.values():
        assert 0 < corner.x < layout.width - BOX_WIDTH
        assert 0 < corner.y < layout.height - BOX_HEIGHT
    expected = direct_edges(work_order(graph))
    assert sorted((route.edge.source, route.edge.target) for route in layout.routes) == sorted(
        (edge.source, edge.target) for edge in expected
    )
    for route in layout.routes:
        source, target = layout.corners[route.edge.source], layout.corners[route.edge.target]
        assert route.points[0] == Point(source.x + BOX_WIDTH, source.y + BOX_HEIGHT / 2)
        assert route.points[-1].x == target.x
        assert target.y < route.points[-1].y < target.y + BOX_HEIGHT
        assert [point.x for point in route.points] == sorted(point.x for point in route.points)
        assert all(0 < point.y < layout.height for point in route.points)
        assert list(passed_boxes(layout, route)) == []


def test_a_lane_below_all_tasks_is_inside_the_picture() -> None:
    # The last edge passes a layer below its only task.
    layout = lay_out(graph_of({1: [], 2: [1], 3: [2, 4], 4: [], 5: [4]}))
    assert max(point.y for route in layout.routes for point in route.points) < layout.height


def test_a_chain_is_a_straight_line() -> None:
    layout = lay_out(chain(12))
    assert len({corner.y for corner in layout.corners.values()}) == 1
    assert [layout.corners[node].x for node in range(1, 13)] == sorted(
        corner.x for corner in layout.corners.values()
    )


@pytest.mark.parametrize(
    "blocked_by",
    [
        # In the order of work, two or more edges would cross.
        {1: [], 2: [], 3: [2], 4: [3], 5: [1, 4], 6: [1], 7: [1], 8: [4]},
        {1: [], 2: [], 3: [1], 4: [2], 5: [2, 3], 6: [4, 5], 7: [3], 8: [1, 6]},
        {1: [], 2: [], 3: [1], 4: [2], 5: [2], 6: [3], 7: [1, 4], 8: [2, 6]},
        # A tree.
        {1: [], 2: [1], 3: [1], 4: [3], 5: [2], 6: [3], 7: [2], 8: [5], 9: [4]},
        # A long edge beside a chain.
        {1: [], 2: [1], 3: [2], 4: [3, 5], 5: [], 6: [5]},
    ],
)
def test_crossings_that_can_be_avoided_are_avoided(blocked_by: dict[int, list[int]]) -> None:
    assert crossings(lay_out(graph_of(blocked_by))) == 0


def test_components_are_put_side_by_side_below_the_largest() -> None:
    graph = graph_of({1: [], 2: [1], 3: [2], 4: [3], 5: [4], 6: [], 7: [6], 8: [], 9: [8], 10: [], 11: []})
    corners = lay_out(graph).corners
    rows = {
        y: sorted(node for node, corner in corners.items() if corner.y == y)
        for y in sorted({corner.y for corner in corners.values()})
    }
    assert list(rows.values()) == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11]]


# Limits


def test_at_most_300_tasks_are_drawn_the_critical_path_among_them() -> None:
    graph = large_graph(1_000, 2)
    picture = draw_graph(TaskGraph(graph.tasks, left_out=7), NOW, link)
    assert (picture.drawn, picture.left_out) == (MAX_TASKS, 707)
    assert set(critical_path(graph)) <= set(tasks_of(parse(picture.svg)))


@pytest.mark.parametrize(
    "new_graph", [partial(chain, 10_000), partial(large_graph, 10_000, 3)], ids=["chain", "large"]
)
def test_10_000_tasks_are_drawn_in_part(new_graph: Callable[[], TaskGraph]) -> None:
    picture = draw_graph(new_graph(), NOW, link)
    assert (picture.drawn, picture.left_out) == (MAX_TASKS, 9_700)
    assert len(tasks_of(parse(picture.svg))) == MAX_TASKS


def test_too_many_edges_are_left_out_and_counted() -> None:
    # All tasks of the second half wait for all of the first half.
    graph = graph_of({node: range(1, 151) if node > 150 else () for node in range(1, 301)})
    picture = draw_graph(graph, NOW)
    assert picture.left_out_edges == 150 * 150 - MAX_EDGES
    assert picture.svg.count('class="graph-edge') == MAX_EDGES


def test_long_edges_are_left_out_if_there_are_very_many() -> None:
    # The last 100 tasks wait for a chain of 100, and for 100 others.
    blocked_by: dict[int, Sequence[int]] = {node: [node - 1] if node > 1 else [] for node in range(1, 101)}
    blocked_by |= {node: [] for node in range(101, 201)}
    blocked_by |= {node: [100, *range(101, 201)] for node in range(201, 301)}
    layout = lay_out(graph_of(blocked_by))
    assert len(layout.corners) == 300
    assert layout.left_out_edges > 0
    drawn = {(route.edge.source, route.edge.target) for route in layout.routes}
    assert set(pairwise(critical_path(graph_of(blocked_by)))) <= drawn


def test_an_empty_graph_is_an_empty_picture() -> None:
    root = parse(draw_graph(graph_of({}), NOW, link).svg)
    assert root.findtext(f"{SVG}title") == "Graph of 0 tasks"
    assert tasks_of(root) == {}


# What is shown


def test_tasks_edges_and_the_critical_path() -> None:
    graph = graph_of(
        {1: [], 2: [1], 3: [2], 4: [3], 5: [3], 6: []},
        {6: 4},
        {
            1: {"status": "done"},
            2: {"status": "doing", "assignee": "ann", "holder": "codex", "held_until": NOW + MINUTE},
            3: {"priority": 5},
            5: {"status": "dropped"},
            6: {"status": "review", "assignee": "ann"},
        },
    )
    root = parse(draw_graph(graph, NOW, link, selected=6).svg)
    assert root.get("role") == "group"
    items = tasks_of(root)
    assert {node: item.get("class") for node, item in items.items()} == {
        1: "graph-task done",
        2: "graph-task doing critical",
        3: "graph-task blocked critical",
        4: "graph-task blocked critical",
        5: "graph-task dropped",
        6: "graph-task review selected",
    }
    assert {node: texts(item, "graph-facts") for node, item in items.items()} == {
        1: ["1 · P3 · done"],
        2: ["2 · P3 · doing", "codex"],
        3: ["3 · P5 · waits for 1"],
        4: ["4 · P3 · waits for 2"],
        5: ["5 · P3 · dropped"],
        6: ["6 · P3 · review", "ann"],
    }
    assert items[2].findtext(f"{SVG}title") == "2 · P3 · doing · codex: Task 2"
    edges = [item.get("class") for item in root.iter(f"{SVG}g")]
    assert sorted(map(str, edges)) == [
        *("graph-edge",) * 2,
        *("graph-edge critical",) * 2,
        "graph-edge part",
    ]


def test_a_picture_without_links_is_an_image() -> None:
    root = parse(draw_graph(chain(2), NOW).svg)
    assert root.get("role") == "img"
    assert list(root.iter(f"{SVG}a")) == []
    assert root.findtext(f"{SVG}title") == "Graph of 2 tasks"


HOSTILE = (
    *PAYLOADS,
    '"><script>alert(1)</script>',
    "</text></svg><script>alert(1)</script>",
    "]]> --> <!-- <![CDATA[ &amp; &lt; &#0;",
    "\x00\x01\x1b[31m\x7f\x85\ufffe\uffff\ud800",
    "a\nb\r\nc\td\u2028e",
)


def test_hostile_titles_and_names_stay_text() -> None:
    count = len(HOSTILE)
    fields = {
        number: {"title": text, "assignee": HOSTILE[-number], "status": "doing"}
        for number, text in enumerate(HOSTILE, 1)
    }
    graph = graph_of({node: [node - 1] if node > 1 else [] for node in range(1, count + 1)}, fields=fields)
    for nodes in (range(1, count // 2), range(count // 2, count + 1)):
        part = TaskGraph({node: graph.tasks[node] for node in nodes})
        picture = draw_graph(part, NOW, lambda node: f"/x?\"'<>&=/{node}")
        picture.svg.encode()
        items = tasks_of(parse(picture.svg))
        assert set(items) == set(nodes)
        for node, item in items.items():
            assert item.attrib["href"] == f"/x?\"'<>&=/{node}"
            assert len(list(item)) <= 7
            assert (item.findtext(f"{SVG}title") or "").startswith(f"{node} · P3 · doing")
    first = tasks_of(parse(draw_graph(graph_of({1: []}, fields={1: {"title": HOSTILE[0]}}), NOW, link).svg))
    assert f": {HOSTILE[0]}" in (first[1].findtext(f"{SVG}title") or "")


@given(st.text(max_size=80), st.integers(1, 3))
def test_lines_of_a_title_fit_and_lose_nothing_but_the_end(text: str, max_lines: int) -> None:
    line = " ".join(text.split())
    lines = wrap(line, 170, 13, max_lines)
    assert len(lines) <= max_lines
    assert all(text_width(item, 13) <= 170 for item in lines)
    shown = "".join(lines).replace(" ", "")
    if shown != line.replace(" ", ""):
        assert len(lines) == max_lines
        assert shown.endswith("…")
        assert line.replace(" ", "").startswith(shown.removesuffix("…"))


@pytest.mark.parametrize(
    ("title", "lines"),
    [
        ("Short", ["Short"]),
        ("Import from beads and plan files", ["Import from beads and", "plan files"]),
        ("x" * 60, ["x" * 21, "x" * 19 + "…"]),
        ("", []),
    ],
)
def test_titles_are_broken_at_spaces(title: str, lines: list[str]) -> None:
    assert wrap(title, 174, 13, 2) == lines
