"""The Connect page: client configurations, buttons that connect and disconnect, and recent requests."""

from __future__ import annotations

from typing import Final

from dittybag.domain.errors import NotAllowed
from dittybag.services.project_overview import seen_clients
from dittybag.web.browser_requests import WebRequest, WebResponse, redirect
from dittybag.web.request_log import LoggedRequest
from dittybag.web.template_rendering import render_page
from dittybag.web.web_context import ConnectionFailed

#: Maximum number of requests shown.
_MAX_REQUESTS: Final = 30
#: Maximum number of clients that were seen.
_MAX_SEEN: Final = 100


async def show_requests(request: WebRequest) -> WebResponse:
    return render_page(request, "connect/recent_requests.html", requests=_recent_requests(request))


def _recent_requests(request: WebRequest) -> list[LoggedRequest]:
    return request.context.request_log.latest(request.session.name)[:_MAX_REQUESTS]


async def connect(request: WebRequest) -> WebResponse:
    """Connect a client on this machine, like `dittybag connect`."""
    _require_owner(request)
    try:
        message = await request.context.connections.connect(
            request.parameters["client"], request.project.name
        )
    except ConnectionFailed as failed:
        return await show_clients(request, str(failed))
    return redirect(request.link("/connect"), message)


async def disconnect(request: WebRequest) -> WebResponse:
    """Remove Dittybag from the configuration of a client, like `dittybag connect --remove`."""
    _require_owner(request)
    try:
        message = await request.context.connections.disconnect(request.parameters["client"])
    except ConnectionFailed as failed:
        return await show_clients(request, str(failed))
    return redirect(request.link("/connect"), message)


def _require_owner(request: WebRequest) -> None:
    if request.session.name is not None:
        raise NotAllowed("Only the owner of this machine can connect and disconnect its clients")


async def show_clients(request: WebRequest, problem: str = "") -> WebResponse:
    """Show all clients, and why one could not be connected."""
    address = f"{request.origin}/mcp"
    clients = await request.context.connections.clients(request.project.name, address)
    # Installed clients first.
    ordered = sorted(clients, key=lambda client: not client.is_installed)
    return render_page(
        request,
        "connect/connect_clients.html",
        status=409 if problem else 200,
        problem=problem,
        notice=request.context.connections.notice,
        clients=ordered,
        address=address,
        requests=_recent_requests(request),
        seen=seen_clients(await request.workspace.overview.seen_actors(request.caller))[:_MAX_SEEN],
    )
