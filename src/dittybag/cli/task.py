"""`dittybag task`: manage tasks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import click

from dittybag.cli.error_output import wants_json
from dittybag.cli.output import (
    clip_line,
    hint,
    limit_option,
    print_deleted,
    print_list,
    print_result,
    terminal_safe,
)
from dittybag.cli.read_input import STREAM, read_text, text, usage_error
from dittybag.cli.strict_options import StrictGroup, option_group
from dittybag.cli.task_graph import graph
from dittybag.cli.task_import import import_tasks
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain import due_dates
from dittybag.domain.entities import to_data
from dittybag.domain.queries import TaskQuery
from dittybag.domain.tasks import NO_PROJECT, NOTES_LENGTH, Task
from dittybag.domain.times import iso
from dittybag.services.task_service import TaskMark


@click.group("task", StrictGroup)
def command() -> None:
    """Manage tasks."""


command.add_command(graph)
command.add_command(import_tasks)


def _now() -> datetime:
    """Return the current local time."""
    return datetime.now().astimezone()


def parse_due_date(value: str) -> str:
    """Parameter type of due dates, such as "tomorrow" or "2026-12-24"."""
    try:
        return due_dates.parse_optional_due_date(text(value), _now().date())
    except due_dates.NotADate as error:
        raise click.BadParameter(
            f"'{clip_line(value)}' is not a date. Examples: {due_dates.EXAMPLES}."
        ) from error


#: The options for the fields of a task.
_field_options: Final = option_group(
    click.option(
        "-P", "--priority", metavar="N", type=int, help="Priority from 1 (someday) to 5 (critical)."
    ),
    click.option("-p", "--project", metavar="NAME", type=text, help="Project of the task; any text."),
    click.option(
        "-e", "--energy", metavar="LEVEL", type=text, help="Energy required: light, medium or deep."
    ),
    click.option(
        "--estimate", "time_estimate", metavar="TEXT", type=text, help="Time estimate, such as 30min or 2hr."
    ),
    click.option("-n", "--notes", metavar="TEXT", type=text, help="Notes; `-` reads standard input."),
    click.option(
        "-d",
        "--due",
        "due_date",
        metavar="WHEN",
        type=parse_due_date,
        help="Due date, such as tomorrow, fri, 2w or 2026-12-24.",
    ),
)


def _given_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that were given, reading notes from standard input if they are `-`."""
    if fields.get("notes") == STREAM:
        # A character has at most four bytes in UTF-8.
        fields["notes"] = read_text(STREAM, NOTES_LENGTH * 4)
    return {name: value for name, value in fields.items() if value is not None}


@command.command("add")
@click.argument("title", type=text, nargs=-1, required=True)
@_field_options
@in_workspace
def add(title: tuple[str, ...], options: WorkspaceOptions, **fields: Any) -> None:
    """Add a task.

    \b
    Examples:
      dittybag task add "Write tests" -P 4 -p auth
      dittybag task add Call the bank -d tomorrow -e light --estimate 15min
    """
    given = _given_fields(fields)
    task = options.run(
        lambda session: session.workspace.tasks.create(session.caller, title=" ".join(title), **given),
        create=True,
    )
    _print_saved(task, "Added")


@command.command("list")
@click.option("-p", "--project", metavar="NAME", type=text, help="Only tasks of this project.")
@click.option("--no-project", is_flag=True, help="Only tasks without a project.")
@click.option("-P", "--priority", metavar="N", type=int, help="Only tasks with this priority.")
@click.option("--done", is_flag=True, help="Only completed tasks.")
@click.option("--all", "everything", is_flag=True, help="Include completed tasks.")
@click.option("--overdue", is_flag=True, help="Only overdue tasks.")
@click.option("--due", metavar="WHEN", type=parse_due_date, help="Only tasks due by then, such as fri or 2w.")
@limit_option(50)
@in_workspace
def list_tasks(
    options: WorkspaceOptions,
    *,
    project: str | None,
    priority: int | None,
    due: str | None,
    limit: int,
    no_project: bool,
    done: bool,
    everything: bool,
    overdue: bool,
) -> None:
    """List open tasks, highest priority first.

    \b
    Examples:
      dittybag task list -p auth
      dittybag task list --due fri
    """
    if done and (everything or overdue):
        usage_error(f"--done and --{'all' if everything else 'overdue'} cannot be used together")
    if due is not None and (overdue or not due):
        usage_error("--due requires a date and cannot be used with --overdue")
    if no_project and project is not None:
        usage_error("--project and --no-project cannot be used together")
    now = _now()
    # In other time zones it is already tomorrow.
    latest = (now.date() + timedelta(1)).isoformat() if overdue else due and due_dates.local_due_day(due)
    found = options.run(
        lambda session: session.workspace.tasks.page(
            session.caller,
            TaskQuery(
                user=session.caller.user,
                project=NO_PROJECT if no_project else project,
                priority=priority,
                completed=None if everything else done,
                due_by=latest,
                limit=None if overdue else limit + 1,
            ),
        )
    )
    if overdue:
        found = [task for task in found if _is_overdue(task, now)]
    _print_tasks(found[:limit], now, more=len(found) > limit)


def _print_tasks(tasks: Sequence[Task], now: datetime, *, more: bool) -> None:
    with_done = any(task.completed for task in tasks)
    print_list(
        {"tasks": [_task_data(task, now) for task in tasks], "more": more},
        ("id", "priority", "title", "project", "estimate", "due", *(("done",) if with_done else ())),
        [_row(task, now, with_done=with_done) for task in tasks],
        empty=("No tasks found",),
        right=(0, 1),
        shrinkable=(2, 3),
        styles=lambda number: _style(tasks[number], now),
    )
    if more:
        hint("there are more tasks; raise --limit to see them")


