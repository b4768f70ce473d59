"""Positions of tasks and edges in the picture of a graph, from left to right in layers.

Edges that skip layers run in lanes between the tasks; edges of one source share a lane. The order in each
layer has few crossings (barycentre sweeps), and each task is as near to its neighbours as the order allows.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from dittybag.domain.task_graph import TaskGraph
from dittybag.domain.task_order import (
    TaskEdge,
    WorkOrder,
    critical_path,
    direct_edges,
    layers,
    work_order,
)

#: Maximum number of tasks that are drawn.
MAX_TASKS: Final = 300
#: Maximum number of edges that are drawn, and of layers that all of them pass. Nobody can follow more, and a
#: picture of 15,000 edges would take seconds.
MAX_EDGES: Final = 2_000
_MAX_PASSED: Final = 10_000
#: Edges that would need more lanes are drawn across tasks.
_MAX_LANES: Final = 3_000
#: How often the order, and then the positions, are improved.
_ORDER_SWEEPS: Final = 12
_PLACE_SWEEPS: Final = 24

BOX_WIDTH: Final = 200
BOX_HEIGHT: Final = 70
_MARGIN: Final = 12
_COLUMN: Final = BOX_WIDTH + 56
_TASK_GAP: Final = 18
_LANE_GAP: Final = 12
_COMPONENT_GAP: Final = 26
#: A row has at least this many columns.
_ROW: Final = 4
#: Distance between the ends of two edges at one task, and how much of its side the ends may take.
_PORT_GAP: Final = 11
_PORT_SPAN: Final = BOX_HEIGHT - 24
#: How much a straight lane matters, compared to a task in the middle of its neighbours.
_LANE_WEIGHT: Final = 4.0
#: How much a lane follows its other lanes instead of its ends.
_STRAIGHTNESS: Final = 0.97


class Lane(NamedTuple):
    """The place of the edges of a source in a layer that they pass."""

    source: int
    layer: int


#: What has a place in a layer: a task, by its id, or a lane.
Slot: TypeAlias = int | Lane
#: The vertical centres of slots.
Centres: TypeAlias = dict[Slot, float]


class Point(NamedTuple):
    """A point of the picture."""

    x: float
    y: float


class EdgeRoute(Struct, frozen=True):
    """An edge and the points where it leaves a layer, enters the next one, leaves that, and so on."""

    edge: TaskEdge
    points: list[Point]


class GraphLayout(Struct, frozen=True):
    """The positions of everything in a picture."""

    width: float
    height: float
    #: The upper left corners of tasks, in an order in which they can be done.
    corners: dict[int, Point]
    routes: list[EdgeRoute]
    #: The number of tasks, and of edges between drawn tasks, that are not drawn.
    left_out: int
    left_out_edges: int


class _Component(Struct, frozen=True):
    """Connected tasks: the slots of each layer from top to bottom, and what links them."""

    edges: list[TaskEdge]
    layer: Mapping[int, int]
    slots: list[list[Slot]]
    #: Neighbours in the layer before, and in the layer after.
    before: dict[Slot, list[Slot]]
    after: dict[Slot, list[Slot]]


def lay_out(graph: TaskGraph) -> GraphLayout:
    """Return the positions of the tasks of a graph."""
    drawn = _choose(graph)
    order = work_order(drawn)
    layer = layers(order)
    edges = direct_edges(order)
    short = _shortest(edges, layer)
    components = _components(order, short, layer)
    # Small components are put side by side, into rows.
    row = max(_ROW, *(len(component.slots) for component in components), 0)
    corners: dict[int, Point] = {}
    routes: list[EdgeRoute] = []
    column, top, tallest = 0, float(_MARGIN), 0.0
    for component in components:
        if column + len(component.slots) > row:
            column, top, tallest = 0, top + tallest + _COMPONENT_GAP, 0.0
        centres, height = _place(component, _reduce_crossings(component), top)
        corners |= _corners(component, centres, column)
        routes += _route(component, centres, column)
        column, tallest = column + len(component.slots), max(tallest, height)
    return GraphLayout(
        width=max((corner.x for corner in corners.values()), default=0) + BOX_WIDTH + _MARGIN,
        height=top + tallest + _MARGIN,
        corners={node: corners[node] for node in order.ids},
        routes=routes,
        left_out=graph.left_out + len(graph.tasks) - len(drawn.tasks),
        left_out_edges=len(edges) - len(short),
    )


def _left(column: int) -> float:
    return _MARGIN + column * _COLUMN


def _choose(graph: TaskGraph) -> TaskGraph:
    """Return at most `MAX_TASKS` tasks: the critical path, then what can be done first."""
    if len(graph.tasks) <= MAX_TASKS:
        return graph
    order = work_order(graph)
    layer, critical = layers(order), set(critical_path(graph))
    chosen = sorted(order.ids, key=lambda node: (node not in critical, graph.tasks[node].ended, layer[node]))
    return TaskGraph({node: graph.tasks[node] for node in chosen[:MAX_TASKS]})


def _shortest(edges: Sequence[TaskEdge], layer: Mapping[int, int]) -> list[TaskEdge]:
    """Return the edges to draw, shortest first: they need few lanes, and are those of the critical path."""
    spans = {edge: layer[edge.target] - layer[edge.source] for edge in edges}
    shortest = sorted(edges, key=spans.__getitem__)[:MAX_EDGES]
    passed = accumulate(spans[edge] for edge in shortest)
    return [edge for edge, total in zip(shortest, passed, strict=True) if total <= _MAX_PASSED]


# Components


def _components(order: WorkOrder, edges: Sequence[TaskEdge], layer: Mapping[int, int]) -> list[_Component]:
    """Return the groups of tasks that edges connect, largest first."""
    groups = {node: [node] for node in order.ids}
    for edge in edges:
        small, large = sorted((groups[edge.source], groups[edge.target]), key=len)
        if small is not large:
            large += small
            groups |= dict.fromkeys(small, large)
    inner: dict[int, list[TaskEdge]] = {}
    for edge in edges:
        inner.setdefault(groups[edge.source][0], []).append(edge)
    nodes: dict[int, list[int]] = {}
    for node in order.ids:
        nodes.setdefault(groups[node][0], []).append(node)
    largest_first = sorted(nodes, key=lambda first: -len(nodes[first]))
    return [_link(nodes[first], inner.get(first, []), layer) for first in largest_first]


def _link(nodes: Sequence[int], edges: list[TaskEdge], layer: Mapping[int, int]) -> _Component:
    slots: list[list[Slot]] = [[] for _ in range(1 + max(layer[node] for node in nodes))]
    for node in nodes:
        slots[layer[node]].append(node)
    before: dict[Slot, list[Slot]] = {}
    after: dict[Slot, list[Slot]] = {}
    for edge in edges:
        path = _slots_of(edge, layer)
        lanes = [slot for slot in path[1:-1] if slot not in before]
        if len(before) + len(lanes) > _MAX_LANES:
            continue
        for left, right in pairwise(path):
            if left not in before.get(right, ()):
                before.setdefault(right, []).append(left)
                after.setdefault(left, []).append(right)
        for lane in lanes:
            slots[lane.layer if isinstance(lane, Lane) else 0].append(lane)
    return _Component(edges, layer, slots, before, after)


def _slots_of(edge: TaskEdge, layer: Mapping[int, int]) -> list[Slot]:
    """Return the slots that an edge passes, with its ends."""
    passed = range(layer[edge.source] + 1, layer[edge.target])
    return [edge.source, *(Lane(edge.source, number) for number in passed), edge.target]


# Order


def _reduce_crossings(component: _Component) -> list[list[Slot]]:
    """Return the slots of each layer in an order with few crossings."""
    slots = best = component.slots
    fewest = _count_crossings(component, slots)
    for sweep in range(_ORDER_SWEEPS):
        if not fewest:
            break
        slots = _sweep(component, slots, forward=sweep % 2 == 0)
        crossings = _count_crossings(component, slots)
        if crossings < fewest:
            best, fewest = slots, crossings
    return best


def _sweep(component: _Component, slots: list[list[Slot]], *, forward: bool) -> list[list[Slot]]:
    """Sort each layer by the mean position of its neighbours in the layer that was sorted before it."""
    neighbours = component.before if forward else component.after
    position: dict[Slot, int] = {}
    found: list[list[Slot]] = []
    for layer in slots if forward else reversed(slots):
        keys = {
            slot: _mean([position[other] for other in neighbours.get(slot, ())], float(number))
            for number, slot in enumerate(layer)
        }
        found.append(sorted(layer, key=keys.__getitem__))
        position |= {slot: number for number, slot in enumerate(found[-1])}
    return found if forward else found[::-1]


def _mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def _count_crossings(component: _Component, slots: Sequence[Sequence[Slot]]) -> int:
    crossings = 0
    for left, right in pairwise(slots):
        position = {slot: number for number, slot in enumerate(right)}
        ends: list[int] = []
        for slot in left:
            own = sorted(position[other] for other in component.after.get(slot, ()))
            crossings += sum(len(ends) - bisect_right(ends, end) for end in own)
            for end in own:
                insort(ends, end)
    return crossings


# Positions


def _place(component: _Component, slots: Sequence[Sequence[Slot]], top: float) -> tuple[Centres, float]:
    """Return the centres of all slots, below `top`, and the height that they take."""
    centres: Centres = {}
    gaps = [[_distance(upper, lower) for upper, lower in pairwise(layer)] for layer in slots]
    for layer, between in zip(slots, gaps, strict=True):
        total = sum(between)
        centres |= {slot: y - total / 2 for slot, y in zip(layer, _offsets(between), strict=False)}
    for sweep in range(_PLACE_SWEEPS):
        numbers = range(len(slots)) if sweep % 2 == 0 else reversed(range(len(slots)))
        for number in numbers:
            layer = slots[number]
            wanted = [_middle(component, slot, centres) for slot in layer]
            centres |= zip(layer, _keep_apart(layer, wanted, gaps[number]), strict=True)
    highest = min(centre - _half(slot) for slot, centre in centres.items())
    lowest = max(centre + _half(slot) for slot, centre in centres.items())
    return {slot: centre - highest + top for slot, centre in centres.items()}, lowest - highest


def _half(slot: Slot) -> float:
    return 0 if isinstance(slot, Lane) else BOX_HEIGHT / 2


def _distance(upper: Slot, lower: Slot) -> float:
    both_tasks = not isinstance(upper, Lane) and not isinstance(lower, Lane)
    return _half(upper) + _half(lower) + (_TASK_GAP if both_tasks else _LANE_GAP)


def _middle(component: _Component, slot: Slot, centres: Centres) -> float:
    """Return where a slot should be: in the middle of its neighbours. A lane should rather be straight."""
    sides = [component.before.get(slot, []), component.after.get(slot, [])]
    middle = _mean([_mean([centres[other] for other in side], 0) for side in sides if side], centres[slot])
    lanes = [centres[other] for side in sides for other in side if isinstance(other, Lane)]
    if not isinstance(slot, Lane) or not lanes:
        return middle
    return _STRAIGHTNESS * _mean(lanes, 0) + (1 - _STRAIGHTNESS) * middle


def _keep_apart(layer: Sequence[Slot], wanted: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return the positions nearest to the wanted ones that keep the order and the gaps (least squares).

    It is isotonic regression: neighbours that want to be too close are moved together as a block.
    """
    offsets = _offsets(gaps)
    blocks: list[tuple[float, float, int]] = []
    for slot, position, offset in zip(layer, wanted, offsets, strict=False):
        mean, weight, count = position - offset, _LANE_WEIGHT if isinstance(slot, Lane) else 1.0, 1
        while blocks and blocks[-1][0] > mean:
            other, more, members = blocks.pop()
            mean = (mean * weight + other * more) / (weight + more)
            weight, count = weight + more, count + members
        blocks.append((mean, weight, count))
    starts = [mean for mean, _, count in blocks for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets, strict=False)]


