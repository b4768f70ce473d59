"""`dittybag task show`, and tasks in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from dittybag.cli.error_output import wants_json
from dittybag.cli.output import clip_line, format_time, print_json, terminal_safe
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.task_options import local_now
from dittybag.cli.task_output import (
    claim_data,
    format_ago,
    format_due,
    format_until,
    given_energy,
    given_estimate,
    task_data,
    task_style,
)
from dittybag.cli.task_reference import find_id, task_argument
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.tasks import Comment, Task

if TYPE_CHECKING:
    from dittybag.domain.task_graph import GraphTask
    from dittybag.services.task_details import TaskDetails
    from dittybag.services.workspace import WorkspaceSession


@click.command("show", StrictCommand, short_help="Show a task with its parts, comments and blockers.")
@task_argument
@in_workspace
def show(task: str, options: WorkspaceOptions) -> None:
    """Show a task: its fields, parts and comments, what it waits for, what it blocks, and who holds it.

    \b
    Example:
      dittybag task show 3
    """

    async def find(session: WorkspaceSession) -> TaskDetails:
        return await session.workspace.tasks.details(session.caller, await find_id(session, task))

    details = options.run(find)
    if wants_json():
        print_json(_details_data(details))
        return
    holder = []
    if details.claim is not None:
        held = f"{clip_line(details.claim.holder)} until {format_until(details.claim.until)}"
        holder = [("held by", f"{held} (fence {details.claim.fence})")]
    print_task(details.task, parent=details.parent, more=holder)
    _print_related(details)
    print_comments(details.task.comments)


def _details_data(details: TaskDetails) -> dict[str, Any]:
    return {
        **task_data(details.task, local_now()),
        "claim": None if details.claim is None else claim_data(details.claim),
        "parent_task": None if details.parent is None else brief_data(details.parent),
        "parts": [brief_data(task) for task in details.parts],
        "parts_done": _count_done(details.parts),
        "blockers": [brief_data(task) for task in details.blockers],
        "blocks": [brief_data(task) for task in details.blocked],
    }


def _count_done(parts: Sequence[GraphTask]) -> int:
    return sum(part.ended for part in parts)


def brief_data(task: GraphTask | Task) -> dict[str, Any]:
    """Return what is shown of a task beside another one, for JSON output."""
    return {"id": task.id, "title": task.title, "status": task.status}


def print_task(
    task: Task, *, parent: GraphTask | Task | None = None, more: Sequence[tuple[str, str]] = ()
) -> None:
    """Print the fields of a task and its notes, without its comments."""
    now = local_now()
    click.secho(f"{task.id}  {clip_line(task.title, 500)}", bold=True, **task_style(task, now))
    about = [
        ("project", clip_line(task.project or "")),
        ("status", task.status),
        ("assignee", clip_line(task.assignee or "", 200)),
        *more,
        ("priority", str(task.priority)),
        ("energy", given_energy(task)),
        ("estimate", given_estimate(task)),
        ("due", format_due(task, now)),
        ("labels", clip_line(", ".join(task.labels), 1000)),
        ("part of", "" if parent is None else f"{parent.id} '{clip_line(parent.title)}'"),
        *(("link", clip_line(link, 2000)) for link in task.links),
        ("completed", "" if task.completed_at is None else format_time(task.completed_at)),
        ("created", format_time(task.created_at)),
        ("updated", format_time(task.updated_at)),
    ]
    for name, value in about:
        if value:
            click.echo(f"{name:9}  {value}")
    if task.notes:
        click.echo()
        click.echo(terminal_safe(task.notes), nl=not task.notes.endswith("\n"))


def _print_related(details: TaskDetails) -> None:
    if details.parts:
        done, total = _count_done(details.parts), len(details.parts)
        print_group(f"Parts: {done} of {total} done", details.parts)
    print_group("Waits for" if _is_waiting(details) else "Waited for", details.blockers)
    print_group("Blocks" if not details.task.ended else "Blocked", details.blocked)


def _is_waiting(details: TaskDetails) -> bool:
    return any(not task.ended for task in details.blockers)


def print_group(title: str, tasks: Sequence[GraphTask | Task]) -> None:
    """Print tasks below a title; nothing without tasks."""
    if not tasks:
        return
    click.echo()
    click.secho(title, bold=True)
    numbers = max(len(str(task.id)) for task in tasks)
    statuses = max(len(task.status) for task in tasks)
    for task in tasks:
        click.echo(f"  {task.id:>{numbers}}  {task.status:{statuses}}  {clip_line(task.title)}")


def print_comments(comments: Sequence[Comment], *, task: int | None = None) -> None:
    """Print comments, each with its author and local time. `task`: the number of another task."""
    on_task = "" if task is None else f" on task {task}"
    for comment in comments:
        click.echo()
        click.secho(f"{clip_line(comment.author, 200)}{on_task}, {format_ago(comment.at)}:", bold=True)
        click.echo(terminal_safe(comment.text), nl=not comment.text.endswith("\n"))
