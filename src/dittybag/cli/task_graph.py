"""`dittybag task graph`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from dittybag.cli.error_output import use_json, wants_json
from dittybag.cli.output import hint, note, print_json
from dittybag.cli.read_input import text, usage_error
from dittybag.cli.strict_options import StrictCommand, renamed_option
from dittybag.cli.task_options import chosen_project
from dittybag.cli.task_reference import find_id
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_count

if TYPE_CHECKING:
    from dittybag.domain.task_graph import GraphTask, TaskGraph
    from dittybag.services.workspace import WorkspaceSession

_FORMATS: Final = ("tree", "mermaid", "json", "svg")
#: At most this many tasks of the critical path are named below a tree.
_MAX_NAMED: Final = 12


@click.command("graph", StrictCommand)
@click.argument("task", metavar="[TASK]", type=text, required=False)
@click.option("--include-done", "everything", is_flag=True, help="Include done and dropped tasks.")
@renamed_option("--all", "--include-done")
@click.option(
    "--format",
    "format_",
    type=click.Choice(_FORMATS),
    default="tree",
    show_default=True,
    help="What to print: a tree, a Mermaid flowchart, JSON, or an SVG picture.",
)
@in_project
def graph(task: str | None, options: WorkspaceOptions, *, everything: bool, format_: str) -> None:
    """Show which open tasks wait for which, or those around one task.

    In the tree, a task is above those that it waits for, its parts included. The critical path is the
    longest chain of open tasks.

    \b
    Examples:
      dittybag task graph
      dittybag task graph 12
      dittybag task graph -p website --format mermaid
      dittybag task graph --include-done --format svg > tasks.svg
    """
    if task is not None and options.project is not None:
        usage_error("TASK and --project cannot be used together")
    if wants_json() and format_ not in ("tree", "json"):
        usage_error(f"--json and --format {format_} cannot be used together")
    use_json(is_json=wants_json() or format_ == "json")

    async def find(session: WorkspaceSession) -> tuple[TaskGraph, int | None]:
        project = await chosen_project(session, options)
        number = None if task is None else await find_id(session, task)
        tasks = session.workspace.tasks
        return await tasks.graph(session.caller, project=project, root=number, ended=everything), number

    found, root = options.run(find)
    if root is not None and not everything:
        found = _without_ended(found, root)
    now = time.time_ns() // 1000
    if wants_json():
        print_json(_graph_data(found, now))
    elif format_ == "svg":
        _print_svg(found, now, root)
    elif not found.tasks:
        click.echo("No tasks found" if everything else "No open tasks found", err=True)
        hint("to add a task, run: dittybag task add TITLE")
    elif format_ == "mermaid":
        _print_mermaid(found, now)
    else:
        _print_tree(found, now, root)
    if found.left_out and not wants_json():
        note(f"{format_count(found.left_out, 'task')} left out; use --project to see fewer")


def _without_ended(found: TaskGraph, root: int) -> TaskGraph:
    from msgspec.structs import replace

    return replace(
        found, tasks={node: task for node, task in found.tasks.items() if node == root or not task.ended}
    )


# Formats


def _print_tree(found: TaskGraph, now: int, root: int | None) -> None:
    import shutil

    from dittybag.cli.task_tree import choose_signs, tree_lines
    from dittybag.domain.task_order import all_blocked, critical_path, work_order

    signs = choose_signs()
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in tree_lines(found, now, signs, width, root):
        click.echo(_printable(line.branches) + click.style(_printable(line.text), **line.style))
    path = critical_path(found)
    if path or root is not None:
        click.echo()
    if path:
        named = ", ".join(map(str, path[:_MAX_NAMED])) + (", ..." if len(path) > _MAX_NAMED else "")
        click.echo(f"Critical path: {format_count(len(path), 'task')} ({named})")
    if root is not None:
        order = work_order(found, only_open=True)
        directly, in_all = len(order.blocked.get(root, ())), len(all_blocked(order, root))
        click.echo(f"Task {root} blocks {format_count(directly, 'task')} directly, {in_all:,} in all")


def _printable(text: str) -> str:
    """Replace what standard output cannot encode."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def _print_mermaid(found: TaskGraph, now: int) -> None:
    from dittybag.cli.task_mermaid import MAX_EDGES, mermaid_lines

    lines = list(mermaid_lines(found, now))
    click.echo("\n".join(lines))
    if sum("->" in line for line in lines) > MAX_EDGES:
        note(f"Mermaid draws at most {MAX_EDGES} edges, unless you raise its setting maxEdges")


def _print_svg(found: TaskGraph, now: int, root: int | None) -> None:
    from dittybag.web.task_graph_svg import draw_graph

    picture = draw_graph(found, now, selected=root)
    click.echo(picture.svg)
    if picture.left_out > found.left_out:
        note(f"the picture shows {picture.drawn:,} of {format_count(len(found.tasks), 'task')}")
    if picture.left_out_edges:
        note(f"the picture leaves out {format_count(picture.left_out_edges, 'edge')}")


def _graph_data(found: TaskGraph, now: int) -> dict[str, Any]:
    from dittybag.domain.task_order import count_blocked, critical_path, layers, work_order

    order = work_order(found)
    layer = layers(order)
    is_open = work_order(found, only_open=True)
    in_all = count_blocked(is_open)
    return {
        "tasks": [
            {
                **_task_data(found.tasks[node], now),
                "layer": layer[node],
                "blocks": len(is_open.blocked.get(node, ())),
                "blocks_in_all": in_all.get(node, 0),
            }
            for node in order.ids
        ],
        "edges": [{"from": edge.source, "to": edge.target, "kind": edge.kind} for edge in order.edges],
        "critical_path": critical_path(found),
        "ready": [node for node in order.ids if found.tasks[node].state(now) == "ready"],
        "left_out": found.left_out,
    }


def _task_data(task: GraphTask, now: int) -> dict[str, Any]:
    from dittybag.domain.entities import struct_data
    from dittybag.domain.times import iso

    until = None if task.held_until is None else iso(task.held_until)
    return {**struct_data(task), "held_until": until, "state": task.state(now)}
