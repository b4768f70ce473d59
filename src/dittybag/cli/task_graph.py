"""`dittybag task graph`: the graph of tasks as a Mermaid flowchart."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from dittybag.cli.error_output import wants_json
from dittybag.cli.output import hint, note, print_json
from dittybag.cli.read_input import text, usage_error
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.task_options import chosen_project
from dittybag.cli.task_reference import find_id
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_count
from dittybag.domain.text import one_line

if TYPE_CHECKING:
    from dittybag.domain.task_graph import GraphTask, TaskGraph, TaskState
    from dittybag.services.workspace import WorkspaceSession

#: Mermaid draws no more than this unless it is configured to.
_MAX_EDGES: Final = 500
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


@click.command("graph", StrictCommand)
@click.argument("task", metavar="[TASK]", type=text, required=False)
@click.option("--include-done", "everything", is_flag=True, help="Include done and dropped tasks.")
@in_project
def graph(task: str | None, options: WorkspaceOptions, *, everything: bool) -> None:
    """Print a Mermaid flowchart of the open tasks that wait for each other, or of those around one task.

    \b
    Examples:
      dittybag task graph 12
      dittybag task graph -p website > tasks.mmd
    """
    if task is not None and options.project is not None:
        usage_error("TASK and --project cannot be used together")

    async def find(session: WorkspaceSession) -> tuple[TaskGraph, int | None]:
        project = await chosen_project(session, options)
        number = None if task is None else await find_id(session, task)
        tasks = session.workspace.tasks
        return await tasks.graph(session.caller, project=project, root=number, ended=everything), number

    found, root = options.run(find)
    if root is not None and not everything:
        found = _without_ended(found, root)
    lines = list(mermaid_lines(found, time.time_ns() // 1000))
    if wants_json():
        print_json({"flowchart": "\n".join(lines), "left_out": found.left_out})
        return
    if not found.tasks:
        click.echo("No tasks found" if everything else "No open tasks found", err=True)
        hint("to add a task, run: dittybag task add TITLE")
        return
    click.echo("\n".join(lines))
    if sum("->" in line for line in lines) > _MAX_EDGES:
        note(f"Mermaid draws at most {_MAX_EDGES} edges, unless you raise its setting maxEdges")
    if found.left_out:
        note(f"{format_count(found.left_out, 'task')} left out; use --project to see fewer")


def _without_ended(found: TaskGraph, root: int) -> TaskGraph:
    from msgspec.structs import replace

    return replace(
        found, tasks={node: task for node, task in found.tasks.items() if node == root or not task.ended}
    )


def mermaid_lines(graph: TaskGraph, now: int) -> Iterator[str]:
    """Yield the lines of a flowchart: solid edges to what waits, dotted edges from parts."""
    yield "flowchart LR"
    for _, task in sorted(graph.tasks.items()):
        yield f"    {_describe(task, now)}"
    for _, task in sorted(graph.tasks.items()):
        for blocker in task.blocked_by:
            if blocker in graph.tasks and graph.tasks[blocker].parent != task.id:
                yield f"    t{blocker} --> t{task.id}"
        if task.parent in graph.tasks:
            yield f"    t{task.id} -.-> t{task.parent}"
    states = {task.state(now) for task in graph.tasks.values()}
    for state, style in _CLASSES.items():
        if state in states:
            yield f"    classDef {state} {style}"


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
