"""JSON-RPC batches, which one revision has: many requests in, one array of answers out."""

from __future__ import annotations

from typing import Any

from dittybag.protocol.transports import Outlet


class BatchOutlet:
    """Gathers the answers to a batch into one."""

    def __init__(self, outlet: Outlet, messages: list[Any]) -> None:
        self._outlet = outlet
        self._left = sum(map(expects_response, messages))
        self._answers: list[bytes] = []

    @property
    def full(self) -> bool:
        return self._outlet.full

    def send_message(self, frame: bytes) -> None:
        self._outlet.send_message(frame)

    def send_response(self, frame: bytes, error: int | None) -> None:
        self._answers.append(frame)
        self._finish_one()

    def drop_response(self) -> None:
        self._finish_one()

    def _finish_one(self) -> None:
        self._left -= 1
        if self._left == 0:
            if self._answers:
                self._outlet.send_response(b"[" + b",".join(self._answers) + b"]", None)
            else:
                self._outlet.drop_response()


def expects_response(message: Any) -> bool:
    """Whether a message is answered, if only with an error."""
    if type(message) is not dict:
        return True
    return "id" in message if "method" in message else not ("result" in message or "error" in message)
