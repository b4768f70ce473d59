"""The errors of the protocol, and their conversion to wire errors.

ProtocolError                     code, message, data
├── ParseError                    -32700
├── InvalidRequest                -32600
├── MethodNotFound                -32601
├── InvalidParams                 -32602
├── InternalError                 -32603
├── UnknownResource               -32002 or -32602, depending on the revision
├── HeaderMismatch                -32020 (stateless revisions, HTTP)
├── MissingClientCapability       -32021 (stateless revisions)
└── UnsupportedVersion            -32022
ToolError                         the failure of a tool: an `isError` result, not a protocol error
└── InvalidArguments              the arguments violate the tool's schema
InputRejected                     the client responded to a question with an error
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec import Struct

from dittybag.protocol.current_request import current_request_id
from dittybag.protocol.eras.revisions import Revision

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

_log = logging.getLogger("dittybag.protocol")


class ProtocolError(Exception):
    """The server could not handle the request."""

    code: ClassVar[int] = INTERNAL_ERROR

    def __init__(self, message: str | None = None, *, data: Any = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.data = data
        super().__init__(self.message)

    def wire_code(self, revision: Revision) -> int | None:
        """Return the error code in `revision`, or `None` if the revision has no such error."""
        return self.code


class ParseError(ProtocolError):
    """Parse error"""

    code = PARSE_ERROR


class InvalidRequest(ProtocolError):
    """Invalid Request"""

    code = INVALID_REQUEST


class MethodNotFound(ProtocolError):
    """Method not found"""

    code = METHOD_NOT_FOUND


class InvalidParams(ProtocolError):
    """Invalid params"""

    code = INVALID_PARAMS


class InternalError(ProtocolError):
    """Internal error"""

    code = INTERNAL_ERROR


class UnknownResource(ProtocolError):
    """Resource not found"""

    def __init__(self, uri: str, message: str | None = None) -> None:
        self.uri = uri
        super().__init__(message or f"Resource not found: {uri}", data={"uri": uri})

    def wire_code(self, revision: Revision) -> int | None:
        return revision.resource_not_found


class HeaderMismatch(ProtocolError):
    """The headers of the request do not match its body"""

    code = HEADER_MISMATCH


class MissingClientCapability(ProtocolError):
    """The client does not declare a required capability."""

    def __init__(self, required: dict[str, Any]) -> None:
        self.required = required
        names = ", ".join(required)
        super().__init__(
            f"The client does not declare a required capability: {names}",
            data={"requiredCapabilities": required},
        )

    def wire_code(self, revision: Revision) -> int | None:
        return MISSING_CLIENT_CAPABILITY if revision.stateless else None


class UnsupportedVersion(ProtocolError):
    """Unsupported protocol version"""

    code = UNSUPPORTED_VERSION

    def __init__(self, requested: str, supported: Sequence[str]) -> None:
        super().__init__(data={"supported": list(supported), "requested": requested})


class Violation(Struct, frozen=True):
    """A violation of a schema."""

    #: The location, such as `title` or `tags[2]`; empty for the whole value.
    path: str
    #: The violated schema keyword: `required`, `type`, `maxLength`, ...
    rule: str
    #: The problem and the allowed values, worded to follow the path.
    problem: str

    def __str__(self) -> str:
        return f"`{self.path}` {self.problem}" if self.path else self.problem


class ToolError(Exception):
    """A failure of a tool that is reported to the model."""


class InvalidArguments(ToolError):
    """The arguments of a call violate the tool's schema. All violations are reported together."""

    def __init__(
        self, tool: str, violations: Sequence[Violation], arguments: dict[str, Any] | None = None
    ) -> None:
        self.tool = tool
        self.violations = tuple(violations)
        #: The arguments of the call.
        self.arguments = arguments or {}
        listed = "; ".join(str(violation) for violation in violations)
        super().__init__(f"Invalid arguments for {tool}: {listed}")


class InputRejected(Exception):
    """The client responded to a question with an error."""

    def __init__(self, method: str, code: int, message: str) -> None:
        self.method = method
        self.code = code
        self.message = message
        super().__init__(f"The client responded to {method} with an error: {message}")


class WireError(Struct, frozen=True, omit_defaults=True):
    """The `error` member of a response."""

    code: int
    message: str
    data: Any = None


def to_wire(error: BaseException, revision: Revision) -> WireError:
    """Convert `error` for the client. Unexpected errors are logged, and their details are not sent."""
    if isinstance(error, ProtocolError):
        code = error.wire_code(revision)
        return WireError(INVALID_REQUEST if code is None else code, _clip(error.message), error.data)
    if isinstance(error, ToolError | InputRejected):
        return WireError(INTERNAL_ERROR, _clip(str(error)))
    _log.error("a handler failed", exc_info=error)
    # The request id lets the operator find the log record.
    request_id = current_request_id.get().decode()
    where = f" (request {request_id})" if request_id else ""
    return WireError(INTERNAL_ERROR, f"Internal error{where}")


def as_tool_error(error: Exception, revision: Revision) -> ToolError | None:
    """Return `error` as a `ToolError`, or `None` if it is not one to report to the model."""
    if isinstance(error, ToolError):
        return error
    if isinstance(error, InputRejected):
        return ToolError(str(error))
    if isinstance(error, ProtocolError) and error.wire_code(revision) is None:
        return ToolError(error.message)
    return None


def _clip(message: str) -> str:
    return message if len(message) <= 2000 else message[:2000] + "..."
