"""Transports: each feeds frames to a `Session` and takes what it says through an `Outlet`."""

from __future__ import annotations

from typing import Protocol


class Outlet(Protocol):
    """Where a session's messages go. Frames are JSON texts without line breaks."""

    @property
    def full(self) -> bool:
        """The client does not take what there is: what it can do without is left out."""
        ...

    def send_message(self, frame: bytes) -> None:
        """Send a notification, or a request to the client."""
        ...

    def send_response(self, frame: bytes, error: int | None) -> None:
        """Send the one answer to a request; `error` is its code if it is an error."""
        ...

    def drop_response(self) -> None:
        """A request will not be answered, because the client cancelled it."""
        ...
