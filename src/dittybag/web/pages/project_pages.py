"""The project menu: switch between projects and create one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from dittybag.domain.errors import Conflict, Invalid, Problem
from dittybag.domain.text import fold
from dittybag.services.project_service import can_create_projects
from dittybag.web.browser_requests import WebRequest, WebResponse, project_link, redirect, status_of
from dittybag.web.pages.entity_forms import problems_of
from dittybag.web.template_rendering import render_page

#: Maximum number of projects listed; the filter finds the others.
_MAX_LISTED: Final = 200
_SECTIONS: Final = ("prompts", "libraries", "resources", "tasks", "context", "activity", "connect")


async def show_projects(
    request: WebRequest, status: int = 200, name: str = "", problems: Sequence[Problem] = ()
) -> WebResponse:
    """Show the projects that the session can see, and the problems with the name of a new one."""
    sizes = await request.workspace.projects.all(request.caller)
    filter_text = request.query.get("filter", "").strip()[:200]
    matching = [size for size in sizes if fold(filter_text) in fold(size.project.name)]
    section = current_section(request)
    return render_page(
        request,
        "home/project_menu.html" if request.is_fragment else "home/project_list.html",
        status=status,
        rows=[(size, project_link(size.project.name, section)) for size in matching[:_MAX_LISTED]],
        left_out=max(len(matching) - _MAX_LISTED, 0),
        has_filter=len(sizes) > _MAX_LISTED,
        filter=filter_text,
        can_create=can_create_projects(request.caller) and not request.context.read_only,
        name=name,
        problems=problems,
    )


def current_section(request: WebRequest) -> str:
    """Return the section of the page that asks, to link to the same section of other projects."""
    try:
        path = urlsplit(request.headers.get(b"referer") or "").path
    except ValueError:
        return "/"
    parts = path.split("/")
    return f"/{parts[3]}" if parts[:2] == ["", "p"] and len(parts) > 3 and parts[3] in _SECTIONS else "/"


async def create_project(request: WebRequest) -> WebResponse:
    """Create a project and open it."""
    name = request.form.get("name", "").strip()
    try:
        project = await request.workspace.projects.create_for(request.caller, name)
    except (Invalid, Conflict) as error:
        return await show_projects(request, status_of(error), name[:1000], problems_of(error))
    return redirect(project_link(project.name, "/"), f"Created project “{project.name}”")
