"""The MCP engine: a server for every revision of the protocol, on any transport.

It knows nothing of what Dittybag keeps, and imports nothing of Dittybag outside this package.
"""

from dittybag.protocol.argument_schemas import NoArguments
from dittybag.protocol.dispatch import Session
from dittybag.protocol.features import (
    CompletionRequest,
    Page,
    Prompt,
    PromptSource,
    Resource,
    ResourceSource,
    ResourceTemplate,
    Tool,
)
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import CacheHints, Limits, Server
from dittybag.protocol.transports import Outlet
from dittybag.protocol.types import ToolAnnotations, ToolResult
from dittybag.protocol.wire_errors import (
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
