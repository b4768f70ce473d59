"""Idempotency keys: a client may repeat a call that has one without fear."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.idempotency import checked_key
from dittybag.protocol import Context

#: Where a request of any transport has its key, in `_meta`.
META_FIELD: Final = "dittybag/idempotencyKey"

#: The key that came beside the request in hand, in a header of HTTP.
header_key: ContextVar[str | None] = ContextVar("key_beside", default=None)


def idempotency_key(ctx: Context) -> str | None:
    """The key of a call, if it has one. Raises `Invalid`."""
    meta = ctx.params.get("_meta")
    said = None if meta is None else meta.get(META_FIELD)
    beside = header_key.get()
    if said is None and beside is None:
        return None
    if said is not None and beside is not None and said != beside:
        problem = "The idempotency key in the header is not the one in `_meta`"
        raise Invalid([Problem("idempotencyKey", problem)])
    return checked_key(beside if said is None else said)
