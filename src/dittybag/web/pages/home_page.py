"""Home: what is in a project, what happens there, and what to do next."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from dittybag.services.history_service import ChangePage
from dittybag.services.project_overview import DailyUsage, DayUsage
from dittybag.web import charts
from dittybag.web.browser_requests import WebResponse, WebRequest, Route, project_link
from dittybag.web.pages import project_pages, search_pages
from dittybag.web.pages.change_display import ChangeRow, rows_of
from dittybag.web.template_rendering import render_page

#: So many of the newest changes are listed, and so many of the things that were changed last.
_CHANGES: Final = 8
_THINGS: Final = 8
#: The latter are found among so many changes.
_LOOKED: Final = 60


async def show(request: WebRequest) -> WebResponse:
    """The first page."""
    principal = request.caller.principal
    if principal is not None and not principal.sees_project:
        return await _elsewhere(request)
    workspace, caller = request.workspace, request.caller
    contents = await workspace.overview.count_contents(caller)
    usage = await workspace.overview.usage(caller, request.context.person)
    look = await workspace.history.browse(caller, limit=_LOOKED)
    reports = await request.context.libraries.reports()
    rows = rows_of(request, look)
    library_prompts = sum(report.prompts for report in reports)
    return render_page(
        request,
        "home/home.html",
        contents=contents,
        libraries=len(reports),
        library_prompts=library_prompts,
        is_empty=not (contents.prompts or contents.resources or contents.tasks or library_prompts),
        rows_shown=rows[:_CHANGES],
        things=_things(rows, look),
        usage=usage,
        days=[(_day(day), day) for day in usage.days],
        people=sum(day.people for day in usage.days),
        agents=sum(day.agents for day in usage.days),
        chart=_chart(usage),
    )


async def _elsewhere(request: WebRequest) -> WebResponse:
    """For visitors who may not see what is in this project."""
    sizes = await request.workspace.projects.all(request.caller)
    places = [(size.project.name, project_link(size.project.name, "/")) for size in sizes[:200]]
    return render_page(request, "home/no_access.html", places=places)


def _things(rows: list[ChangeRow], look: ChangePage) -> list[ChangeRow]:
    """What was changed last and is there, each thing once, by its newest change."""
    newest: dict[tuple[str, str], ChangeRow] = {}
    for row, change in zip(rows, look.changes, strict=True):
        if row.link and change.kind != "project":
            newest.setdefault((change.kind, change.entity), row)
    return list(newest.values())[:_THINGS]


def _chart(usage: DailyUsage) -> charts.Chart:
    return charts.columns([(_words(day), (day.people, day.agents)) for day in usage.days])


def _day(day: DayUsage) -> str:
    return f"{datetime.fromtimestamp(day.at / 1_000_000, UTC):%d %b}"


def _words(day: DayUsage) -> str:
    return f"{_day(day)}: {day.people} by people, {day.agents} by agents"


routes: Final = (Route("GET", "/", show), *search_pages.routes, *project_pages.routes)
