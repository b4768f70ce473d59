"""The Clients section of Settings: which MCP clients are connected, and when they were last seen."""

from __future__ import annotations

from typing import Final

from dittybag.domain.errors import NotAllowed
from dittybag.services.project_overview import seen_clients
from dittybag.web.browser_requests import WebRequest, WebResponse, redirect
from dittybag.web.pages.settings_sections import render_section
from dittybag.web.web_context import ClientEntry, ConnectionFailed

#: Maximum number of seen clients that are shown.
_MAX_SEEN: Final = 100


async def show_clients(request: WebRequest, *, problem: str = "") -> WebResponse:
    """Show the clients on this machine that are connected, and those that were seen."""
    is_owner = request.session.name is None
    entries = await _entries(request) if is_owner else []
    disconnected = request.query.get("disconnected", "")
    return render_section(
        request,
        "clients",
        status=409 if problem else 200,
        problem=problem,
        connected=[entry for entry in entries if entry.is_connected],
        seen=seen_clients(await request.workspace.overview.seen_actors(request.caller))[:_MAX_SEEN],
        disconnected=next(
            (entry for entry in entries if entry.name == disconnected and not entry.is_connected), None
        ),
    )


async def _entries(request: WebRequest) -> list[ClientEntry]:
    return list(await request.context.connections.clients(request.project.name, f"{request.origin}/mcp"))


async def disconnect(request: WebRequest) -> WebResponse:
    """Remove Dittybag from the configuration of a client, like `dittybag connect --remove`."""
    _require_owner(request)
    client = request.form.get("client", "")
    try:
        message = await request.context.connections.disconnect(client)
    except ConnectionFailed as failed:
        return await show_clients(request, problem=str(failed))
    return redirect(request.link("/settings/clients", disconnected=client), message)


async def reconnect(request: WebRequest) -> WebResponse:
    """Undo a disconnection."""
    _require_owner(request)
    try:
        message = await request.context.connections.connect(
            request.form.get("client", ""), request.project.name
        )
    except ConnectionFailed as failed:
        return await show_clients(request, problem=str(failed))
    return redirect(request.link("/settings/clients"), message)


def _require_owner(request: WebRequest) -> None:
    if request.session.name is not None:
        raise NotAllowed("Only the owner of this machine can connect and disconnect its clients")
