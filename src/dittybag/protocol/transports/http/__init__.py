"""MCP over Streamable HTTP, as an ASGI application: `HttpEndpoint`, behind a `Guard`."""

from dittybag.protocol.transports.http.endpoint import HttpEndpoint
from dittybag.protocol.transports.http.host_checks import Guard

__all__ = ["Guard", "HttpEndpoint"]
