"""The Home page: the contents of a project and its recent activity."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from dittybag.domain.queries import ChangeQuery
from dittybag.services.history_service import ChangePage
from dittybag.services.project_overview import DailyUsage, DayUsage
from dittybag.web import charts
from dittybag.web.browser_requests import Route, WebRequest, WebResponse, project_link
from dittybag.web.pages import project_pages, search_pages
from dittybag.web.pages.change_display import ChangeRow, format_rows
from dittybag.web.template_rendering import render_page

#: Maximum numbers of recent changes and of recently edited entities.
_MAX_CHANGES: Final = 8
_MAX_EDITED: Final = 8
#: The number of changes searched for recently edited entities.
_SEARCHED_CHANGES: Final = 60


async def show(request: WebRequest) -> WebResponse:
    """Show the Home page."""
    principal = request.caller.principal
    if principal is not None and not principal.sees_project:
        return await _show_no_access(request)
    workspace, caller = request.workspace, request.caller
    contents = await workspace.overview.count_contents(caller)
    usage = await workspace.overview.usage(caller, request.context.person)
    page = await workspace.history.browse(
        caller, ChangeQuery(project=caller.project, limit=_SEARCHED_CHANGES)
    )
    reports = await request.context.libraries.reports()
    rows = format_rows(request, page)
    library_prompts = sum(report.prompts for report in reports)
    return render_page(
        request,
        "home/home.html",
        contents=contents,
        libraries=len(reports),
        library_prompts=library_prompts,
        is_empty=not (contents.prompts or contents.resources or contents.tasks or library_prompts),
        recent_changes=rows[:_MAX_CHANGES],
        recently_edited=_recently_edited(rows, page),
        usage=usage,
        days=[(_format_day(day), day) for day in usage.days],
        people=sum(day.people for day in usage.days),
        agents=sum(day.agents for day in usage.days),
        chart=_chart(usage),
    )


async def _show_no_access(request: WebRequest) -> WebResponse:
    """Show the other projects of a session without access to this one."""
    sizes = await request.workspace.projects.all(request.caller)
    projects = [(size.project.name, project_link(size.project.name, "/")) for size in sizes[:200]]
    return render_page(request, "home/no_access.html", projects=projects)


def _recently_edited(rows: list[ChangeRow], page: ChangePage) -> list[ChangeRow]:
    """Return the newest change of each recently edited entity that still exists."""
    newest: dict[tuple[str, str], ChangeRow] = {}
    for row, change in zip(rows, page.changes, strict=True):
        if row.link and change.kind != "project":
            newest.setdefault((change.kind, change.entity), row)
    return list(newest.values())[:_MAX_EDITED]


def _chart(usage: DailyUsage) -> charts.Chart:
    return charts.column_chart([(_tooltip(day), (day.people, day.agents)) for day in usage.days])


def _format_day(day: DayUsage) -> str:
    return f"{datetime.fromtimestamp(day.at / 1_000_000, UTC):%d %b}"


def _tooltip(day: DayUsage) -> str:
    return f"{_format_day(day)}: {day.people} by people, {day.agents} by agents"


routes: Final = (Route("GET", "/", show), *search_pages.routes, *project_pages.routes)
