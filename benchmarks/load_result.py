"""The result of a load: calls for some seconds, as a client saw them."""

from __future__ import annotations

from msgspec import Struct


class ServerFailed(Exception):
    """A server ended or sent an unexpected response."""


class LoadResult(Struct, frozen=True):
    """The result of a load, as the client saw it."""

    calls: int
    seconds: float
    #: Seconds from a call to its result.
    median: float
    p99: float
    #: CPU seconds of the client and of the server.
    client_cpu: float
    server_cpu: float

    @property
    def rate(self) -> float:
        return self.calls / self.seconds

    @property
    def cost(self) -> float:
        """The server's CPU seconds per call."""
        return self.server_cpu / self.calls

    @property
    def client(self) -> float:
        """The share of one core that the client used."""
        return self.client_cpu / self.seconds
