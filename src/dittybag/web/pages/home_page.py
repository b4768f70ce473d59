"""The Home page: what is due, what was changed, and which clients were seen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.queries import ChangeQuery
from dittybag.domain.tasks import TaskFilter, TaskListing
from dittybag.services.project_overview import seen_clients
from dittybag.web.actor_marks import ActorMarks
from dittybag.web.browser_requests import WebRequest, WebResponse, project_link
from dittybag.web.pages.change_display import group_by_day
from dittybag.web.task_display import due_of, local_now
from dittybag.web.task_holders import holder_of
from dittybag.web.template_rendering import render_page

#: Tasks that are due within this many days are shown, and at most this many of them.
_DUE_DAYS: Final = 7
_MAX_DUE: Final = 10
_MAX_CLIENTS: Final = 6
_MAX_CHANGES: Final = 10


class DueTasks(Struct, frozen=True):
    """The tasks that are due at about the same time."""

    title: str
    tasks: list[TaskListing]


async def show(request: WebRequest) -> WebResponse:
    principal = request.caller.principal
    if principal is not None and not principal.sees_project:
        return await _show_no_access(request)
    workspace, caller = request.workspace, request.caller
    contents = await workspace.overview.count_contents(caller)
    reports = await request.context.libraries.reports()
    library_prompts = sum(report.prompts for report in reports)
    query = ChangeQuery(project=caller.project)
    latest = await workspace.batches.browse(caller, query, _MAX_CHANGES)
    marks = ActorMarks(await workspace.history.actors(caller, query))
    return render_page(
        request,
        "home/home.html",
        contents=contents,
        library_prompts=library_prompts,
        is_empty=not (contents.prompts or contents.resources or contents.tasks or library_prompts),
        days=group_by_day(request, latest, marks),
        **await _due_values(request),
        clients=seen_clients(await workspace.overview.seen_actors(caller))[:_MAX_CLIENTS],
    )


async def _show_no_access(request: WebRequest) -> WebResponse:
    """Show the other projects of a session without access to this one."""
    sizes = await request.workspace.projects.all(request.caller)
    projects = [(size.project.name, project_link(size.project.name, "/")) for size in sizes[:200]]
    return render_page(request, "home/no_access.html", projects=projects)


# Due tasks


async def _due_values(request: WebRequest) -> dict[str, Any]:
    now = local_now()
    tasks = request.workspace.tasks
    wanted = TaskFilter(due_by=(now.date() + timedelta(_DUE_DAYS - 1)).isoformat())
    found = await tasks.listing(request.caller, wanted, order="due", limit=_MAX_DUE, offset=0)
    locked = await tasks.locked_projects(request.caller)
    return {
        "due_groups": _group_due(found.tasks, now),
        "due_total": found.total,
        "more_due": found.total - len(found.tasks),
        "due_of": partial(due_of, now=now),
        "holder_of": partial(holder_of, now=time.time_ns() // 1000, person=request.context.person),
        "is_writable": lambda task: request.can_write_own and task.project_id not in locked,
    }


def _group_due(tasks: Sequence[TaskListing], now: datetime) -> list[DueTasks]:
    """Return tasks, which have due dates, as overdue, due today and due on the next days."""
    groups = [DueTasks(title, []) for title in ("Overdue", "Today", "Next days")]
    for task in tasks:
        due = due_of(task, now)
        assert due is not None
        groups[0 if due.is_overdue else 1 if due.is_today else 2].tasks.append(task)
    return [group for group in groups if group.tasks]
