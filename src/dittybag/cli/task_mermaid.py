"""The graph of tasks as a Mermaid flowchart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from dittybag.domain.task_graph import GraphTask, TaskGraph, TaskState
from dittybag.domain.task_order import critical_path, direct_edges, work_order
from dittybag.domain.text import one_line

#: Mermaid draws no more than this unless it is configured to.
MAX_EDGES: Final = 500
_TITLE_LENGTH: Final = 80

#: Beside letters and digits. All others are written as numbers, also those that begin lists or headings in
#: Markdown, and letters that Mermaid uses for its own escapes.
_PLAIN: Final = frozenset(" ,?!()/")
_OWN_ESCAPES: Final = frozenset("ﬂ°¶ß")
#: Mermaid finds formulas, icons and its own escapes even if they are written as numbers. A space of no width
#: after these keeps them apart.
_MEANINGFUL: Final = r"\$(?=\$)|:(?=fa-)|ﬂ(?=°)|¶(?=ß)"
_NO_SPACE: Final = "\u200b"

_CLASSES: Final[dict[TaskState, str]] = {
    "ready": "fill:#e2f3e7,stroke:#22683a,color:#241c15",
    "blocked": "fill:#f3eee6,stroke:#b5a898,color:#241c15",
    "doing": "fill:#e3f0fa,stroke:#1d5a8c,color:#241c15",
    "review": "fill:#fdf1d6,stroke:#7a5200,color:#241c15",
    "done": "fill:#ffffff,stroke:#8fb89b,color:#685c50",
    "dropped": "fill:#ffffff,stroke:#d8cec0,color:#685c50,stroke-dasharray:4",
}
_CRITICAL: Final = "stroke:#9a4310,stroke-width:3px"


def mermaid_lines(graph: TaskGraph, now: int) -> Iterator[str]:
    """Yield the lines of a flowchart: solid edges to what waits, dotted edges from parts."""
    order = work_order(graph)
    path = critical_path(graph)
    yield "flowchart LR"
    for node in order.ids:
        yield f"    {_describe(graph.tasks[node], now)}"
    edges = direct_edges(order)
    for edge in edges:
        arrow = "-.->" if edge.kind == "part" else "-->"
        yield f"    t{edge.source} {arrow} t{edge.target}"
    states = {task.state(now) for task in graph.tasks.values()}
    for state, style in _CLASSES.items():
        if state in states:
            yield f"    classDef {state} {style}"
    if path:
        steps = set(pairwise(path))
        numbers = [number for number, edge in enumerate(edges) if (edge.source, edge.target) in steps]
        yield f"    classDef critical {_CRITICAL}"
        yield f"    class {','.join(f't{node}' for node in path)} critical"
        yield f"    linkStyle {','.join(map(str, numbers))} {_CRITICAL}"


def _describe(task: GraphTask, now: int) -> str:
    worker = task.worker(now)
    facts = f"{task.id} !{task.priority}{f' {one_line(worker, 40)}' if worker else ''}"
    label = f"{escape_label(facts)}<br/>{escape_label(one_line(task.title, _TITLE_LENGTH))}"
    return f't{task.id}["{label}"]:::{task.state(now)}'


def escape_label(text: str) -> str:
    """Return a text so that Mermaid shows it as it is: no Markdown, no HTML, no end of the label."""
    return "".join(
        letter
        if (letter.isalnum() or letter in _PLAIN) and letter not in _OWN_ESCAPES
        else f"#{ord(letter)};"
        for letter in re.sub(_MEANINGFUL, rf"\g<0>{_NO_SPACE}", text)
    )
