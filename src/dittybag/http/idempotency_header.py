"""The `Idempotency-Key` header of HTTP requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dittybag.contracts.idempotency_keys import header_key
from dittybag.http.asgi_messages import Headers

_HEADER: Final = b"idempotency-key"


def has_key(headers: Headers) -> bool:
    """Return whether a request has the header, valid or not."""
    return headers.get(_HEADER) is not None


@contextmanager
def key_from_header(headers: Headers) -> Iterator[None]:
    """Make the key available to the tool calls of a request with these headers."""
    # Different values are joined, and are then rejected as one invalid key.
    found = ", ".join(dict.fromkeys(headers.get_all(_HEADER)))
    before = header_key.get()
    header_key.set(found if has_key(headers) else None)
    try:
        yield
    finally:
        # `reset` would fail: a request may start outside a task and end in one, with another context.
        header_key.set(before)