def _offsets(gaps: Sequence[float]) -> list[float]:
    """Return the distances from the first slot: one, even if a layer is empty as edges are left out."""
    return list(accumulate(gaps, initial=0.0))


def _corners(component: _Component, centres: Centres, column: int) -> dict[int, Point]:
    """Return the corners of tasks in the picture. `column`: where the component begins."""
    return {
        slot: Point(_left(column + component.layer[slot]), centre - BOX_HEIGHT / 2)
        for slot, centre in centres.items()
        if not isinstance(slot, Lane)
    }


# Edges


def _route(component: _Component, centres: Centres, column: int) -> list[EdgeRoute]:
    routes: dict[int, list[tuple[TaskEdge, list[Point]]]] = {}
    for edge in component.edges:
        points = [Point(_left(column + component.layer[edge.source]) + BOX_WIDTH, centres[edge.source])]
        for slot in _slots_of(edge, component.layer)[1:-1]:
            if slot in centres and isinstance(slot, Lane):
                left = _left(column + slot.layer)
                points += [Point(left, centres[slot]), Point(left + BOX_WIDTH, centres[slot])]
        routes.setdefault(edge.target, []).append((edge, points))
    found = []
    for target, incoming in routes.items():
        incoming.sort(key=lambda route: route[1][-1].y)
        gap = min(_PORT_GAP, _PORT_SPAN / max(1, len(incoming) - 1))
        for number, (edge, points) in enumerate(incoming):
            port = centres[target] + (number - (len(incoming) - 1) / 2) * gap
            found.append(EdgeRoute(edge, [*points, Point(_left(column + component.layer[target]), port)]))
    return found
