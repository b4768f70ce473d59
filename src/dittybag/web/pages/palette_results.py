"""What the command palette finds on the server: entities, open tasks, projects and clients."""

from __future__ import annotations

from typing import Final

from dittybag.domain.tasks import TaskFilter, TaskStatus
from dittybag.domain.text import QUERY_LENGTH, one_line
from dittybag.services.search_service import RankedHit, RankedQuery
from dittybag.web.browser_requests import WebRequest, WebResponse, json_response, project_link
from dittybag.web.pages.search_pages import KIND_NAMES, hit_link
from dittybag.web.pages.settings_projects import current_section

_MAX_RESULTS: Final = 20
_MAX_PROJECTS: Final = 200
#: The statuses of the tasks that each command offers; none for all open tasks.
_STATUSES: Final[dict[str, tuple[TaskStatus, ...]]] = {
    "complete": (),
    "claim": ("todo",),
    "release": ("doing", "review"),
}


async def find_entities(request: WebRequest) -> WebResponse:
    """Return the best results of a search, for a script."""
    query = request.query.get("q", "").strip()[:QUERY_LENGTH]
    principal = request.caller.principal
    hits: list[RankedHit] = []
    if query and (principal is None or principal.sees_project):
        wanted = RankedQuery(query, (), _MAX_RESULTS, 0, incomplete=True)
        hits = (await request.workspace.search.ranked(request.caller, wanted)).hits
    return json_response(
        [
            {
                "title": one_line(hit.title) or "(blank title)",
                "kind": KIND_NAMES[hit.kind],
                "link": hit_link(request, hit),
            }
            for hit in hits
        ]
    )


async def find_tasks(request: WebRequest) -> WebResponse:
    """Return the open tasks that a command of the query can be used on, for a script."""
    text = request.query.get("q", "").strip()[:QUERY_LENGTH]
    statuses = _STATUSES.get(request.query.get("for", ""), ())
    found = await request.workspace.tasks.listing(
        request.caller,
        TaskFilter(statuses=statuses, text=text),
        order="priority",
        limit=_MAX_RESULTS,
        offset=0,
    )
    return json_response(
        [{"id": task.id, "title": one_line(task.title), "kind": f"Task {task.id}"} for task in found.tasks]
    )


async def list_targets(request: WebRequest) -> WebResponse:
    """Return the other projects and the clients that can be connected, for a script."""
    names = await request.workspace.projects.names("", _MAX_PROJECTS, request.caller)
    clients = []
    if request.session.name is None and not request.context.read_only:
        address = f"{request.origin}/mcp"
        found = await request.context.connections.clients(request.project.name, address)
        clients = [client for client in found if client.config and not client.is_connected]
    return json_response(
        {
            "projects": [
                {"title": name, "link": project_link(name, current_section(request))}
                for name in names
                if name != request.project.name
            ],
            "clients": [{"title": client.title, "name": client.name} for client in clients],
        }
    )
