"""Connect: what to tell each client, a button that does it, and the calls as they arrive."""

from __future__ import annotations

from typing import Final

from dittybag.domain.errors import NotAllowed
from dittybag.web.browser_requests import Answer, Request, Route, redirect
from dittybag.web.template_rendering import page
from dittybag.web.web_context import ConnectionFailed

#: As many calls as fit on a page.
_SHOWN: Final = 30


async def show(request: Request) -> Answer:
    return await _shown(request)


async def calls(request: Request) -> Answer:
    """The panel alone."""
    return page(
        request,
        "connect/recent_requests.html",
        calls=request.site.calls.latest(request.visitor.name)[:_SHOWN],
    )


async def connect(request: Request) -> Answer:
    """Do what `dittybag connect` does."""
    if request.visitor.name is not None:
        raise NotAllowed("Only somebody who sits at this machine can connect its clients")
    try:
        words = await request.site.connections.connect(request.parameters["client"], request.project.name)
    except ConnectionFailed as failed:
        return await _shown(request, status=409, problem=str(failed))
    return redirect(request.link("/connect"), words)


async def _shown(request: Request, *, status: int = 200, problem: str = "") -> Answer:
    address = f"{request.origin}/mcp"
    clients = await request.site.connections.clients(request.project.name, address)
    # Those that are here come first.
    ordered = sorted(clients, key=lambda client: not client.is_installed)
    return page(
        request,
        "connect/connect_clients.html",
        status=status,
        problem=problem,
        clients=ordered,
        address=address,
        calls=request.site.calls.latest(request.visitor.name)[:_SHOWN],
    )


routes: Final = (
    Route("GET", "/connect", show),
    Route("GET", "/connect/calls", calls),
    Route("POST", "/connect/{client}", connect),
)