def _row(task: Task, now: datetime, *, with_done: bool) -> tuple[str, ...]:
    row = (
        str(task.id),
        str(task.priority),
        clip_line(task.title),
        clip_line(task.project or ""),
        clip_line(task.time_estimate),
        _due(task, now),
    )
    return (*row, "yes" if task.completed else "") if with_done else row


def _due(task: Task, now: datetime) -> str:
    if task.due_date is None:
        return ""
    due = due_dates.format_due(task.due_date, now) if sys.stdout.isatty() else task.due_date
    return f"{due} (overdue)" if _is_overdue(task, now) else due


def _is_overdue(task: Task, now: datetime) -> bool:
    return not task.completed and task.due_date is not None and due_dates.is_overdue(task.due_date, now)


def _style(task: Task, now: datetime) -> dict[str, Any]:
    if task.completed:
        return {"dim": True}
    if _is_overdue(task, now):
        return {"fg": "red"}
    is_today = task.due_date is not None and due_dates.local_due_day(task.due_date) == now.date().isoformat()
    return {"fg": "yellow"} if is_today else {}


@command.command("show")
@click.argument("id", type=int)
@in_workspace
def show(id: int, options: WorkspaceOptions) -> None:
    """Show a task.

    \b
    Example:
      dittybag task show 3
    """
    task = options.run(lambda session: session.workspace.tasks.get(session.caller, id))
    now = _now()
    if wants_json():
        print_result(_task_data(task, now))
        return
    click.secho(f"{task.id}  {clip_line(task.title, 500)}", bold=True, **_style(task, now))
    about = {
        "project": clip_line(task.project or ""),
        "priority": str(task.priority),
        "energy": task.energy,
        "estimate": clip_line(task.time_estimate),
        "due": _due(task, now),
        "completed": "" if task.completed_at is None else iso(task.completed_at),
        "created": iso(task.created_at),
        "updated": iso(task.updated_at),
    }
    for name, value in about.items():
        if value:
            click.echo(f"{name:9}  {value}")
    if task.notes:
        click.echo()
        click.echo(terminal_safe(task.notes), nl=not task.notes.endswith("\n"))


@command.command("done")
@click.argument("ids", metavar="ID...", type=int, nargs=-1, required=True)
@in_workspace
def done(ids: tuple[int, ...], options: WorkspaceOptions) -> None:
    """Mark tasks as completed, all of them or none.

    \b
    Example:
      dittybag task done 3 4
    """
    marks = options.run(lambda session: session.workspace.tasks.complete_all(session.caller, ids))
    _print_marks(marks, "Completed", "Already completed:")


@command.command("reopen")
@click.argument("ids", metavar="ID...", type=int, nargs=-1, required=True)
@in_workspace
def reopen(ids: tuple[int, ...], options: WorkspaceOptions) -> None:
    """Reopen completed tasks, all of them or none.

    \b
    Example:
      dittybag task reopen 3
    """
    marks = options.run(lambda session: session.workspace.tasks.reopen_all(session.caller, ids))
    _print_marks(marks, "Reopened", "Already open:")


@command.command("update")
@click.argument("id", type=int)
@click.option("--title", metavar="TEXT", type=text, help="New title.")
@_field_options
@in_workspace
def update(id: int, options: WorkspaceOptions, **fields: Any) -> None:
    """Update a task. Fields that are not given stay the same.

    An empty value clears the project, the notes or the due date.

    \b
    Examples:
      dittybag task update 3 -P 5 -d "next mon"
      dittybag task update 3 --due none
    """
    given = _given_fields(fields)
    if not given:
        usage_error("Nothing to update: no option was given")
    task = options.run(lambda session: session.workspace.tasks.update(session.caller, id, **given))
    _print_saved(task, "Updated")


@command.command("delete")
@click.argument("ids", metavar="ID...", type=int, nargs=-1, required=True)
@in_workspace
def delete(ids: tuple[int, ...], options: WorkspaceOptions) -> None:
    """Delete tasks, all of them or none.

    `dittybag undo` restores them.

    \b
    Example:
      dittybag task delete 3
    """
    deleted = options.run(lambda session: session.workspace.tasks.delete_all(session.caller, ids))
    print_deleted(
        [{"id": task.id, "title": task.title} for task in deleted],
        [f"Deleted task {task.id} '{clip_line(task.title)}'" for task in deleted],
    )


@command.command("stats")
@in_workspace
def stats(options: WorkspaceOptions) -> None:
    """Show completion charts by project and by priority.

    \b
    Example:
      dittybag task stats
    """
    from dittybag.cli.task_bars import print_charts

    groups = options.run(lambda session: session.workspace.tasks.groups(session.caller))
    print_charts(groups)


def _print_marks(marks: Sequence[TaskMark], verb: str, otherwise: str) -> None:
    now = _now()
    print_result(
        {"tasks": [_task_data(mark.task, now) for mark in marks]},
        *(f"{verb if mark.changed else otherwise} {_describe(mark.task, now)}" for mark in marks),
    )


def _print_saved(task: Task, verb: str) -> None:
    now = _now()
    print_result(_task_data(task, now), f"{verb} {_describe(task, now)}")


def _describe(task: Task, now: datetime) -> str:
    due = f", due {_due(task, now)}" if task.due_date and not task.completed else ""
    return f"task {task.id} '{clip_line(task.title)}'{due}"


def _task_data(task: Task, now: datetime) -> dict[str, Any]:
    return {**to_data(task), "completed": task.completed, "overdue": _is_overdue(task, now)}
