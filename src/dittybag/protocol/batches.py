"""JSON-RPC batches (revision 2025-03-26): an array of requests, answered with an array of responses."""

from __future__ import annotations

from typing import Any

from dittybag.protocol.outlet import Outlet


class BatchOutlet:
    """Collects the responses to a batch into one array."""

    def __init__(self, outlet: Outlet, messages: list[Any]) -> None:
        self._outlet = outlet
        self._pending = sum(map(expects_response, messages))
        self._responses: list[bytes] = []

    @property
    def full(self) -> bool:
        return self._outlet.full

    def send_message(self, frame: bytes) -> None:
        self._outlet.send_message(frame)

    def send_response(self, frame: bytes, error: int | None) -> None:
        self._responses.append(frame)
        self._finish_one()

    def drop_response(self) -> None:
        self._finish_one()

    def _finish_one(self) -> None:
        self._pending -= 1
        if self._pending == 0:
            if self._responses:
                self._outlet.send_response(b"[" + b",".join(self._responses) + b"]", None)
            else:
                self._outlet.drop_response()


def expects_response(message: Any) -> bool:
    """Return whether a message gets a response, including an error response."""
    if type(message) is not dict:
        return True
    if "method" not in message:
        return not ("result" in message or "error" in message)
    return "id" in message or not _is_notification(message)


def _is_notification(message: dict[str, Any]) -> bool:
    """Return whether a message without an id is a notification, not a request without an envelope."""
    return "jsonrpc" in message or str(message["method"]).startswith("notifications/")
