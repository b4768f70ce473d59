"""Idempotency keys, with which a client can safely repeat a call."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.idempotency import checked_key
from dittybag.protocol.request_context import Context

#: The field of `_meta` that holds the key, on every transport.
META_FIELD: Final = "dittybag/idempotencyKey"

#: The key from the HTTP header of the current request.
header_key: ContextVar[str | None] = ContextVar("key_beside", default=None)


def idempotency_key(ctx: Context) -> str | None:
    """Return the idempotency key of a call, or `None` if it has no key. Raises `Invalid`."""
    meta = ctx.params.get("_meta")
    from_meta = None if meta is None else meta.get(META_FIELD)
    from_header = header_key.get()
    if from_meta is None and from_header is None:
        return None
    if from_meta is not None and from_header is not None and from_meta != from_header:
        problem = "The idempotency keys in the header and in `_meta` differ: send one, or the same in both"
        raise Invalid([Problem("idempotencyKey", problem)])
    return checked_key(from_header if from_meta is None else from_meta)
