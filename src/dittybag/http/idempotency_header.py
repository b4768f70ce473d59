"""The `Idempotency-Key` header of HTTP requests."""

from __future__ import annotations

from typing import Final

from dittybag.contracts.idempotency_keys import header_key
from dittybag.http.http_request import HttpRequest

_HEADER: Final = b"idempotency-key"


def read_idempotency_key(request: HttpRequest) -> None:
    """Middleware that makes the key available to the tool calls of a request."""
    # Different values are joined, and are then rejected as one invalid key. Without the header the key is set
    # to `None`: the task of a pipelined request starts with the context of the previous one.
    found = request.headers.get_all(_HEADER)
    header_key.set(", ".join(dict.fromkeys(found)) if found else None)
