"""Positions of tasks and edges in the picture of a graph: each task is to the right of what it waits for.

Edges that skip layers run in lanes between the tasks; edges of one source share a lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final, TypeAlias

from msgspec import Struct

from dittybag.domain.task_graph import GraphTask, TaskGraph

#: Maximum numbers of tasks and of edges that are drawn, and of layers that all edges pass.
MAX_TASKS: Final = 300
MAX_EDGES: Final = 1_000
_MAX_PASSED: Final = 3_000
#: How often the order of the layers is improved.
_SWEEPS: Final = 6

BOX_WIDTH: Final = 200
BOX_HEIGHT: Final = 70
_MARGIN: Final = 12
_COLUMN: Final = BOX_WIDTH + 56
_GAP: Final = 18
#: Tasks without edges are in rows of at least this many.
_ROW: Final = 4
#: The length of an arrow head.
_HEAD: Final = 7
#: Points whose heights differ less are connected by a line.
_STRAIGHT: Final = 0.5

#: A task, or the lane of its edges, in a layer.
Slot: TypeAlias = tuple[int, int]


class TaskEdge(Struct, frozen=True):
    """Two tasks of which `target` waits for `source`."""

    source: int
    target: int
    #: Whether the source is a part of the target.
    is_part: bool = False


class TaskBox(Struct, frozen=True):
    """A task and its upper left corner."""

    task: GraphTask
    x: float
    y: float


class EdgeLine(Struct, frozen=True):
    """An edge and the points where it leaves a layer, enters the next one, leaves that, and so on."""

    edge: TaskEdge
    points: list[tuple[float, float]]

    @property
    def path(self) -> str:
        """The line as an SVG path: a curve between two layers, straight through a layer."""
        (x, y), *others = [*self.points[:-1], (self.points[-1][0] - _HEAD, self.points[-1][1])]
        path = [f"M{x:.0f} {y:.1f}"]
        for number, (to, end) in enumerate(others):
            middle = (x + to) / 2
            is_curve = number % 2 == 0 and abs(y - end) > _STRAIGHT
            curve = f"C{middle:.0f} {y:.1f} {middle:.0f} {end:.1f} " if is_curve else "L"
            path.append(f"{curve}{to:.0f} {end:.1f}")
            x, y = to, end
        return "".join(path)

    @property
    def head(self) -> str:
        """The arrow head as an SVG path."""
        x, y = self.points[-1]
        return f"M{x:.0f} {y:.1f}l-{_HEAD + 1} -4v8z"


class GraphLayout(Struct, frozen=True):
    """The positions of everything in a picture."""

    width: float
    height: float
    #: Layer by layer, from left to right.
    boxes: list[TaskBox]
    lines: list[EdgeLine]
    #: The number of tasks, and of edges between drawn tasks, that are not drawn.
    left_out: int
    left_out_edges: int


def lay_out(graph: TaskGraph) -> GraphLayout:
    """Return the positions of the tasks of a graph; of too many, those that can be done first."""
    edges = edges_of(graph.tasks.values())
    layer = _layers(graph.tasks, edges)
    chosen = sorted(graph.tasks, key=lambda node: (graph.tasks[node].ended, layer[node]))[:MAX_TASKS]
    # Edges of a cycle, which a store does not have, may point backwards.
    known = set(chosen)
    inner = [edge for edge in edges if edge.source in known and edge.target in known]
    layer = _layers(chosen, inner)
    drawn = _shortest([edge for edge in inner if layer[edge.source] < layer[edge.target]], layer)
    linked = {node for edge in drawn for node in (edge.source, edge.target)}
    paths = {
        edge: [(edge.source, at) for at in range(layer[edge.source], layer[edge.target])] for edge in drawn
    }
    centres = _place([node for node in chosen if node in linked], layer, paths)
    boxes = [
        TaskBox(graph.tasks[node], _left(at), centre - BOX_HEIGHT / 2)
        for (node, at), centre in centres.items()
        if layer[node] == at
    ]
    width = max(_ROW, *(layer[node] + 1 for node in linked), 0)
    top = max([*(box.y + BOX_HEIGHT for box in boxes), *centres.values()], default=_MARGIN - _GAP) + _GAP
    for number, node in enumerate(node for node in chosen if node not in linked):
        row, column = divmod(number, width)
        boxes.append(TaskBox(graph.tasks[node], _left(column), top + row * (BOX_HEIGHT + _GAP)))
    return GraphLayout(
        width=max((box.x for box in boxes), default=0) + BOX_WIDTH + _MARGIN,
        height=max([*(box.y + BOX_HEIGHT for box in boxes), *centres.values()], default=0) + _MARGIN,
        boxes=boxes,
        lines=[_line(edge, path, centres, layer) for edge, path in paths.items()],
        left_out=graph.left_out + len(graph.tasks) - len(chosen),
        left_out_edges=len(inner) - len(drawn),
    )


def edges_of(tasks: Iterable[GraphTask]) -> list[TaskEdge]:
    """Return the edges between these tasks, at most one for two tasks. A part also blocks."""
    known = {task.id: task for task in tasks}
    found = {}
    for task in known.values():
        for blocker in task.blocked_by:
            found[blocker, task.id] = TaskEdge(blocker, task.id)
        if task.parent is not None:
            found[task.id, task.parent] = TaskEdge(task.id, task.parent, is_part=True)
    return [edge for edge in found.values() if edge.source in known and edge.target in known]


def _layers(nodes: Iterable[int], edges: Iterable[TaskEdge]) -> dict[int, int]:
    """Return the layer of each task: 0 if it waits for none, otherwise one more than the last of those."""
    layer = dict.fromkeys(nodes, 0)
    waiting, blocked = dict.fromkeys(layer, 0), {node: list[int]() for node in layer}
    for edge in edges:
        waiting[edge.target] += 1
        blocked[edge.source].append(edge.target)
    ready = [node for node, count in waiting.items() if not count]
    for node in ready:
        for target in blocked[node]:
            layer[target] = max(layer[target], layer[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return layer


def _shortest(edges: Sequence[TaskEdge], layer: Mapping[int, int]) -> list[TaskEdge]:
    """Return the edges to draw, shortest first: they need few lanes."""
    spans = {edge: layer[edge.target] - layer[edge.source] for edge in edges}
    shortest = sorted(edges, key=spans.__getitem__)[:MAX_EDGES]
    passed = accumulate(spans[edge] for edge in shortest)
    return [edge for edge, total in zip(shortest, passed, strict=True) if total <= _MAX_PASSED]


def _left(column: int) -> float:
    return _MARGIN + column * _COLUMN


def _place(
    nodes: Sequence[int], layer: Mapping[int, int], paths: Mapping[TaskEdge, Sequence[Slot]]
) -> dict[Slot, float]:
    """Return the vertical centres of tasks and lanes, layer by layer."""
    before: dict[Slot, dict[Slot, None]] = {}
    after: dict[Slot, dict[Slot, None]] = {}
    columns: list[dict[Slot, None]] = [
        {} for _ in range(max((layer[node] for node in nodes), default=-1) + 1)
    ]
    for node in nodes:
        columns[layer[node]][node, layer[node]] = None
    for edge, path in paths.items():
        for left, right in pairwise([*path, (edge.target, layer[edge.target])]):
            columns[right[1]][right] = None
            before.setdefault(right, {})[left] = None
            after.setdefault(left, {})[right] = None
    ordered = [list(column) for column in columns]
    # Sort each layer by the mean position of its neighbours in the layer that was sorted before it.
    for sweep in range(_SWEEPS):
        is_forward = sweep % 2 == 0
        position: dict[Slot, float] = {}
        for column in ordered if is_forward else reversed(ordered):
            own = {slot: float(number) for number, slot in enumerate(column)}
            near = before if is_forward else after
            means = {
                slot: _mean([position[other] for other in near.get(slot, ())], own[slot]) for slot in own
            }
            column.sort(key=means.__getitem__)
            position |= {slot: float(number) for number, slot in enumerate(column)}
    centres: dict[Slot, float] = {}
    for column in ordered:
        bottom = float(_MARGIN)
        for slot in column:
            half = BOX_HEIGHT / 2 if layer[slot[0]] == slot[1] else 0.0
            mean = _mean([centres[other] for other in before.get(slot, ())], 0)
            centres[slot] = max(mean, bottom + half)
            bottom = centres[slot] + half + _GAP
    return centres


def _mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def _line(
    edge: TaskEdge, path: Sequence[Slot], centres: Mapping[Slot, float], layer: Mapping[int, int]
) -> EdgeLine:
    points = [(_left(layer[edge.source]) + BOX_WIDTH, centres[path[0]])]
    for lane in path[1:]:
        left = _left(lane[1])
        points += [(left, centres[lane]), (left + BOX_WIDTH, centres[lane])]
    target = (edge.target, layer[edge.target])
    return EdgeLine(edge, [*points, (_left(target[1]), centres[target])])
