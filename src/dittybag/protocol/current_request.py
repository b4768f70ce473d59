"""Which request is being handled, for those who write a log."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

#: The id that a request over HTTP and its answer have; empty for any other.
current_request_id: Final[ContextVar[bytes]] = ContextVar("current_request_id", default=b"")
