"""`dittybag task board`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from dittybag.cli.error_output import wants_json
from dittybag.cli.output import clip_line, limit_option, print_json
from dittybag.cli.read_input import text, usage_error
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.task_options import chosen_project, local_now
from dittybag.cli.task_output import format_due, is_overdue
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.tasks import TITLE_LENGTH, TaskColumn, TaskFilter, TaskListing
from dittybag.domain.times import iso

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession


@click.command("board", StrictCommand)
@click.option("-l", "--label", metavar="LABEL", type=text, help="Only tasks with this label.")
@click.option("--assignee", metavar="NAME", type=text, help="Only tasks that are assigned to NAME.")
@click.option("-w", "--watch", is_flag=True, help="Stay open and show every change; `q` quits.")
@limit_option(20, help="Maximum number of tasks per column.")
@in_project
def board(
    options: WorkspaceOptions, label: str | None, assignee: str | None, limit: int, *, watch: bool
) -> None:
    """Show tasks as a board, with the columns ready, doing, blocked, review and done.

    A wide terminal shows all columns side by side, a narrow one below each other, without empty ones.

    \b
    Examples:
      dittybag task board
      dittybag task board -p website --watch
      dittybag task board --assignee ann --json
    """
    if watch and (wants_json() or not sys.stdout.isatty()):
        usage_error("--watch requires a terminal, and cannot be used with --json")

    async def find(session: WorkspaceSession) -> list[TaskColumn]:
        project = await chosen_project(session, options)
        wanted = TaskFilter(project=project, label=label, assignee=assignee)
        return await session.workspace.tasks.status_board(
            session.caller, wanted, order="priority", limit=limit
        )

    if watch:
        from dittybag.cli.board_watch import watch_board

        # Without a database, it would watch an empty temporary one.
        options.run(lambda session: watch_board(session, find), create=options.settings.is_default_database)
        return
    columns, now = options.run(find), local_now()
    if wants_json():
        print_json({"columns": [_column_data(column, now) for column in columns]})
    elif sys.stdout.isatty():
        from dittybag.cli.board_drawing import BoardDrawing, open_console

        console = open_console()
        console.print(BoardDrawing(columns, now))
    else:
        _print_plain(columns, now)


def _column_data(column: TaskColumn, now: datetime) -> dict[str, Any]:
    tasks = [_task_data(task, now) for task in column.tasks]
    return {"column": column.key, "total": column.total, "tasks": tasks}


def _task_data(task: TaskListing, now: datetime) -> dict[str, Any]:
    times = {
        name: None if moment is None else iso(moment)
        for name, moment in (("completed_at", task.completed_at), ("held_until", task.held_until))
    }
    fields = {**asdict(task), **times, "overdue": is_overdue(task, now)}
    # Only the beginning of the notes is known here.
    return {name: value for name, value in fields.items() if name not in ("notes", "project_id")}


def _print_plain(columns: Sequence[TaskColumn], now: datetime) -> None:
    """Print a board without a terminal: one line per task."""
    for number, column in enumerate(columns):
        if number:
            click.echo()
        click.echo(f"{str(column.key).capitalize()} ({column.total:,})")
        ids = max((len(str(task.id)) for task in column.tasks), default=0)
        for task in column.tasks:
            facts = ", ".join(_plain_facts(task, now))
            title = clip_line(task.title, TITLE_LENGTH)
            click.echo(f"  {task.id:>{ids}}  !{task.priority}  {title}{f'  ({facts})' if facts else ''}")
        if column.total > len(column.tasks):
            click.echo(f"  and {column.total - len(column.tasks):,} more")


def _plain_facts(task: TaskListing, now: datetime) -> list[str]:
    due = format_due(task, now)
    facts = (task.project, f"due {due}" if due else "", task.holder or task.assignee, *task.labels)
    return [clip_line(fact) for fact in facts if fact]
