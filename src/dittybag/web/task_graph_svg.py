"""The graph of tasks as an SVG picture.

It has no script and no `style`, which the content security policy of the web UI forbids. Its colours are
attributes, so that it can be read as a file; in the web UI, the style sheet replaces them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import Final

from msgspec import Struct

from dittybag.domain.display import format_count
from dittybag.domain.task_graph import GraphTask, TaskGraph, TaskState
from dittybag.domain.task_order import critical_path
from dittybag.domain.tasks import TITLE_LENGTH
from dittybag.domain.text import one_line
from dittybag.web.task_graph_layout import (
    BOX_HEIGHT,
    BOX_WIDTH,
    EdgeRoute,
    Point,
    lay_out,
)

#: The colours of the light theme for the bar at the left of a task, by its state.
_COLOURS: Final[dict[TaskState, str]] = {
    "ready": "#22683a",
    "blocked": "#b5a898",
    "doing": "#1d5a8c",
    "review": "#7a5200",
    "done": "#8fb89b",
    "dropped": "#d8cec0",
}
_INK: Final = "#241c15"
_QUIET: Final = "#685c50"
_LINE: Final = "#b5a898"
_ACCENT: Final = "#9a4310"

_CARD: Final = "#ffffff"

_FONTS: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
_TITLE_SIZE: Final = 13
_FACT_SIZE: Final = 11
_LINE_HEIGHT: Final = 16
_PADDING: Final = 16
_ROOM: Final = BOX_WIDTH - _PADDING - 10
#: Maximum number of lines of a title.
_MAX_LINES: Final = 2
#: The length of an arrow head.
_HEAD: Final = 7
#: Points whose heights differ less are connected by a line.
_STRAIGHT: Final = 0.5
_ABOUT: Final = (
    "Each task is to the right of those that it waits for. Dashed lines come from the parts of a task."
)

#: What XML 1.0 cannot contain.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: Widths of characters in a sans-serif font, relative to its size.
_NARROW: Final = frozenset("iljtfI.,:;'|!()[]{}/\\` ·")
_WIDE: Final = frozenset("mwMW@%—…")


class GraphPicture(Struct, frozen=True):
    """A picture of a graph."""

    svg: str
    drawn: int
    #: The number of tasks, and of edges between drawn tasks, that are not drawn.
    left_out: int
    left_out_edges: int


def draw_graph(
    graph: TaskGraph, now: int, link: Callable[[int], str] | None = None, selected: int | None = None
) -> GraphPicture:
    """Draw a graph at a time, in microseconds since 1970.

    `link` returns the URL of a task's page; without it, the picture has no links.
    """
    layout = lay_out(graph)
    path = critical_path(graph)
    critical, on_path = set(pairwise(path)), set(path)
    content = [
        _element("title", f"Graph of {format_count(len(layout.corners), 'task')}", id="task-graph-title"),
        _element("desc", _ABOUT, id="task-graph-about"),
    ]
    # Critical edges are drawn last, above the others.
    for is_critical in (False, True):
        content += [
            _draw_edge(route, is_critical=is_critical)
            for route in layout.routes
            if ((route.edge.source, route.edge.target) in critical) == is_critical
        ]
    for node, corner in layout.corners.items():
        marks = " critical" * (node in on_path) + " selected" * (node == selected)
        target = None if link is None else link(node)
        content.append(_draw_task(graph.tasks[node], now, corner, marks, target))
    svg = _element(
        "svg",
        *content,
        xmlns="http://www.w3.org/2000/svg",
        class_="task-graph",
        # With the role `img`, screen readers would not find the links.
        role="img" if link is None else "group",
        aria_labelledby="task-graph-title",
        aria_describedby="task-graph-about",
        width=layout.width,
        height=layout.height,
        viewBox=f"0 0 {_number(layout.width)} {_number(layout.height)}",
        font_family=_FONTS,
    )
    return GraphPicture(svg, len(layout.corners), layout.left_out, layout.left_out_edges)


def _element(name: str, *content: str, **attributes: float | str | None) -> str:
    """Return an element with this content, which is XML already. Attributes that are `None` are left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_xml(value) if isinstance(value, str) else _number(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(content)}</{name}>"


def _number(number: float) -> str:
    """Return a number with at most one decimal."""
    return f"{number:.1f}".removesuffix(".0")


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


# Edges


def _draw_edge(route: EdgeRoute, *, is_critical: bool) -> str:
    is_part = route.edge.kind == "part"
    colour = _ACCENT if is_critical else _LINE
    end = route.points[-1]
    line = _element(
        "path",
        d=_curve(route.points),
        fill="none",
        stroke_width="2.25" if is_critical else "1.5",
        stroke_dasharray="5 4" if is_part else None,
    )
    head = _element("path", d=f"M{_number(end.x)} {_number(end.y)}l-{_HEAD + 1} -4v8z", stroke="none")
    classes = "graph-edge" + " part" * is_part + " critical" * is_critical
    return _element("g", line, head, class_=classes, fill=colour, stroke=colour)


