"""The access log: a line of JSON for every request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final

from dittybag.http.http_request import HttpRequest
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.lazy_asyncio import asyncio

#: Lines are written together after this time, because waking the thread that writes them is slow.
_FLUSH_SECONDS: Final = 0.05


class AccessLog:
    """Collects the lines, and writes them in batches."""

    def __init__(self, write: Callable[[Sequence[str]], object]) -> None:
        """`write` must not block."""
        self._write = write
        self._lines: list[str] = []

    def add(self, request: HttpRequest) -> None:
        """Log a request that has ended."""
        client = request.scope.get("client") or ("", 0)
        line = {
            "request_id": request.id.decode(),
            "client": client[0],
            "user": request.auth.principal_id,
            "method": request.method,
            "path": request.path,
            "status": request.status,
            "ms": round(1000 * (perf_counter() - request.started_at), 3),
        }
        if not self._lines:
            asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)
        self._lines.append(encode(line).decode())

    def flush(self) -> None:
        """Write the collected lines."""
        if self._lines:
            self._write(self._lines)
            self._lines = []
