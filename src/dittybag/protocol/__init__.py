"""The MCP engine: a server for every protocol revision, on any transport.

It does not depend on Dittybag's domain and imports nothing from Dittybag outside this package.
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
    "MethodNotFound",
    "MissingClientCapability",
    "NoArguments",
    "Outlet",
    "Page",
    "PromptDefinition",
    "PromptSource",
    "ProtocolError",
    "ResourceDefinition",
    "ResourceSource",
    "ResourceTemplateDefinition",
    "Server",
    "ServerLimits",
    "Session",
    "ToolAnnotations",
    "ToolDefinition",
    "ToolError",
    "ToolResult",
    "UnknownResource",
    "UrlElicitationRequired",
    "Violation",
]
