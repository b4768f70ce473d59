"""Results on their way out: fitted to the revision, decorated as it wants, encoded."""

from __future__ import annotations

from typing import Final

import msgspec

from satchel.protocol.context import Context
from satchel.protocol.eras import METHODS
from satchel.protocol.eras.fields import fit
from satchel.protocol.jsonrpc import encode
from satchel.protocol.types import InputRequiredResult, JsonObject, Result

SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"


def encoded(result: Result, ctx: Context) -> bytes:
    """`result` as JSON, the way the request's revision wants it."""
    revision = ctx.revision
    body = encode(fit(result, revision.version))
    if not revision.stateless:
        return body
    complete = not isinstance(result, InputRequiredResult)
    head: JsonObject = {"resultType": "complete" if complete else "input_required"}
    if complete:
        head.update(_cache_hints(ctx))
    server = ctx.session.server
    if result.meta is None:
        head["_meta"] = {SERVER_INFO: server.info}
    else:
        result = msgspec.structs.replace(result, meta={SERVER_INFO: server.info, **result.meta})
        body = encode(result)
    return joined(encode(head), body)


def joined(head: bytes, body: bytes) -> bytes:
    """One JSON object with the members of both."""
    return head if body == b"{}" else head[:-1] + b"," + body[1:]


def _cache_hints(ctx: Context) -> JsonObject:
    method = METHODS[ctx.method, ctx.revision.version]
    if not method.cacheable:
        return {}
    cache = ctx.session.server.cache
    if ctx.method == "server/discover":
        return {"ttlMs": cache.discover_ms, "cacheScope": "public"}
    lifetime = cache.resources_ms if ctx.method == "resources/read" else cache.lists_ms
    return {"ttlMs": lifetime, "cacheScope": cache.scope}
