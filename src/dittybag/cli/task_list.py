"""`dittybag task list`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import click
from msgspec import Struct
from msgspec.structs import asdict

from dittybag.cli.output import hint, limit_option
from dittybag.cli.read_input import text, usage_error
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.task_options import chosen_project, label_option, local_now, parse_due_date
from dittybag.cli.task_output import is_overdue, print_tasks
from dittybag.cli.whole_numbers import POSITIVE
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain import due_dates
from dittybag.domain.queries import TaskQuery, TaskSort
from dittybag.domain.tasks import NO_PROJECT, PRIORITIES, STATUSES, Task

if TYPE_CHECKING:
    from dittybag.domain.claims import Claim
    from dittybag.services.workspace import WorkspaceSession


#: The options that can be used with --ready.
_WITH_READY: Final = ("ready", "labels", "limit", "everything", "sort")
#: The orders of lists. By priority, the earliest due date comes first, as for `dittybag task next`.
_SORTS: Final[Mapping[str, TaskSort]] = {
    "priority": "queue",
    "due": "due",
    "created": "created",
    "updated": "updated",
    "title": "title",
}


class _Filters(Struct, frozen=True, kw_only=True):
    """The options of `dittybag task list`."""

    no_project: bool
    priorities: tuple[int, ...]
    search: str
    include_done: bool
    statuses: tuple[str, ...]
    ready: bool
    labels: tuple[str, ...]
    assignee: str | None
    parent: int | None
    overdue: bool
    due: str | None
    sort: str
    reverse: bool
    limit: int
    everything: bool

    @property
    def max_tasks(self) -> int:
        return sys.maxsize - 1 if self.everything else self.limit

    def check(self, options: WorkspaceOptions) -> None:
        """Refuse options that contradict each other."""
        if self.statuses and self.include_done:
            usage_error("--status and --include-done cannot be used together")
        if self.due is not None and (self.overdue or not self.due):
            usage_error("--due requires a date and cannot be used with --overdue")
        if self.no_project and options.project is not None:
            usage_error("--project and --no-project cannot be used together")
        if self.ready:
            self._check_ready()

    def _check_ready(self) -> None:
        names = {"statuses": "status", "priorities": "priority"}
        for name, value in asdict(self).items():
            if name not in _WITH_READY and value not in (None, False, (), ""):
                option = names.get(name, name.replace("_", "-"))
                usage_error(f"--ready and --{option} cannot be used together")
        if self.sort != "priority":
            usage_error("--ready and --sort cannot be used together")


@click.command("list", StrictCommand)
@click.option("--no-project", is_flag=True, help="Only tasks without a project.")
@click.option(
    "-P",
    "--priority",
    "priorities",
    metavar="N",
    type=click.IntRange(*PRIORITIES),
    multiple=True,
    help="Only tasks with this priority; repeatable, to match any of several.",
)
@click.option(
    "-S",
    "--search",
    metavar="TEXT",
    type=text,
    default="",
    help="Only tasks with all these words in the title or the notes.",
)
@click.option(
    "--status",
    "statuses",
    type=click.Choice(STATUSES),
    multiple=True,
    help="Only tasks with this status; repeatable, to match any of several.",
)
@click.option("--ready", is_flag=True, help="Only tasks that `dittybag task next` can claim, best first.")
@label_option
@click.option("--assignee", metavar="NAME", type=text, help="Only tasks that are assigned to NAME.")
@click.option("--parent", metavar="ID", type=POSITIVE, help="Only parts of this task.")
@click.option("--include-done", is_flag=True, help="Include done and dropped tasks.")
@click.option("--overdue", is_flag=True, help="Only overdue tasks.")
@click.option("--due", metavar="WHEN", type=parse_due_date, help="Only tasks due by then, such as fri or 2w.")
@click.option(
    "--sort",
    type=click.Choice(tuple(_SORTS)),
    default="priority",
    show_default=True,
    help="What comes first: the highest priority and in it the earliest due date, the earliest due date, "
    "the latest created or updated, or the first title.",
)
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@limit_option(50)
@click.option("--all", "everything", is_flag=True, help="Show all results.")
@in_project
def list_tasks(options: WorkspaceOptions, **values: object) -> None:
    """List open tasks, highest priority first: yours, and those of projects.

    Within a priority, overdue tasks come first, then those that are due next.

    \b
    Examples:
      dittybag task list -p website -P 4 -P 5
      dittybag task list --search login --include-done --sort updated
      dittybag task list --ready -l backend
      dittybag task list --status doing --status review
      dittybag task list --due fri
    """
    filters = _Filters(**values)  # type: ignore[arg-type]  # click has checked the types
    filters.check(options)
    now = local_now()
    tasks, waiting, claims = options.run(lambda session: _find(session, options, filters, now))
    shown, more = tasks[: filters.max_tasks], len(tasks) > filters.max_tasks
    print_tasks(shown, now, waiting=waiting, claims=claims, more=more)
    if more:
        hint("there are more tasks; use --all to see them, or --limit")


async def _find(
    session: WorkspaceSession, options: WorkspaceOptions, filters: _Filters, now: datetime
) -> tuple[list[Task], dict[int, int], dict[int, Claim]]:
    """Return the tasks, at least one more than the limit if there are more; what they wait for; claims."""
    project = await chosen_project(session, options)
    if filters.ready:
        tasks = await _find_ready(session, project, filters)
    else:
        query = _query(session.caller.user, project, filters, now)
        tasks = await session.workspace.tasks.page(session.caller, query)
    if filters.overdue:
        tasks = [task for task in tasks if is_overdue(task, now)]
    if not tasks:
        for label in filters.labels:
            await session.workspace.tasks.require_label(session.caller, label)
    queue, ids = session.workspace.task_queue, [task.id for task in tasks[: filters.max_tasks]]
    return (
        tasks,
        await queue.waiting_of(session.caller, ids),
        await queue.claims_of(session.caller, ids),
    )


async def _find_ready(session: WorkspaceSession, project: str | None, filters: _Filters) -> list[Task]:
    from dittybag.services.task_queue import ClaimRequest

    request = ClaimRequest(project=project, labels=filters.labels)
    found = await session.workspace.task_queue.ready(session.caller, request, limit=filters.max_tasks + 1)
    return found.tasks


def _query(user: str, project: str | None, filters: _Filters, now: datetime) -> TaskQuery:
    latest = filters.due and due_dates.local_due_day(filters.due)
    if filters.overdue:
        # In other time zones it is already tomorrow.
        latest = (now.date() + timedelta(1)).isoformat()
    return TaskQuery(
        user=user,
        project=NO_PROJECT if filters.no_project else project,
        priorities=filters.priorities,
        completed=None if filters.include_done or filters.statuses else False,
        statuses=filters.statuses,
        assignee=filters.assignee,
        labels=filters.labels,
        parent=filters.parent,
        due_by=latest,
        text=filters.search,
        order=_SORTS[filters.sort],
        is_reversed=filters.reverse,
        limit=None if filters.overdue else filters.max_tasks + 1,
    )
