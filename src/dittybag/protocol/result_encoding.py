"""Results on their way out: fitted to the revision, decorated as it wants, encoded."""

from __future__ import annotations

from typing import Final

import msgspec

from dittybag.protocol.eras import METHODS
from dittybag.protocol.eras.field_table import downgrade
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import Implementation, InputRequiredResult, JsonObject, Result

SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"


def encode_result(result: Result, ctx: Context) -> bytes:
    """`result` as JSON, the way the request's revision wants it."""
    if not ctx.revision.stateless:
        return encode(downgrade(result, ctx.revision.version))
    kind = "input_required" if isinstance(result, InputRequiredResult) else "complete"
    if result.meta is None:
        heads = ctx.session.server.encoded_prefixes
        head = heads.get((ctx.method, kind))
        if head is None:
            members = {**_stateless_fields(kind, ctx), "_meta": {SERVER_INFO: _server_info(ctx)}}
            head = heads[ctx.method, kind] = encode(members)
        return _merge_objects(head, encode(result))
    meta = {SERVER_INFO: _server_info(ctx), **result.meta}
    return _merge_objects(
        encode(_stateless_fields(kind, ctx)), encode(msgspec.structs.replace(result, meta=meta))
    )


def _merge_objects(head: bytes, body: bytes) -> bytes:
    """One JSON object with the members of both."""
    return head if body == b"{}" else head[:-1] + b"," + body[1:]


def _server_info(ctx: Context) -> Implementation:
    """Who answers: in full when asked for, and just the name with everything else."""
    info = ctx.session.server.info
    if ctx.method == "server/discover":
        return info
    return Implementation(name=info.name, version=info.version)


def _stateless_fields(kind: str, ctx: Context) -> JsonObject:
    """What the stateless revisions add to every result."""
    members: JsonObject = {"resultType": kind}
    method = METHODS[ctx.method, ctx.revision.version]
    if kind == "complete" and method.cacheable:
        cache = ctx.session.server.cache
        if ctx.method == "server/discover":
            members |= {"ttlMs": cache.discover_ms, "cacheScope": "public"}
        else:
            lifetime = cache.resources_ms if ctx.method == "resources/read" else cache.lists_ms
            members |= {"ttlMs": lifetime, "cacheScope": cache.scope}
    return members
