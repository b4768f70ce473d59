"""The MCP engine: a server for every revision of the protocol, on any transport.

It knows nothing of what Satchel keeps, and imports nothing of Satchel outside this package.
"""

from satchel.protocol.arguments import NoArguments
from satchel.protocol.context import Context
from satchel.protocol.dispatch import Session
from satchel.protocol.errors import (
    InputRejected,
    InternalError,
    InvalidArguments,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    MissingClientCapability,
    ProtocolError,
    ResourceNotFound,
    ToolError,
    UrlElicitationRequired,
    Violation,
)
from satchel.protocol.features import (
    CompletionRequest,
    Page,
    Prompt,
    PromptSource,
    Resource,
    ResourceSource,
    ResourceTemplate,
    Tool,
)
from satchel.protocol.server import CacheHints, Limits, Server
from satchel.protocol.transports import Outlet
from satchel.protocol.types import ToolAnnotations, ToolResult

__all__ = [
    "CacheHints",
    "CompletionRequest",
    "Context",
    "InputRejected",
    "InternalError",
    "InvalidArguments",
    "InvalidParams",
    "InvalidRequest",
    "Limits",
    "MethodNotFound",
    "MissingClientCapability",
    "NoArguments",
    "Outlet",
    "Page",
    "Prompt",
    "PromptSource",
    "ProtocolError",
    "Resource",
    "ResourceNotFound",
    "ResourceSource",
    "ResourceTemplate",
    "Server",
    "Session",
    "Tool",
    "ToolAnnotations",
    "ToolError",
    "ToolResult",
    "UrlElicitationRequired",
    "Violation",
]
