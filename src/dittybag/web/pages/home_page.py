"""The Home page: what is due, what others changed, who is connected, and which prompts are used."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.tasks import TaskFilter, TaskListing
from dittybag.domain.usage import SeenClient, UsedPrompt
from dittybag.services.project_overview import DailyUsage, DayUsage
from dittybag.web.browser_requests import WebRequest, WebResponse, project_link
from dittybag.web.chart_axes import DayValues, column_chart
from dittybag.web.pages.task_pages import find_notice
from dittybag.web.pages.visit_groups import visit_values
from dittybag.web.task_display import describe_change, due_of, local_now
from dittybag.web.task_holders import holder_of
from dittybag.web.template_rendering import render_page
from dittybag.web.visits import continued, read_visit

#: Tasks that are due within this many days are shown, and at most this many of them.
_DUE_DAYS: Final = 7
_MAX_DUE: Final = 10
_MAX_PROMPTS: Final = 6
_MAX_CLIENTS: Final = 6
#: A client that was seen within this time counts as connected. Servers record it every minute.
#: In microseconds.
_CONNECTED: Final = 5 * 60 * 1_000_000


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
    visit = read_visit(request, *await workspace.overview.log_range(caller))
    changed = await visit_values(request, visit)
    notice = await find_notice(request)
    return render_page(
        request,
        "home/home.html",
        headers=() if request.is_fragment else (continued(visit, changed["seen"]).header(request),),
        contents=contents,
        library_prompts=library_prompts,
        is_empty=not (contents.prompts or contents.resources or contents.tasks or library_prompts),
        **changed,
        last_at=visit.last_at * 1_000_000,
        **await _due_values(request),
        clients=_client_rows(await workspace.usage.clients(caller), time.time_ns() // 1000),
        prompts=[
            (used, _prompt_link(request, used))
            for used in await workspace.usage.most_used(caller, _MAX_PROMPTS)
        ],
        **_chart_values(await workspace.overview.usage(caller, request.context.person)),
        change=notice,
        text="" if notice is None else describe_change(notice),
        reload="",
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


# Clients, prompts and the chart


def _client_rows(clients: Sequence[SeenClient], now: int) -> list[tuple[SeenClient, bool]]:
    """Return the clients seen last, each with whether it is connected."""
    return [(client, now - client.last_at < _CONNECTED) for client in clients[:_MAX_CLIENTS]]


def _prompt_link(request: WebRequest, used: UsedPrompt) -> str:
    if used.is_library_prompt:
        return request.link("/libraries/prompt", name=used.prompt)
    return request.link(f"/prompts/{used.prompt}")


def _chart_values(usage: DailyUsage) -> Mapping[str, Any]:
    days = [(_format_day(day), day) for day in usage.days]
    return {
        "usage": usage,
        "days": days,
        "people": sum(day.people for day in usage.days),
        "agents": sum(day.agents for day in usage.days),
        "chart": column_chart(
            [
                DayValues(
                    name,
                    f"{name}: {day.people:,} by people, {day.agents:,} by agents",
                    day.people,
                    day.agents,
                )
                for name, day in days
            ]
        ),
    }


def _format_day(day: DayUsage) -> str:
    at = datetime.fromtimestamp(day.at / 1_000_000, UTC)
    return f"{at.day} {at:%b}"
