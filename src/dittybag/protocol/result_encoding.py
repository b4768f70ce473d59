"""Encoding of results in the form of the request's revision."""

from __future__ import annotations

from typing import Final

import msgspec

from dittybag.protocol.eras.field_table import downgrade
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import Implementation, InputRequiredResult, JsonObject, Result

SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"


def encode_result(result: Result, ctx: Context) -> bytes:
    """Return `result` as JSON, in the form of the request's revision."""
    if not ctx.revision.stateless:
        return encode(downgrade(result, ctx.revision.version))
    kind = "input_required" if isinstance(result, InputRequiredResult) else "complete"
    if result.meta is None:
        prefixes = ctx.session.server.encoded_prefixes
        prefix = prefixes.get((ctx.method, kind))
        if prefix is None:
            members = {**_stateless_fields(kind, ctx), "_meta": {SERVER_INFO: _server_info(ctx)}}
            prefix = prefixes[ctx.method, kind] = encode(members)
        return _merge_objects(prefix, encode(result))
    meta = {SERVER_INFO: _server_info(ctx), **result.meta}
    return _merge_objects(
        encode(_stateless_fields(kind, ctx)), encode(msgspec.structs.replace(result, meta=meta))
    )


def _merge_objects(first: bytes, second: bytes) -> bytes:
    """Merge two encoded JSON objects."""
    return first if second == b"{}" else first[:-1] + b"," + second[1:]


def _server_info(ctx: Context) -> Implementation:
    """Return the full server info for `server/discover`, otherwise only the name and version."""
    info = ctx.session.server.info
    if ctx.method == "server/discover":
        return info
    return Implementation(name=info.name, version=info.version)


def _stateless_fields(kind: str, ctx: Context) -> JsonObject:
    """Return the members that stateless revisions add to every result."""
    members: JsonObject = {"resultType": kind}
    server = ctx.session.server
    method = server.find_method(ctx.method, ctx.revision.version)
    if kind == "complete" and method is not None and method.cacheable:
        cache = server.cache
        if ctx.method == "server/discover":
            members |= {"ttlMs": cache.discover_ms, "cacheScope": "public"}
        else:
            lifetime = cache.resources_ms if ctx.method == "resources/read" else cache.lists_ms
            members |= {"ttlMs": lifetime, "cacheScope": cache.scope}
    return members
