"""The routes of a workspace: the MCP endpoint, the task contract's bare endpoint, and operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from dittybag.contracts.profiles import Access, access_of
from dittybag.contracts.tool_specs import ServerScope
from dittybag.http.bare_endpoint import BareEndpoint
from dittybag.http.endpoint import HttpEndpoint
from dittybag.http.http_request import HttpRequest
from dittybag.http.metrics import Metrics
from dittybag.http.operations import Operations
from dittybag.http.stored_sessions import StoreSessionRegistry
from dittybag.http.unread_responses import UnreadResponses
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.server import Server

#: The paths of the OAuth protected resource metadata (RFC 9728).
METADATA_PATHS: Final = (
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
)


class Routes:
    """The last middleware: responds to every request. Each access level has its own MCP server."""

    def __init__(
        self,
        servers: Mapping[Access, Server],
        server_scope: ServerScope,
        metrics: Metrics,
        *,
        version: str,
        metadata: bytes | None = None,
    ) -> None:
        """`version`: the MCP revision that `HEAD /` advertises. `metadata`: `None` without OAuth."""
        store, unread = server_scope.workspace.store, UnreadResponses()
        registry = StoreSessionRegistry(store) if store.writable else None
        self._mcp = {
            access: HttpEndpoint(server, registry=registry, unread=unread)
            for access, server in servers.items()
        }
        self._bare = {
            access: BareEndpoint(server, self._mcp[access], version, unread)
            for access, server in servers.items()
        }
        self._metadata = metadata
        operations = Operations(server_scope, metrics, self._mcp.values())
        self._pages: dict[str, Callable[[HttpRequest], Awaitable[None]]] = {
            "/healthz": operations.health,
            "/readyz": operations.readiness,
            "/metrics": operations.metrics,
        }
        if metadata is not None:
            self._pages |= dict.fromkeys(METADATA_PATHS, self._send_metadata)

    async def close(self, grace: float) -> None:
        """Close all endpoints; requests in progress have `grace` seconds to finish."""
        await asyncio.gather(*(endpoint.close(grace) for endpoint in self._mcp.values()))

    def __call__(self, request: HttpRequest) -> Awaitable[bool]:
        if request.path == "/mcp":
            return self._mcp[access_of(request.auth.principal)](request)
        return self._respond(request)

    async def _respond(self, request: HttpRequest) -> bool:
        path, method, page = request.path, request.method, self._pages.get(request.path)
        bare = self._bare[access_of(request.auth.principal)]
        if path == "/" and method == "POST":
            await bare.post(request)
        elif path == "/" and method == "HEAD":
            await bare.head(request)
        elif method not in ("GET", "HEAD"):
            await self._refuse_method(request)
        elif page is not None:
            await page(request)
        else:
            await request.respond(404, encode({"error": "Not found; the MCP endpoint is /mcp"}))
        return True

    async def _refuse_method(self, request: HttpRequest) -> None:
        if request.path != "/" and request.path not in self._pages:
            await request.respond(404)
            return
        allowed = b"GET, HEAD, POST" if request.path == "/" else b"GET, HEAD"
        await request.respond(405, headers=[(b"allow", allowed)])

    async def _send_metadata(self, request: HttpRequest) -> None:
        await request.respond(200, self._metadata or b"")
