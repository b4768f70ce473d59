"""The Projects section of Settings: create, rename, share and delete projects. The menu lists them, too."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from dittybag.domain.accounts import Member, Role
from dittybag.domain.errors import Conflict, DittybagError, Invalid, NotAllowed, NotFound, ProjectNotFound
from dittybag.domain.projects import DEFAULT_PROJECT, ProjectSize
from dittybag.domain.text import fold
from dittybag.services.project_service import can_create_projects
from dittybag.web.browser_requests import WebRequest, WebResponse, project_link, redirect, status_of
from dittybag.web.pages.settings_sections import may_administer, problem_text, render_section
from dittybag.web.template_rendering import render_page

#: Maximum number of projects listed; the filter finds the others.
_MAX_LISTED: Final = 100
#: The sections that the project menu keeps.
_SECTIONS: Final = ("prompts", "resources", "tasks", "context", "activity", "connect", "settings")


class _ProjectRow(Struct, frozen=True):
    """A project and its members."""

    size: ProjectSize
    #: None: everybody sees it.
    members: list[Member]

    @property
    def is_default(self) -> bool:
        return self.size.project.name == DEFAULT_PROJECT


async def show_projects(request: WebRequest, *, status: int = 200, problem: str = "") -> WebResponse:
    """Show the projects that the session can see, and an offer to undo the deletion of one.

    As a fragment, it is the list of the project menu.
    """
    administration = request.workspace.administration
    sizes = await request.workspace.projects.all(request.caller)
    filter_text = request.query.get("filter", "").strip()[:200]
    matching = [size for size in sizes if fold(filter_text) in fold(size.project.name)]
    is_admin, shown = may_administer(request), matching[:_MAX_LISTED]
    listing: dict[str, Any] = {
        "left_out": len(matching) - len(shown),
        "has_filter": len(sizes) > _MAX_LISTED,
        "filter": filter_text,
        "can_create": can_create_projects(request.caller) and not request.context.read_only,
    }
    if request.is_fragment:
        section = current_section(request)
        links = [(size, project_link(size.project.name, section)) for size in shown]
        return render_page(request, "home/project_menu.html", rows=links, **listing)
    rows = [
        _ProjectRow(size, await administration.members(request.caller, size.project.name) if is_admin else [])
        for size in shown
    ]
    deleted = request.int_parameter("deleted")
    deletion = (
        await administration.deletion_of_project(request.caller, deleted) if deleted and is_admin else None
    )
    return render_section(
        request,
        "projects",
        status=status,
        rows=rows,
        **listing,
        name=request.form.get("name", "")[:1000] if problem else "",
        deletion=deletion,
        users=[user.name for user in (await administration.accounts(request.caller)).users],
        problem=problem,
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
        return await _show_problem(request, error)
    return redirect(project_link(project.name, "/"), f"Created project “{project.name}”")


async def rename_project(request: WebRequest) -> WebResponse:
    name, new_name = request.form.get("project", ""), request.form.get("name", "").strip()
    try:
        project = await request.workspace.administration.rename_project(request.caller, name, new_name)
    except (Invalid, Conflict, NotAllowed) as error:
        return await _show_problem(request, error)
    here = project.name if request.project.id == project.id else request.project.name
    return redirect(project_link(here, "/settings"), f"Renamed {name} to {project.name}")


async def delete_project(request: WebRequest) -> WebResponse:
    """Delete a project. If it is the one of this page, show the Settings of the server's project."""
    name = request.form.get("project", "")
    try:
        project = await request.workspace.administration.delete_project(request.caller, name)
    except (Conflict, NotAllowed) as error:
        return await _show_problem(request, error)
    here = request.project.name
    if request.project.id == project.id:
        others = await request.workspace.projects.all(request.caller)
        ids = {size.project.id: size.project.name for size in others}
        if not ids:
            raise ProjectNotFound(name)
        here = ids.get(request.context.project) or next(iter(ids.values()))
    return redirect(project_link(here, "/settings", deleted=project.id))


async def share_project(request: WebRequest) -> WebResponse:
    name, user = request.form.get("project", ""), request.form.get("user", "").strip()
    role: Role = "read" if request.form.get("role") == "read" else "write"
    try:
        await request.workspace.administration.share_project(request.caller, name, user, role)
    except (NotAllowed, NotFound) as error:
        return await _show_problem(request, error)
    return _redirect(request, f"{user} may now {'change' if role == 'write' else 'read'} {name}")


async def unshare_project(request: WebRequest) -> WebResponse:
    name, user = request.form.get("project", ""), request.form.get("user", "")
    to_all = request.form.get("to_all") == "1"
    try:
        left = await request.workspace.administration.unshare_project(
            request.caller, name, user, to_all=to_all
        )
    except (Conflict, NotAllowed, NotFound) as error:
        return await _show_problem(request, error)
    note = f"{user} is no longer a member of {name}"
    return _redirect(request, note if left else f"{note}. Everybody sees it now")


async def _show_problem(request: WebRequest, error: DittybagError) -> WebResponse:
    return await show_projects(request, status=status_of(error), problem=problem_text(error))


def _redirect(request: WebRequest, note: str) -> WebResponse:
    return redirect(request.link("/settings"), note)
