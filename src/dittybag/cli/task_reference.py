"""Tasks as people name them on the command line: by number or by title."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from dittybag.cli.error_output import ExitStatus
from dittybag.cli.output import clip_line
from dittybag.cli.read_input import refuse, text
from dittybag.domain.errors import AmbiguousReference

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession

#: A number with more digits is not that of a task.
_MAX_DIGITS: Final = 30

task_argument: Final = click.argument("task", metavar="TASK", type=text)
tasks_argument: Final = click.argument("tasks", metavar="TASK...", type=text, nargs=-1, required=True)


async def find_id(session: WorkspaceSession, task: str, *, ended_first: bool = False) -> int:
    """Return the number of a task that is named by its number, its title, or a unique part of its title.

    A number need not exist. `ended_first`: prefer tasks that are done or dropped.
    """
    if task.isascii() and task.removeprefix("-").isdigit():
        return int(task[:_MAX_DIGITS])
    from dittybag.services.task_lookup import NamedTask

    try:
        found = await session.workspace.tasks.find_named(
            session.caller, NamedTask(task, ended_first=ended_first)
        )
    except AmbiguousReference as error:
        error.add_note("give more of the title, or the number of the task")
        raise
    if found is None:
        refuse(
            f"No task is called '{clip_line(task)}'",
            "give the number of a task, its title or a part of it; to see tasks, run: dittybag task list",
            status=ExitStatus.NOT_FOUND,
            code="TASK_NOT_FOUND",
        )
    return found.id


async def find_ids(
    session: WorkspaceSession, tasks: Sequence[str], *, ended_first: bool = False
) -> list[int]:
    """Return the numbers of several tasks."""
    return [await find_id(session, task, ended_first=ended_first) for task in tasks]
