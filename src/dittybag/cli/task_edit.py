"""`dittybag task add`, `edit` and `delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from dittybag.cli.output import clip_line, print_deleted, print_result
from dittybag.cli.read_input import STREAM, read_text, text, usage_error
from dittybag.cli.strict_options import StrictCommand, option_group
from dittybag.cli.task_options import (
    acting_as,
    actor_option,
    comment_option,
    fence_option,
    local_now,
    parse_due_date,
    run_on_tasks,
)
from dittybag.cli.task_output import print_saved, task_data
from dittybag.cli.task_quick_add import QuickAdd
from dittybag.cli.task_reference import find_id, find_ids, task_argument, tasks_argument
from dittybag.cli.workspace_options import WorkspaceOptions, in_project, in_workspace
from dittybag.domain.projects import AUTOMATIC
from dittybag.domain.tasks import COMMENT_LENGTH, NOTES_BYTES, STATUSES, Task

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession


def _parse_parent(value: str) -> int | str:
    """Parameter type of the parent of a task: its number, or empty for none."""
    numbers = _parse_ids(value)
    if len(numbers) > 1:
        raise click.BadParameter("a task can be a part of one other task only.")
    return numbers[0] if numbers else ""


def _parse_ids(value: str) -> list[int]:
    """Parameter type of the numbers of tasks, such as `3` or `3,4`; empty for none."""
    try:
        return [int(part) for part in value.split(",")] if value.strip() else []
    except ValueError as error:
        raise click.BadParameter(f"'{clip_line(value)}' is not the number of a task.") from error


#: The options for the fields of a task.
_field_options: Final = option_group(
    click.option(
        "-P", "--priority", metavar="N", type=int, help="Priority from 1 (someday) to 5 (critical)."
    ),
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
    click.option("--status", type=click.Choice(STATUSES), help="Status (of a new task: todo)."),
    click.option("--assignee", metavar="NAME", type=text, help="Who is to do it: a user or an agent."),
    click.option(
        "-l", "--label", "labels", metavar="LABEL", type=text, multiple=True, help="Label; repeatable."
    ),
    click.option(
        "--link",
        "links",
        metavar="LINK",
        type=text,
        multiple=True,
        help="Name of a prompt, URI of a resource, or URL; repeatable.",
    ),
    click.option("--parent", metavar="ID", type=_parse_parent, help="Task that this one is a part of."),
    click.option(
        "--blocked-by",
        metavar="ID",
        type=_parse_ids,
        multiple=True,
        help="Task that must be done or dropped before; repeatable.",
    ),
    comment_option,
)


def _given_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that were given, reading notes or a comment from standard input if they are `-`."""
    for name, max_bytes in (("notes", NOTES_BYTES), ("comment", COMMENT_LENGTH * 4)):
        if fields.get(name) == STREAM:
            fields[name] = read_text(STREAM, max_bytes)
    if fields["comment"] is not None and not fields["comment"].strip():
        usage_error("The comment is empty")
    given = {name: value for name, value in fields.items() if value not in (None, ())}
    for name in ("labels", "links"):
        if name in given:
            given[name] = tuple(value for value in given[name] if value)
    if "blocked_by" in given:
        given["blocked_by"] = tuple(number for numbers in given["blocked_by"] for number in numbers)
    if "parent" in given:
        given["parent"] = given["parent"] or None
    return given


@click.command("add", StrictCommand)
@click.argument("title", type=text, nargs=-1, required=True)
@click.option("--plain", is_flag=True, help="Take TITLE as it is, with words such as !4 or @home.")
@_field_options
@in_project
def add(title: tuple[str, ...], options: WorkspaceOptions, *, plain: bool, **fields: Any) -> None:
    """Add a task.

    Words of TITLE can set its fields, as in the web UI: `!4` the priority, `@home` the project and
    `due fri` the due date. Use single quotes: bash replaces `!4` in double quotes. Options take precedence.

    The members of its project share the task. Without a project, it is yours alone.

    \b
    Examples:
      dittybag task add 'Buy milk !4 @home due fri'
      dittybag task add "Write tests" -P 4 -p website --blocked-by 3
      dittybag task add Call the bank -d tomorrow -e light --estimate 15min
    """
    given = _given_fields(fields)
    if options.project is not None and options.project != AUTOMATIC:
        given["project"] = options.project
    quick = QuickAdd.plain(" ".join(title)) if plain else QuickAdd.parse(" ".join(title), given)
    task = options.run(
        lambda session: session.workspace.tasks.create(
            session.caller, title=quick.title, **quick.fields, **given
        ),
        create=True,
    )
    print_saved(task, "Added", understood=quick.understood(task))
    quick.report_project(task)


