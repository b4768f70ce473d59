"""Idempotency keys in the header of HTTP that is made for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dittybag.contracts.idempotency_keys import header_key
from dittybag.protocol.transports.http.asgi_messages import Headers

_HEADER: Final = b"idempotency-key"


def has_key(headers: Headers) -> bool:
    """Whether a request has such a header, be it valid or not."""
    return headers.get(_HEADER) is not None


@contextmanager
def beside(headers: Headers) -> Iterator[None]:
    """While a request with these headers is answered, its calls find the key."""
    # Several are one that is not valid, unless they are the same.
    found = ", ".join(dict.fromkeys(headers.get_all(_HEADER)))
    before = header_key.get()
    header_key.set(found if has_key(headers) else None)
    try:
        yield
    finally:
        # Not by a token: a request may begin without a task and end in one, which has another context.
        header_key.set(before)
