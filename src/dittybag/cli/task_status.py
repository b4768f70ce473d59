"""`dittybag task done`, `review`, `drop` and `reopen`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from dittybag.cli.read_input import usage_error
from dittybag.cli.strict_options import StrictCommand, option_group
from dittybag.cli.task_options import acting_as, actor_option, comment_option, fence_option, run_on_tasks
from dittybag.cli.task_output import print_marks
from dittybag.cli.task_reference import find_ids, tasks_argument
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.tasks import TaskStatus

if TYPE_CHECKING:
    from dittybag.services.task_service import TaskMark
    from dittybag.services.workspace import WorkspaceSession

_work_options: Final = option_group(fence_option, comment_option, actor_option)


@click.command("done", StrictCommand)
@tasks_argument
@_work_options
@in_workspace
def done(
    tasks: tuple[str, ...],
    options: WorkspaceOptions,
    fence: int | None,
    comment: str | None,
    actor: str | None,
) -> None:
    """Mark tasks as completed, all of them or none.

    TASK is the number of a task, its title, or a part of its title that no other title has. Several words
    are one title if there is such a task. To name several tasks, give numbers or whole titles.

    \b
    Examples:
      dittybag task done 3 4
      dittybag task done "Write tests"
      dittybag task done 3 --fence 41 --comment "Merged as 5f2c1"
    """
    marks, taken = _finish(tasks, options, "done", fence=fence, comment=comment, actor=actor)
    print_marks(marks, "Completed", "Already completed:", taken)


@click.command("review", StrictCommand)
@tasks_argument
@_work_options
@in_workspace
def review(
    tasks: tuple[str, ...],
    options: WorkspaceOptions,
    fence: int | None,
    comment: str | None,
    actor: str | None,
) -> None:
    """Hand tasks over to be reviewed, all of them or none. What waits for them goes on waiting.

    \b
    Example:
      dittybag task review 3 --fence 41 --comment "See the branch login"
    """
    marks, taken = _finish(tasks, options, "review", fence=fence, comment=comment, actor=actor)
    print_marks(marks, "To be reviewed:", "Already in review:", taken)


@click.command("drop", StrictCommand)
@tasks_argument
@_work_options
@in_workspace
def drop(
    tasks: tuple[str, ...],
    options: WorkspaceOptions,
    fence: int | None,
    comment: str | None,
    actor: str | None,
) -> None:
    """Drop tasks that will not be done, all of them or none. What waits for them waits no longer.

    \b
    Example:
      dittybag task drop 3 --comment "Done by the new release"
    """
    marks, taken = _finish(tasks, options, "dropped", fence=fence, comment=comment, actor=actor)
    print_marks(marks, "Dropped", "Already dropped:", taken)


def _finish(
    tasks: Sequence[str],
    options: WorkspaceOptions,
    status: TaskStatus,
    *,
    fence: int | None,
    comment: str | None,
    actor: str | None,
) -> tuple[list[TaskMark], dict[int, str]]:
    if fence is not None and len(set(tasks)) > 1:
        usage_error("--fence is that of one task; give one TASK")

    async def work(session: WorkspaceSession) -> tuple[list[TaskMark], dict[int, str]]:
        session = acting_as(session, actor)
        ids = await find_ids(session, tasks)
        return await run_on_tasks(
            session,
            ids,
            fence,
            lambda: session.workspace.task_queue.finish_all(
                session.caller, ids, fence=fence, comment=comment, status=status
            ),
        )

    return options.run(work)


@click.command("reopen", StrictCommand)
@tasks_argument
@in_workspace
def reopen(tasks: tuple[str, ...], options: WorkspaceOptions) -> None:
    """Reopen completed or dropped tasks, all of them or none.

    \b
    Example:
      dittybag task reopen 3
    """

    async def work(session: WorkspaceSession) -> list[TaskMark]:
        ids = await find_ids(session, tasks, ended_first=True)
        return await session.workspace.tasks.reopen_all(session.caller, ids)

    marks = options.run(work)
    print_marks(marks, "Reopened", "Already open:")
