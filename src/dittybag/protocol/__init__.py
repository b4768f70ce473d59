"""The MCP engine: a server for every revision of the protocol, on any transport.

It knows nothing of what Dittybag keeps, and imports nothing of Dittybag outside this package.
"""

from dittybag.protocol.argument_schemas import NoArguments
from dittybag.protocol.dispatch import Session
from dittybag.protocol.features import (
    CompletionRequest,
    Page,
    PromptDefinition,
    PromptSource,
    ResourceDefinition,
    ResourceSource,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import CacheHints, Server, ServerLimits
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
    ToolError,
    UnknownResource,
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
    "ServerLimits",
    "MethodNotFound",
    "MissingClientCapability",
    "NoArguments",
    "Outlet",
    "Page",
    "PromptDefinition",
    "PromptSource",
    "ProtocolError",
    "ResourceDefinition",
    "UnknownResource",
    "ResourceSource",
    "ResourceTemplateDefinition",
    "Server",
    "Session",
    "ToolDefinition",
    "ToolAnnotations",
    "ToolError",
    "ToolResult",
    "UrlElicitationRequired",
    "Violation",
]