def _curve(points: Sequence[Point]) -> str:
    """Return the path through the points: a curve between two layers, a line through a layer."""
    start, *others, end = points
    path = [f"M{_number(start.x)} {_number(start.y)}"]
    for number, (x, y) in enumerate([*others, Point(end.x - _HEAD, end.y)]):
        if number % 2 == 0 and abs(start.y - y) > _STRAIGHT:
            middle = _number((start.x + x) / 2)
            path.append(f"C{middle} {_number(start.y)} {middle} {_number(y)} {_number(x)} {_number(y)}")
        elif path[-1].startswith("L"):
            path[-1] = f"L{_number(x)} {_number(y)}"
        else:
            path.append(f"L{_number(x)} {_number(y)}")
        start = Point(x, y)
    return "".join(path)


# Tasks


def _draw_task(task: GraphTask, now: int, corner: Point, marks: str, link: str | None) -> str:
    """Draw a task. `marks`: further classes, each after a space."""
    state, worker = task.state(now), one_line(task.worker(now) or "")
    title = one_line(task.title, TITLE_LENGTH)
    facts = f"{task.id} · P{task.priority} · {task.describe_state(now)}"
    is_critical = "critical" in marks
    box = _element(
        "rect",
        class_="graph-box",
        width=BOX_WIDTH,
        height=BOX_HEIGHT,
        rx=8,
        fill=_CARD,
        stroke=_ACCENT if is_critical else _LINE,
        stroke_width=2 if is_critical else 1,
    )
    bar = _element(
        "rect",
        class_="graph-bar",
        x=5,
        y=8,
        width=4,
        height=BOX_HEIGHT - 16,
        rx=2,
        fill=_COLOURS[state],
    )
    return _element(
        "g" if link is None else "a",
        _element("title", _xml(f"{facts}{' · ' * bool(worker)}{worker}: {title}")),
        box,
        bar,
        *_draw_title(title, _QUIET if task.ended else _INK),
        *_draw_facts(facts, worker),
        class_=f"graph-task {state}{marks}",
        transform=f"translate({_number(corner.x)} {_number(corner.y)})",
        href=link,
    )


def _draw_title(title: str, colour: str) -> Iterator[str]:
    lines = wrap(title, _ROOM, _TITLE_SIZE, _MAX_LINES)
    first = (BOX_HEIGHT - _LINE_HEIGHT * len(lines)) // 2 + 3
    for number, line in enumerate(lines):
        yield _element(
            "text",
            _xml(line),
            class_="graph-title",
            x=_PADDING,
            y=first + _LINE_HEIGHT * number,
            font_size=_TITLE_SIZE,
            font_weight=500,
            fill=colour,
        )


def _draw_facts(facts: str, worker: str) -> Iterator[str]:
    room = _ROOM - text_width(facts, _FACT_SIZE) - 8
    for text, x, anchor in (
        (facts, _PADDING, None),
        ("".join(wrap(worker, room, _FACT_SIZE, 1)), BOX_WIDTH - 10, "end"),
    ):
        if text:
            yield _element(
                "text",
                _xml(text),
                class_="graph-facts",
                x=x,
                y=BOX_HEIGHT - 12,
                font_size=_FACT_SIZE,
                text_anchor=anchor,
                fill=_QUIET,
            )


# Text


def text_width(text: str, size: float) -> float:
    """Estimate the width of a text: a server has no fonts to measure."""
    return size * sum(map(_relative_width, text))


def _relative_width(letter: str) -> float:
    if letter in _NARROW:
        return 0.36
    if letter in _WIDE:
        return 0.95
    if letter.isascii():
        return 0.72 if letter.isupper() else 0.62
    if unicodedata.combining(letter):
        return 0
    return 1.1 if unicodedata.east_asian_width(letter) in "WF" else 0.7


def wrap(text: str, room: float, size: float, max_lines: int) -> list[str]:
    """Break a text into lines that fit; the last one ends with `…` if there are too many."""
    lines: list[str] = []
    rest = text
    while rest and len(lines) < max_lines - 1:
        line = _fitting(rest, room, size)
        if line != rest:
            # Break at a space, unless a word fills most of the line.
            space = (line + rest[len(line)]).rfind(" ")
            line = line[:space] if space > len(line) // 3 else line
        lines.append(line)
        rest = rest[len(line) :].lstrip()
    if rest:
        line = _fitting(rest, room, size)
        lines.append(line if line == rest else _fitting(rest, room - size, size).rstrip() + "…")
    return lines


def _fitting(text: str, room: float, size: float) -> str:
    """Return the longest beginning of a text that fits, at least one character."""
    used = 0.0
    for number, letter in enumerate(text):
        used += size * _relative_width(letter)
        if used > room and number:
            return text[:number]
    return text
