"""`dittybag task next`, `done`, `release` and `renew`: the queue of ready tasks."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from dittybag.cli import stored_names
from dittybag.cli.error_output import ExitStatus, wants_json
from dittybag.cli.output import clip_line, hint, note, print_json, print_result
from dittybag.cli.read_input import refuse, text, usage_error
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.task_options import (
    acting_as,
    actor_option,
    chosen_project,
    comment_option,
    fence_option,
    label_option,
    local_now,
    parse_seconds,
    report_taken,
    run_on_tasks,
    taken_data,
)
from dittybag.cli.task_output import (
    claim_data,
    describe,
    format_until,
    print_completed,
    print_saved,
    task_data,
)
from dittybag.cli.task_reference import find_id, find_ids, task_argument, tasks_argument
from dittybag.cli.workspace_options import WorkspaceOptions, in_project, in_workspace
from dittybag.domain.claims import DEFAULT_LEASE, MAX_WAIT
from dittybag.domain.times import iso

if TYPE_CHECKING:
    from dittybag.domain.claims import Claim
    from dittybag.domain.tasks import Task
    from dittybag.services.task_queue import ClaimedTask, ClaimRequest
    from dittybag.services.task_service import TaskMark
    from dittybag.services.workspace import WorkspaceSession

#: The value of --wait without a duration.
_WITHOUT_END: Final = "without end"


def _parse_wait(value: str) -> float:
    """Parameter type of how long to wait."""
    if value == _WITHOUT_END:
        return math.inf
    seconds = parse_seconds(value)
    if seconds > MAX_WAIT:
        raise click.BadParameter(f"at most {MAX_WAIT // 3600} hours; leave it out to wait without end.")
    return seconds


@click.command("next", StrictCommand)
@click.argument("task", metavar="[TASK]", type=text, required=False, shell_complete=stored_names.tasks)
@label_option
@click.option(
    "--lease",
    metavar="TIME",
    type=parse_seconds,
    default=f"{DEFAULT_LEASE // 60}m",
    show_default=True,
    help="How long you hold the task without renewing the claim.",
)
@click.option(
    "--wait",
    metavar="[TIME]",
    type=_parse_wait,
    is_flag=False,
    flag_value=_WITHOUT_END,
    default="0s",
    help="Wait until a task is ready, at most for TIME.",
)
@click.option("--take", is_flag=True, help="Take TASK away from its holder.")
@actor_option
@in_project
def claim_next(
    task: str | None,
    options: WorkspaceOptions,
    labels: tuple[str, ...],
    lease: int,
    *,
    wait: float,
    actor: str | None,
    take: bool,
) -> None:
    """Claim TASK, or the best task that is ready, and print it.

    A task is ready if it is to do, waits for no other task, is not assigned to somebody else and nobody holds
    it. The best one has the highest priority, then the earliest due date, then the lowest number.

    You hold the task until you finish or release it, or the lease lapses. Then others can claim it. Name the
    fence in what you do with it: it is refused as soon as somebody else has the task.

    The exit status is 0 with a task, and 6 if none is ready in time.

    \b
    Examples:
      dittybag task next -p website
      dittybag task next 3 --take
      dittybag task next --wait 10m --lease 1h --json
      while t=$(dittybag task next --wait --json --as worker-1); do ...; done
    """
    if task is not None:
        if labels or wait or options.project is not None:
            usage_error("--label, --wait and --project select a task; use them without TASK")
        _claim_task(task, options, lease, actor, take=take)
        return
    if take:
        usage_error("--take requires TASK")

    async def work(session: WorkspaceSession) -> bool:
        session = acting_as(session, actor)
        request = _request(lease, project=await chosen_project(session, options), labels=labels)
        with _cancelled_by_sigterm():
            found = await session.workspace.task_waiting.claim_next(
                session.caller, request, wait, _waiting_reporter()
            )
            # A signal must not end the process between the claim and its output.
            if found is not None:
                await _hand_over(session, found)
        return found is not None

    # Without a database, it would wait for tasks of an empty temporary one.
    if not options.run(work, create=wait > 0 and options.settings.is_default_database):
        refuse(
            "No task became ready in time" if wait else "No task is ready",
            "to wait for one, use --wait; to see what is in work or blocked, run: dittybag task list",
            status=ExitStatus.NONE_READY,
            code="NONE_READY",
        )


def _waiting_reporter() -> Callable[[float], None]:
    """Return a function that says once that no task is ready yet."""
    lines = iter(["waiting for a task to become ready; press Ctrl-C to stop"])

    def report(seconds: float) -> None:
        for line in lines:
            note(line)

    return report


def _request(lease: int, *, project: str | None = None, labels: tuple[str, ...] = ()) -> ClaimRequest:
    from dittybag.services.task_queue import ClaimRequest

    return ClaimRequest(project=project, labels=labels, lease_seconds=lease)


@contextmanager
def _cancelled_by_sigterm() -> Iterator[None]:
    """Cancel the current task on SIGTERM, as Ctrl-C does, so that nothing stays claimed."""
    import asyncio

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    terminated = False

    def terminate() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, terminate)
    try:
        yield
    except asyncio.CancelledError:
        if terminated:
            raise click.Abort from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _hand_over(session: WorkspaceSession, found: ClaimedTask) -> None:
    """Print a claimed task. If nobody reads it, release it."""
    try:
        _print_claimed(found, {})
    except OSError:
        await session.workspace.task_queue.release(session.caller, found.task.id, fence=found.claim.fence)
        raise


def _claim_task(task: str, options: WorkspaceOptions, lease: int, actor: str | None, *, take: bool) -> None:
    """Claim a certain task, and print it."""
    from dittybag.domain.errors import TaskClaimed

    async def work(session: WorkspaceSession) -> tuple[ClaimedTask, dict[int, str]]:
        session = acting_as(session, actor)
        queue, number = session.workspace.task_queue, await find_id(session, task)
        claim = queue.take if take else queue.claim
        return await run_on_tasks(
            session, [number], None, lambda: claim(session.caller, number, _request(lease))
        )

    try:
        found, taken = options.run(work)
    except TaskClaimed as error:
        error.add_note(f"to take it away, run: dittybag task next {error.id} --take")
        raise
    _print_claimed(found, taken)


@click.command("done", StrictCommand)
@tasks_argument
@fence_option
@comment_option
@actor_option
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
    if fence is not None and len(set(tasks)) > 1:
        usage_error("--fence is that of one task; give one TASK")

    async def work(session: WorkspaceSession) -> tuple[list[TaskMark], dict[int, str]]:
        session = acting_as(session, actor)
        ids = await find_ids(session, tasks)
        queue = session.workspace.task_queue
        return await run_on_tasks(
            session, ids, fence, lambda: queue.finish_all(session.caller, ids, fence=fence, comment=comment)
        )

    marks, taken = options.run(work)
    print_completed(marks, taken)


@click.command("release", StrictCommand)
@task_argument
@fence_option
@comment_option
@actor_option
@in_workspace
def release(
    task: str, options: WorkspaceOptions, fence: int | None, comment: str | None, actor: str | None
) -> None:
    """Give a task back: it is to do again, for everybody.

    Without --fence, the task is taken away from its holder.

    \b
    Example:
      dittybag task release 3 --fence 41 --comment "The tests pass, the docs are missing"
    """

    async def work(session: WorkspaceSession) -> tuple[Task, dict[int, str]]:
        session = acting_as(session, actor)
        queue, number = session.workspace.task_queue, await find_id(session, task)
        return await run_on_tasks(
            session,
            [number],
            fence,
            lambda: queue.release(session.caller, number, fence=fence, comment=comment),
        )

    released, taken = options.run(work)
    print_saved(released, "Released", taken)


@click.command("renew", StrictCommand)
@task_argument
@click.option("--fence", metavar="N", type=int, required=True, help="Fence of your claim.")
@in_workspace
def renew(task: str, options: WorkspaceOptions, fence: int) -> None:
    """Renew the claim of a task for another lease. Everything that you do with --fence renews it, too.

    \b
    Example:
      dittybag task renew 3 --fence 41
    """

    async def work(session: WorkspaceSession) -> tuple[Task, Claim | None]:
        number = await find_id(session, task)
        renewed = await session.workspace.tasks.update(session.caller, number, fence=fence)
        claims = await session.workspace.task_queue.claims_of(session.caller, [number])
        return renewed, claims.get(number)

    renewed, claim = options.run(work)
    held = "" if claim is None else f", yours until {format_until(claim.until)}"
    print_result(
        {**task_data(renewed, local_now()), "claim": None if claim is None else claim_data(claim)},
        f"Renewed {describe(renewed, local_now())}{held}",
    )


def _print_claimed(found: ClaimedTask, taken: dict[int, str]) -> None:
    """Print a claimed task: with what is needed to begin, and how to go on."""
    from dittybag.cli.task_show import print_comments, print_group, print_task

    if wants_json():
        print_json({**_claimed_data(found), **taken_data(taken, found.task.id)})
        return
    number, fence = found.task.id, found.claim.fence
    held = f"{clip_line(found.claim.holder)} until {format_until(found.claim.until)} (fence {fence})"
    print_task(found.task, parent=found.parent, more=[("held by", held)])
    print_group("Done before", found.done_before)
    for task in found.done_before:
        print_comments(task.comments, task=task.id)
    print_comments(found.task.comments)
    report_taken(taken)
    hint(f"when it is done, run: dittybag task done {number} --fence {fence}")
    hint(f"to keep it longer, run: dittybag task renew {number} --fence {fence}")
    hint(f'to give it back, run: dittybag task release {number} --fence {fence} --comment "..."')


def _claimed_data(found: ClaimedTask) -> dict[str, Any]:
    now = local_now()
    return {
        "task": task_data(found.task, now),
        "fence": found.claim.fence,
        "holder": found.claim.holder,
        "until": iso(found.claim.until),
        "parent": None if found.parent is None else task_data(found.parent, now),
        "done_before": [task_data(task, now) for task in found.done_before],
    }
