"""Options that several commands of `dittybag task` share, and their values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from msgspec.structs import replace

from dittybag.cli.output import clip_line, note
from dittybag.cli.read_input import text
from dittybag.domain import due_dates
from dittybag.domain.claims import parse_duration
from dittybag.domain.projects import AUTOMATIC, DEFAULT_PROJECT
from dittybag.domain.tasks import ASSIGNEE_LENGTH
from dittybag.domain.text import line_problem

if TYPE_CHECKING:
    from dittybag.cli.workspace_options import WorkspaceOptions
    from dittybag.services.workspace import WorkspaceSession

T = TypeVar("T")


def local_now() -> datetime:
    """Return the current local time."""
    return datetime.now().astimezone()


def parse_due_date(value: str) -> str:
    """Parameter type of due dates, such as "tomorrow" or "2026-12-24"."""
    try:
        return due_dates.parse_optional_due_date(text(value), local_now().date())
    except due_dates.NotADate as error:
        raise click.BadParameter(
            f"'{clip_line(value)}' is not a date. Examples: {due_dates.EXAMPLES}."
        ) from error


def parse_seconds(value: str) -> int:
    """Parameter type of durations, such as "90s" or "15m"."""
    seconds = parse_duration(value)
    if seconds is None:
        raise click.BadParameter(f"'{clip_line(value)}' is not a duration. Examples: 90s, 15m, 2h.")
    return seconds


def parse_actor(value: str) -> str:
    """Parameter type of the names of those who work on a task."""
    problem = line_problem("The name", text(value))
    if not 1 <= len(value) <= ASSIGNEE_LENGTH:
        problem = f"The name must be between 1 and {ASSIGNEE_LENGTH} characters"
    if problem is not None:
        raise click.BadParameter(f"{problem}.")
    return value


fence_option: Final = click.option(
    "--fence", metavar="N", type=int, help="Fence of your claim; refused if it is no longer valid."
)
comment_option: Final = click.option("--comment", metavar="TEXT", type=text, help="Add a comment.")
actor_option: Final = click.option(
    "--as",
    "actor",
    metavar="NAME",
    type=parse_actor,
    help="Who does this (default: DITTYBAG_ACTOR, or your user name).",
)
label_option: Final = click.option(
    "-l",
    "--label",
    "labels",
    metavar="LABEL",
    type=text,
    multiple=True,
    help="Only tasks with this label; repeatable, to match all of several.",
)


def acting_as(session: WorkspaceSession, actor: str | None) -> WorkspaceSession:
    """Return the session of another actor, if one is given."""
    return session if actor is None else replace(session, caller=replace(session.caller, actor=actor))


async def chosen_project(session: WorkspaceSession, options: WorkspaceOptions) -> str | None:
    """Return the name of the project that -p, the environment or the folder selects; `None` for none.

    The default project is selected only by its name in -p, and an empty name selects none.
    """
    if options.project is not None and options.project != AUTOMATIC:
        return options.project or None
    project = await session.workspace.projects.of_caller(session.caller)
    return None if project.name == DEFAULT_PROJECT else project.name


async def run_on_tasks(
    session: WorkspaceSession, ids: Sequence[int], fence: int | None, work: Callable[[], Awaitable[T]]
) -> tuple[T, dict[int, str]]:
    """Run work that may take tasks away from others. Returns its result, and who lost which task.

    With a `fence`, it is the work of the holder.
    """
    if fence is not None:
        return await work(), {}
    queue, caller = session.workspace.task_queue, session.caller
    before = await queue.claims_of(caller, list(ids))
    result = await work()
    after = await queue.claims_of(caller, list(before)) if before else {}
    ended = (claim for claim in before.values() if getattr(after.get(claim.task), "fence", 0) != claim.fence)
    return result, {claim.task: claim.holder for claim in ended if claim.holder != caller.actor}


def report_taken(taken: dict[int, str]) -> None:
    """Say from whom tasks were taken away."""
    for task, holder in taken.items():
        note(f"task {task} was taken from '{clip_line(holder)}', who can no longer change it with its fence")


def taken_data(taken: dict[int, str], task: int) -> dict[str, Any]:
    """Return from whom a task was taken away, for JSON output."""
    return {"taken_from": taken[task]} if task in taken else {}
