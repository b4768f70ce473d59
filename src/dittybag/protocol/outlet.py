"""The sending side of a transport, which a session writes to."""

from __future__ import annotations

from typing import Protocol


class Outlet(Protocol):
    """The sending side of a transport. Frames are JSON texts without line breaks."""

    @property
    def full(self) -> bool:
        """Whether the send buffer is full. Optional notifications are then skipped."""
        ...

    def send_message(self, frame: bytes) -> None:
        """Send a notification, or a request to the client."""
        ...

    def send_response(self, frame: bytes, error: int | None) -> None:
        """Send the response to a request. `error` is the error code of an error response."""
        ...

    def drop_response(self) -> None:
        """Record that a request gets no response, because the client cancelled it."""
        ...
