"""Connect: what to tell each client, a button that does it, and the calls as they arrive."""

from __future__ import annotations

from typing import Final

from dittybag.domain.errors import NotAllowed
from dittybag.web.browser_requests import WebResponse, WebRequest, Route, redirect
from dittybag.web.template_rendering import render_page
from dittybag.web.web_context import ConnectionFailed

#: As many calls as fit on a page.
_SHOWN: Final = 30


async def show(request: WebRequest) -> WebResponse:
    return await _shown(request)


async def request_log(request: WebRequest) -> WebResponse:
    """The panel alone."""
    return render_page(
        request,
        "connect/recent_requests.html",
        request_log=request.context.request_log.latest(request.session.name)[:_SHOWN],
    )


async def connect(request: WebRequest) -> WebResponse:
    """Do what `dittybag connect` does."""
    if request.session.name is not None:
        raise NotAllowed("Only somebody who sits at this machine can connect its clients")
    try:
        words = await request.context.connections.connect(request.parameters["client"], request.project.name)
    except ConnectionFailed as failed:
        return await _shown(request, status=409, problem=str(failed))
    return redirect(request.link("/connect"), words)


async def _shown(request: WebRequest, *, status: int = 200, problem: str = "") -> WebResponse:
    address = f"{request.origin}/mcp"
    clients = await request.context.connections.clients(request.project.name, address)
    # Those that are here come first.
    ordered = sorted(clients, key=lambda client: not client.is_installed)
    return render_page(
        request,
        "connect/connect_clients.html",
        status=status,
        problem=problem,
        clients=ordered,
        address=address,
        request_log=request.context.request_log.latest(request.session.name)[:_SHOWN],
    )


routes: Final = (
    Route("GET", "/connect", show),
    Route("GET", "/connect/calls", request_log),
    Route("POST", "/connect/{client}", connect),
)
