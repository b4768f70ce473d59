"""`dittybag task`: add, list, show, finish, reopen, change, delete and count tasks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import click

from dittybag.cli import local_time
from dittybag.cli.output import clip_line, json_option, print_json, print_table, terminal_safe
from dittybag.cli.read_input import STREAM, read_text, text, usage_error
from dittybag.cli.task_bars import print_charts
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.tasks import NOTES_LENGTH, Task
from dittybag.domain.times import iso
from dittybag.services.task_service import TaskMark

#: A list shows so many, unless it is told otherwise.
_DEFAULT_LIMIT: Final = 50


@click.group("task")
def command() -> None:
    """Add, list, show, finish, reopen, change, delete and count tasks."""


def parse_due_date(value: str) -> str:
    """The type of options that are a day, in words or in digits."""
    try:
        return local_time.parse_optional_due_date(text(value), local_time.now().date())
    except local_time.NotADate as error:
        raise click.BadParameter(
            f"'{clip_line(value)}' names no day. Write one like these: {local_time.EXAMPLES}."
        ) from error


def _field_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say what a task is like; it gets those that were given."""
    for option in (
        click.option(
            "-d",
            "--due",
            "due_date",
            metavar="WHEN",
            type=parse_due_date,
            help="As in tomorrow, fri, 2w, 2026-12-24.",
        ),
        click.option("-n", "--notes", metavar="TEXT", type=text, help="Notes; `-` for standard input."),
        click.option("--estimate", "time_estimate", metavar="TEXT", type=text, help="As in 30min or 2hr."),
        click.option(
            "-e", "--energy", metavar="LEVEL", type=text, help="What it takes: light, medium or deep."
        ),
        click.option("-p", "--project", metavar="NAME", type=text, help="What it belongs to, in any words."),
        click.option("-P", "--priority", metavar="N", type=int, help="From 1 (someday) to 5 (critical)."),
    ):
        function = option(function)
    return function