@click.command("edit", StrictCommand)
@task_argument
@click.option("--title", metavar="TEXT", type=text, help="New title.")
@_field_options
@fence_option
@actor_option
@in_project
def edit(task: str, options: WorkspaceOptions, fence: int | None, actor: str | None, **fields: Any) -> None:
    """Change a task. Fields that are not given stay the same.

    Without options, the notes open in your editor. If someone else changes the task in the meantime, it is
    not overwritten: both versions are shown, and your text is kept in a file.

    Labels, links and blockers replace those that the task has. An empty value clears the project, the
    notes, the due date, the assignee, the parent, or all labels, links or blockers.

    A new status or assignee takes the task away from an agent that works on it.

    \b
    Examples:
      dittybag task edit 3
      dittybag task edit 3 -P 5 -d "next mon" --blocked-by 1 --blocked-by 2
      dittybag task edit 3 --status review --fence 41 --comment "See the branch login"
      git log -1 | dittybag task edit 3 --comment -
    """
    given = _given_fields(fields)
    if not given and options.project is None:
        _edit_notes(options, task, fence, actor)
        return

    async def work(session: WorkspaceSession) -> tuple[Task, dict[int, str]]:
        session = acting_as(session, actor)
        if options.project is not None:
            given["project"] = await _new_project(session, options.project)
        return await _update(session, await find_id(session, task), fence, **given)

    updated, taken = options.run(work)
    print_saved(updated, "Updated", taken)


async def _update(
    session: WorkspaceSession, number: int, fence: int | None, **fields: Any
) -> tuple[Task, dict[int, str]]:
    """Update a task, and return it and who lost it."""
    return await run_on_tasks(
        session,
        [number],
        fence,
        lambda: session.workspace.tasks.update(session.caller, number, fence=fence, **fields),
    )


def _edit_notes(options: WorkspaceOptions, task: str, fence: int | None, actor: str | None) -> None:
    from dittybag.cli.editor import edit_text, require_terminal

    require_terminal("give an option; `--notes -` reads the notes from standard input")

    async def get(session: WorkspaceSession) -> Task:
        return await session.workspace.tasks.get(session.caller, await find_id(session, task))

    before = options.run(get)
    saved = edit_text(
        f"task-{before.id}",
        before.notes or "",
        lambda notes: options.run(
            lambda session: _update(
                acting_as(session, actor), before.id, fence, version=before.version, notes=notes
            )
        ),
        max_bytes=NOTES_BYTES,
        resume=f"dittybag task edit {before.id} --notes - <",
        stored=lambda: options.run(get).notes or "",
    )
    if saved is None:
        print_result(task_data(before, local_now()), f"Task {before.id} is unchanged")
    else:
        print_saved(saved[0], "Updated", saved[1])


async def _new_project(session: WorkspaceSession, name: str) -> str:
    """Return the name of the project that a task moves to. For `auto`, it is created if necessary."""
    if name != AUTOMATIC:
        return name
    projects, caller = session.workspace.projects, session.caller
    if caller.folder is not None:
        return (await projects.create_of_folder(caller.folder, actor=caller.actor)).name
    return (await projects.of_caller(caller)).name


@click.command("delete", StrictCommand)
@tasks_argument
@in_workspace
def delete(tasks: tuple[str, ...], options: WorkspaceOptions) -> None:
    """Delete tasks, all of them or none.

    `dittybag undo` restores them.

    \b
    Example:
      dittybag task delete 3
    """

    async def work(session: WorkspaceSession) -> list[Task]:
        ids = await find_ids(session, tasks)
        return await session.workspace.tasks.delete_all(session.caller, ids)

    deleted = options.run(work)
    print_deleted(
        [{"id": task.id, "title": task.title} for task in deleted],
        [f"Deleted task {task.id} '{clip_line(task.title)}'" for task in deleted],
    )
