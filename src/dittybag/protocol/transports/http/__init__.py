"""MCP over Streamable HTTP as an ASGI application: `HttpEndpoint` behind a `HostCheckMiddleware`."""

from dittybag.protocol.transports.http.endpoint import HttpEndpoint
from dittybag.protocol.transports.http.host_checks import HostCheckMiddleware

__all__ = ["HostCheckMiddleware", "HttpEndpoint"]
