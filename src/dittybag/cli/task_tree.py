"""The graph of tasks as a tree for the terminal."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from dittybag.cli.output import clip_line, display_width, pad
from dittybag.domain.task_graph import GraphTask, TaskGraph, TaskState
from dittybag.domain.task_order import critical_path, direct_edges, work_order

#: Deeper tasks begin a tree of their own, because there is no room to indent them further.
MAX_DEPTH: Final = 10
#: Minimum number of columns for a title.
_MIN_TITLE: Final = 12
_WORKER_LENGTH: Final = 24

_STYLES: Final[Mapping[TaskState, Mapping[str, Any]]] = {
    "ready": {"fg": "green"},
    "blocked": {},
    "doing": {"fg": "cyan"},
    "review": {"fg": "magenta"},
    "done": {"dim": True},
    "dropped": {"dim": True},
}
#: In these states, somebody works or has worked on a task.
_STARTED: Final = frozenset({"doing", "review", "done"})


class TreeSigns(Struct, frozen=True):
    """The characters of a tree: branches, what continues below them, and marks of tasks."""

    branch: str
    last_branch: str
    line: str
    marks: Mapping[TaskState, str]
    ellipsis: str

    @property
    def text(self) -> str:
        return "".join((self.branch, self.last_branch, self.line, self.ellipsis, *self.marks.values()))


UNICODE: Final = TreeSigns(
    branch="├─ ",
    last_branch="└─ ",
    line="│  ",
    marks={"ready": "○", "blocked": "·", "doing": "◐", "review": "◎", "done": "✓", "dropped": "✗"},
    ellipsis="…",
)
ASCII: Final = TreeSigns(
    branch="|- ",
    last_branch="`- ",
    line="|  ",
    marks={
        "ready": "[ ]",
        "blocked": "[.]",
        "doing": "[>]",
        "review": "[?]",
        "done": "[x]",
        "dropped": "[-]",
    },
    ellipsis="...",
)


class TreeLine(Struct, frozen=True):
    """A line of a tree: what leads to the task, the task, and its click style."""

    branches: str
    text: str
    style: Mapping[str, Any]


class _Place(Struct, frozen=True):
    """A task in a tree, and how to indent what is below it."""

    node: int
    branches: str = ""
    indent: str = ""
    depth: int = 0


def choose_signs() -> TreeSigns:
    """Return the signs that standard output can encode."""
    try:
        UNICODE.text.encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return ASCII
    return UNICODE


def tree_lines(
    graph: TaskGraph, now: int, signs: TreeSigns, width: int | None = None, selected: int | None = None
) -> Iterator[TreeLine]:
    """Yield the lines of a forest of tasks, each above what it waits for, its parts included.

    Goals come first and ready tasks are leaves. The other way round, a task would be below its parts, and
    the same goal would end every branch. `width`: the columns of the terminal, to which titles are cut.
    """
    on_path = set(critical_path(graph))
    for place, is_reference in _walk(graph, signs, on_path):
        task = graph.tasks[place.node]
        room = None if width is None else width - display_width(place.branches)
        if is_reference:
            text = _fit(f"(see {task.id}) ", task.title, "", room, signs)
            yield TreeLine(place.branches, text, {"dim": True})
            continue
        start = f"{signs.marks[task.state(now)]} {task.id} !{task.priority} "
        facts = ", ".join(_facts(task, now, is_critical=task.id in on_path))
        style = {
            **_STYLES[task.state(now)],
            "bold": task.id in on_path or None,
            "underline": task.id == selected or None,
        }
        yield TreeLine(place.branches, _fit(start, task.title, f"  {facts}", room, signs), style)


def _walk(graph: TaskGraph, signs: TreeSigns, on_path: set[int]) -> Iterator[tuple[_Place, bool]]:
    """Yield tasks from top to bottom, and whether each is only a reference to where it is shown in full."""
    order = work_order(graph)
    position = {node: number for number, node in enumerate(order.ids)}
    below: dict[int, list[int]] = {node: [] for node in order.ids}
    tops = set(order.ids)
    for edge in direct_edges(order):
        below[edge.target].append(edge.source)
        tops.discard(edge.source)
    # What can be done first is above, so that a part is shown with its whole and not below another part.
    for nodes in below.values():
        nodes.sort(key=position.__getitem__)
    first = sorted(
        tops, key=lambda node: (node not in on_path, graph.tasks[node].ended, not below[node], position[node])
    )
    pending, shown = deque(map(_Place, first)), set[int]()
    while pending:
        tree, continued = [pending.popleft()], []
        while tree:
            place = tree.pop()
            is_too_deep = place.depth == MAX_DEPTH and bool(below[place.node])
            if place.node in shown or is_too_deep:
                continued.append(_Place(place.node))
                yield place, True
                continue
            shown.add(place.node)
            yield place, False
            tree += reversed(_children(place, below[place.node], signs))
        pending.extendleft(place for place in reversed(continued) if place.node not in shown)


def _children(place: _Place, nodes: list[int], signs: TreeSigns) -> list[_Place]:
    found = [
        _Place(node, place.indent + signs.branch, place.indent + signs.line, place.depth + 1)
        for node in nodes[:-1]
    ]
    for node in nodes[-1:]:
        blank = " " * len(signs.line)
        found.append(_Place(node, place.indent + signs.last_branch, place.indent + blank, place.depth + 1))
    return found


def _facts(task: GraphTask, now: int, *, is_critical: bool) -> Iterator[str]:
    """Yield what is shown beside the title."""
    state, worker = task.state(now), clip_line(task.worker(now) or "", _WORKER_LENGTH)
    words = task.describe_state(now)
    yield f"{words} by {worker}" if worker and state in _STARTED else words
    if worker and state not in _STARTED:
        yield f"assigned to {worker}"
    if is_critical:
        yield "critical"


def _fit(start: str, title: str, end: str, room: int | None, signs: TreeSigns) -> str:
    """Return a line with as much of the title as fits."""
    title = clip_line(title)
    if room is not None:
        columns = max(_MIN_TITLE, room - display_width(start) - display_width(end))
        if display_width(title) > columns:
            title = pad(title, columns + 1 - len(signs.ellipsis)).rstrip().removesuffix("…") + signs.ellipsis
    return f"{start}{title}{end}"
