"""Parsing of a request's `_meta`: revision, client capabilities, log level and progress token."""

from __future__ import annotations

from typing import Any, Final

from dittybag.protocol.argument_schemas import surrogate_violations
from dittybag.protocol.eras.revisions import REVISIONS
from dittybag.protocol.eras.versions import STATELESS_VERSIONS
from dittybag.protocol.request_context import LOG_LEVELS, Context
from dittybag.protocol.types import JsonObject
from dittybag.protocol.wire_errors import InvalidParams, UnsupportedVersion

PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"


def read(ctx: Context) -> None:
    """Apply the `_meta` of a request to its context. Raises `InvalidParams` or `UnsupportedVersion`."""
    meta = ctx.params.get("_meta")
    if meta is not None:
        _read_meta(ctx, meta)
    if ctx.may_have_surrogates:
        # Invalid tool arguments are reported in the tool's error format.
        others = {**ctx.params, "arguments": None} if ctx.method == "tools/call" else ctx.params
        if any(surrogate_violations(others)):
            raise InvalidParams("Invalid params: a lone surrogate is not valid Unicode text")


def _read_meta(ctx: Context, meta: Any) -> None:
    if type(meta) is not dict:
        raise InvalidParams("Invalid params: `_meta` must be an object")
    # Decided per request, not per connection: some clients call `server/discover` before `initialize`.
    if PROTOCOL_VERSION in meta and ctx.method != "initialize":
        _read_stateless(ctx, meta)
    token = meta.get("progressToken")
    if type(token) is int or type(token) is str:
        ctx.progress_token = token
    elif token is not None:
        raise InvalidParams("Invalid params: `progressToken` must be a string or an integer")


def _read_stateless(ctx: Context, meta: JsonObject) -> None:
    # Errors below use the format of the newest stateless revision.
    ctx.revision = REVISIONS[STATELESS_VERSIONS[-1]]
    version, capabilities = meta[PROTOCOL_VERSION], meta.get(CLIENT_CAPABILITIES)
    client, level = meta.get(CLIENT_INFO, {}), meta.get(LOG_LEVEL)
    if type(version) is not str:
        raise InvalidParams(f"Invalid params: `{PROTOCOL_VERSION}` must be a string")
    if type(capabilities) is not dict:
        raise InvalidParams(f"Invalid params: `{CLIENT_CAPABILITIES}` is required and must be an object")
    if type(client) is not dict:
        raise InvalidParams(f"Invalid params: `{CLIENT_INFO}` must be an object")
    if version not in STATELESS_VERSIONS:
        raise UnsupportedVersion(version, STATELESS_VERSIONS)
    if level is not None and (type(level) is not str or level not in LOG_LEVELS):
        raise InvalidParams(f"Invalid params: `{LOG_LEVEL}` must be one of {', '.join(LOG_LEVELS)}")
    ctx.revision = REVISIONS[version]
    ctx.capabilities = capabilities
    ctx.client = client
    ctx.log_level = level
