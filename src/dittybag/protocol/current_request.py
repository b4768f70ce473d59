"""The id of the HTTP request being handled, for log records."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

#: The id that an HTTP request and its response carry; empty outside HTTP.
current_request_id: Final[ContextVar[bytes]] = ContextVar("current_request_id", default=b"")
