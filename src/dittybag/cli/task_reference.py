"""Tasks as people name them on the command line: by number or by title."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NoReturn

import click

from dittybag.cli import stored_names
from dittybag.cli.error_output import ExitStatus
from dittybag.cli.output import clip_line
from dittybag.cli.read_input import refuse, text
from dittybag.domain.errors import AmbiguousReference
from dittybag.domain.text import fold_accents

if TYPE_CHECKING:
    from dittybag.domain.tasks import Task
    from dittybag.services.workspace import WorkspaceSession

#: A number with more digits is not that of a task.
_MAX_DIGITS: Final = 30

task_argument: Final = click.argument("task", metavar="TASK", type=text, shell_complete=stored_names.tasks)
tasks_argument: Final = click.argument(
    "tasks", metavar="TASK...", type=text, nargs=-1, required=True, shell_complete=stored_names.tasks
)


async def find_id(session: WorkspaceSession, task: str) -> int:
    """Return the number of a task that is named by its number, its title, or a unique part of its title.

    A number need not exist.
    """
    if _is_number(task):
        return int(task[:_MAX_DIGITS])
    found = await _find_by_title(session, task)
    if found is None:
        _refuse_unknown(
            task,
            "give the number of a task, its title or a part of it; to see tasks, run: dittybag task list",
        )
    return found.id


def _is_number(task: str) -> bool:
    return task.isascii() and task.removeprefix("-").isdigit()


async def _find_by_title(session: WorkspaceSession, title: str) -> Task | None:
    try:
        return await session.workspace.tasks.find_named(session.caller, title)
    except AmbiguousReference as error:
        error.add_note("give more of the title, or the number of the task")
        raise


def _refuse_unknown(title: str, *hints: str) -> NoReturn:
    refuse(
        f"No task is called '{clip_line(title)}'", *hints, status=ExitStatus.NOT_FOUND, code="TASK_NOT_FOUND"
    )


async def find_ids(session: WorkspaceSession, tasks: Sequence[str]) -> list[int]:
    """Return the numbers of several tasks.

    Several words are one title if there is such a task; otherwise, each is a number or a whole title.
    """
    if len(tasks) == 1 or all(map(_is_number, tasks)):
        return [await find_id(session, task) for task in tasks]
    title = " ".join(tasks)
    if (named := await _find_by_title(session, title)) is not None:
        return [named.id]
    ids, parts = [], []
    for task in tasks:
        if _is_number(task):
            ids.append(int(task[:_MAX_DIGITS]))
            continue
        found = await _find_by_title(session, task)
        if found is None:
            _refuse_unknown(title, f"nor '{clip_line(task)}'; to see tasks, run: dittybag task list")
        ids.append(found.id)
        if fold_accents(" ".join(found.title.split())) != fold_accents(" ".join(task.split())):
            parts.append(f"{found.id} '{clip_line(found.title)}'")
    if parts:
        _refuse_unknown(title, f"similar: {', '.join(parts)}; to name several tasks, give their numbers")
    return ids