def _given_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that were given, with notes that may be on standard input."""
    if fields.get("notes") == STREAM:
        # No character takes more than four bytes.
        fields["notes"] = read_text(STREAM, NOTES_LENGTH * 4)
    return {name: value for name, value in fields.items() if value is not None}


@command.command("add")
@click.argument("title", type=text, nargs=-1, required=True)
@_field_options
@in_workspace
@json_option
def add(title: tuple[str, ...], options: WorkspaceOptions, *, as_json: bool, **fields: Any) -> None:
    """Add a task.

    \b
    Example:
      dittybag task add "Write tests" -P 4 -p auth
      dittybag task add Call the bank -d tomorrow -e light --estimate 15min
    """
    given = _given_fields(fields)
    task = options.run(
        lambda session: session.workspace.tasks.create(session.caller, title=" ".join(title), **given)
    )
    _print_result(task, "Added", as_json=as_json)


@command.command("list")
@click.option("-p", "--project", metavar="NAME", type=text, help="Only of this project.")
@click.option("-P", "--priority", metavar="N", type=int, help="Only with this priority.")
@click.option("--done", is_flag=True, help="Those that are done.")
@click.option("--all", "everything", is_flag=True, help="Those that are done, too.")
@click.option("--overdue", is_flag=True, help="Only those whose due date is past.")
@click.option("--due", metavar="WHEN", type=parse_due_date, help="Only those due by then, as in fri or 2w.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1, 1_000_000), default=_DEFAULT_LIMIT, help="At most so many."
)
@in_workspace
@json_option
def list_tasks(
    options: WorkspaceOptions,
    *,
    project: str | None,
    priority: int | None,
    due: str | None,
    limit: int,
    done: bool,
    everything: bool,
    overdue: bool,
    as_json: bool,
) -> None:
    """Show what there is to do, the most important first.

    \b
    Example:
      dittybag task list -p auth
      dittybag task list --due fri
    """
    if done and (everything or overdue):
        usage_error(f"--done and --{'all' if everything else 'overdue'} exclude each other")
    if due is not None and (overdue or not due):
        usage_error("give --due a day, and --overdue alone")
    now = local_time.now()
    # Somewhere it is tomorrow already.
    latest = (now.date() + timedelta(1)).isoformat() if overdue else due and local_time.local_due_day(due)
    found = options.run(
        lambda session: session.workspace.tasks.filter(
            session.caller,
            project=project,
            priority=priority,
            completed=None if everything else done,
            due_by=latest,
            limit=None if overdue else limit + 1,
        )
    )
    if overdue:
        found = [task for task in found if _is_overdue(task, now)]
    _print_tasks(found[:limit], now, more=len(found) > limit, as_json=as_json)


def _print_tasks(tasks: Sequence[Task], now: datetime, *, more: bool, as_json: bool) -> None:
    if as_json:
        print_json({"tasks": [_task_data(task, now) for task in tasks], "more": more})
        return
    if not tasks:
        click.echo("There is nothing to do", err=True)
        return
    with_done = any(task.completed for task in tasks)
    print_table(
        ("id", "priority", "title", "project", "estimate", "due", *(("done",) if with_done else ())),
        [_row(task, now, with_done=with_done) for task in tasks],
        right=(0, 1),
        shrinkable=(2, 3),
        styles=lambda number: _style(tasks[number], now),
    )
    if more:
        click.echo("There are more; --limit N shows them", err=True)


def _row(task: Task, now: datetime, *, with_done: bool) -> tuple[str, ...]:
    row = (
        str(task.id),
        str(task.priority),
        terminal_safe(clip_line(task.title)),
        terminal_safe(clip_line(task.project or "")),
        terminal_safe(clip_line(task.time_estimate)),
        _due(task, now),
    )
    return (*row, "yes" if task.completed else "") if with_done else row


def _due(task: Task, now: datetime) -> str:
    if task.due_date is None:
        return ""
    words = local_time.format_due(task.due_date, now) if sys.stdout.isatty() else task.due_date
    return f"{words} (overdue)" if _is_overdue(task, now) else words


def _is_overdue(task: Task, now: datetime) -> bool:
    return not task.completed and task.due_date is not None and local_time.is_overdue(task.due_date, now)


def _style(task: Task, now: datetime) -> dict[str, Any]:
    if task.completed:
        return {"dim": True}
    if _is_overdue(task, now):
        return {"fg": "red"}
    is_today = task.due_date is not None and local_time.local_due_day(task.due_date) == now.date().isoformat()
    return {"fg": "yellow"} if is_today else {}


@command.command("show")
@click.argument("id", type=int)
@in_workspace
@json_option
def show(id: int, options: WorkspaceOptions, *, as_json: bool) -> None:
    """Show everything about a task.

    \b
    Example:
      dittybag task show 3
    """
    task = options.run(lambda session: session.workspace.tasks.get(session.caller, id))
    now = local_time.now()
    if as_json:
        print_json(_task_data(task, now))
        return
    click.secho(f"{task.id}  {terminal_safe(clip_line(task.title, 500))}", bold=True, **_style(task, now))
    about = {
        "project": terminal_safe(clip_line(task.project or "")),
        "priority": str(task.priority),
        "energy": task.energy,
        "estimate": terminal_safe(clip_line(task.time_estimate)),
        "due": _due(task, now),
        "done": "" if task.completed_at is None else iso(task.completed_at),
        "added": iso(task.created_at),
        "changed": iso(task.updated_at),
    }
    for name, value in about.items():
        if value:
            click.echo(f"{name:8}  {value}")
    if task.notes:
        click.echo()
        click.echo(terminal_safe(task.notes), nl=not task.notes.endswith("\n"))


@command.command("done")
@click.argument("ids", metavar="ID...", type=int, nargs=-1, required=True)
@in_workspace
@json_option
def done(ids: tuple[int, ...], options: WorkspaceOptions, *, as_json: bool) -> None:
    """Mark tasks as done, all of them or none.

    \b
    Example:
      dittybag task done 3 4
    """
    marks = options.run(lambda session: session.workspace.tasks.complete_all(session.caller, ids))
    _print_marks(marks, "Completed", "Already done:", as_json=as_json)


@command.command("reopen")
@click.argument("ids", metavar="ID...", type=int, nargs=-1, required=True)
@in_workspace
@json_option
def reopen(ids: tuple[int, ...], options: WorkspaceOptions, *, as_json: bool) -> None:
    """Mark tasks as not done after all, all of them or none.

    \b
    Example:
      dittybag task reopen 3
    """
    marks = options.run(lambda session: session.workspace.tasks.reopen_all(session.caller, ids))
    _print_marks(marks, "Reopened", "Already open:", as_json=as_json)


@command.command("update")
@click.argument("id", type=int)
@click.option("--title", metavar="TEXT", type=text, help="What there is to do.")
@_field_options
@in_workspace
@json_option
def update(id: int, options: WorkspaceOptions, *, as_json: bool, **fields: Any) -> None:
    """Change a task; what is not given stays. An empty text takes project, notes or due date away.

    \b
    Example:
      dittybag task update 3 -P 5 -d "next mon"
      dittybag task update 3 --due none
    """
    given = _given_fields(fields)
    if not given:
        usage_error("Nothing to update: give at least one option")
    task = options.run(lambda session: session.workspace.tasks.update(session.caller, id, **given))
    _print_result(task, "Updated", as_json=as_json)


@command.command("delete")
@click.argument("ids", metavar="ID...", type=int, nargs=-1, required=True)
@in_workspace
@json_option
def delete(ids: tuple[int, ...], options: WorkspaceOptions, *, as_json: bool) -> None:
    """Delete tasks, all of them or none; `dittybag undo` brings them back.

    \b
    Example:
      dittybag task delete 3
    """
    gone = options.run(lambda session: session.workspace.tasks.delete_all(session.caller, ids))
    if as_json:
        print_json({"deleted": [{"id": task.id, "title": task.title} for task in gone]})
        return
    for task in gone:
        click.echo(f"Deleted task {task.id} '{terminal_safe(clip_line(task.title))}'")
    click.echo(f"hint: dittybag undo brings {'it' if len(gone) == 1 else 'them'} back", err=True)


@command.command("stats")
@in_workspace
@json_option
def stats(options: WorkspaceOptions, *, as_json: bool) -> None:
    """Draw how much is done, by project and by priority.

    \b
    Example:
      dittybag task stats
    """
    groups = options.run(lambda session: session.workspace.tasks.groups(session.caller))
    print_charts(groups, as_json=as_json)


def _print_marks(marks: Sequence[TaskMark], verb: str, otherwise: str, *, as_json: bool) -> None:
    now = local_time.now()
    if as_json:
        print_json({"tasks": [_task_data(mark.task, now) for mark in marks]})
        return
    for mark in marks:
        click.echo(f"{verb if mark.changed else otherwise} {_describe(mark.task, now)}")


def _print_result(task: Task, verb: str, *, as_json: bool) -> None:
    now = local_time.now()
    if as_json:
        print_json(_task_data(task, now))
    else:
        click.echo(f"{verb} {_describe(task, now)}")


def _describe(task: Task, now: datetime) -> str:
    due = f", due {_due(task, now)}" if task.due_date and not task.completed else ""
    return f"task {task.id} '{terminal_safe(clip_line(task.title))}'{due}"


def _task_data(task: Task, now: datetime) -> dict[str, Any]:
    return {
        "id": task.id,
        "title": task.title,
        "project": task.project,
        "priority": task.priority,
        "energy": task.energy,
        "time_estimate": task.time_estimate,
        "notes": task.notes,
        "due_date": task.due_date,
        "overdue": _is_overdue(task, now),
        "completed": task.completed,
        "completed_at": None if task.completed_at is None else iso(task.completed_at),
        "created_at": iso(task.created_at),
        "updated_at": iso(task.updated_at),
        "version": task.version,
    }
