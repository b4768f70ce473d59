"""The projects: a menu to change from one to another, and a new one."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from dittybag.domain.errors import Conflict, Invalid, Problem
from dittybag.domain.text import fold
from dittybag.services.project_service import can_create_projects
from dittybag.web.browser_requests import WebResponse, WebRequest, Route, project_link, redirect
from dittybag.web.template_rendering import render_page

#: So many are listed; of more, a filter finds the others.
_LISTED: Final = 200
_SECTIONS: Final = ("prompts", "libraries", "resources", "tasks", "activity", "connect")


async def listed(request: WebRequest) -> WebResponse:
    """The projects that the visitor may see."""
    return await _show(request)


async def _show(
    request: WebRequest, *, status: int = 200, name: str = "", problems: tuple[Problem, ...] = ()
) -> WebResponse:
    sizes = await request.workspace.projects.all(request.caller)
    words = request.query.get("filter", "").strip()[:200]
    chosen = [size for size in sizes if fold(words) in fold(size.project.name)]
    section = _section(request)
    return render_page(
        request,
        "home/project_menu.html" if request.is_fragment else "home/project_list.html",
        status=status,
        rows=[(size, project_link(size.project.name, section)) for size in chosen[:_LISTED]],
        left_out=max(len(chosen) - _LISTED, 0),
        has_filter=len(sizes) > _LISTED,
        filter=words,
        can_create=can_create_projects(request.caller) and not request.context.read_only,
        name=name,
        problems=problems,
    )


def _section(request: WebRequest) -> str:
    """Which pages the visitor is at, so that the same ones of another project can be linked."""
    try:
        path = urlsplit(request.headers.get(b"hx-current-url") or "").path
    except ValueError:
        return "/"
    parts = path.split("/")
    return f"/{parts[3]}" if parts[:2] == ["", "p"] and len(parts) > 3 and parts[3] in _SECTIONS else "/"


async def created(request: WebRequest) -> WebResponse:
    """Make a project, and go there."""
    name = request.form.get("name", "").strip()
    try:
        project = await request.workspace.projects.create_for(request.caller, name)
    except Invalid as error:
        return await _show(request, status=422, name=name[:1000], problems=error.problems)
    except Conflict as error:
        return await _show(request, status=409, name=name, problems=(Problem("name", str(error)),))
    return redirect(project_link(project.name, "/"), f"Project “{project.name}” is made")


routes: Final = (
    Route("GET", "/projects", listed),
    Route("POST", "/projects", created),
)
