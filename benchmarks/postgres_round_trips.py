"""Counts the round trips of operations between a server and PostgreSQL, in PostgreSQL's log."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from benchmarks.http_client import STATELESS, HttpServer, PreparedRequest, call
from benchmarks.report_output import Cell

#: PostgreSQL logs a statement of the simple protocol, and every execution of a prepared statement.
_LOGGED: Final = re.compile(rb"\[(\d+)\] LOG:  (?:statement|execute [^:]*):\s+(\w+)")
#: Settings of the database whose statements are counted.
LOGGING: Final = {"log_statement": "all", "log_min_messages": "log"}
_REPETITIONS: Final = 20
_WARM_UP: Final = 10


class RoundTrips(Struct, frozen=True):
    """The statements of each repetition of an operation."""

    version: str
    operation: str
    statements: list[list[str]]

    @property
    def median(self) -> float:
        return statistics.median(map(len, self.statements))

    def row(self) -> list[Cell]:
        """Return the median number, and the statements of a repetition that has it."""
        typical = min(self.statements, key=lambda found: abs(len(found) - self.median))
        kinds = Counter(typical).items()
        shown = ", ".join(kind if times == 1 else f"{times} {kind}" for kind, times in kinds)
        return [self.version, self.operation, f"{self.median:g}", shown]


class OperationRequests:
    """Requests that create, update and read prompts."""

    def __init__(self, ids: list[str]) -> None:
        self._ids = ids

    def create(self, number: int) -> PreparedRequest:
        arguments = {"title": f"Counted {number}", "content": f"Text {number}", "tags": ["counted"]}
        return self._call(number, "add_prompt", arguments)

    def update(self, number: int) -> PreparedRequest:
        return self._call(number, "update_prompt", {"id": self._id(number), "content": f"Changed {number}"})

    def read(self, number: int) -> PreparedRequest:
        return self._call(number, "get_prompt", {"id": self._id(number)})

    def _id(self, number: int) -> str:
        return self._ids[number % len(self._ids)]

    @staticmethod
    def _call(number: int, tool: str, arguments: dict[str, Any]) -> PreparedRequest:
        return call(number, STATELESS, tool, arguments, lambda result: not result.get("isError"))


def count_round_trips(version: str, server: HttpServer, log: Path, ids: list[str]) -> list[RoundTrips]:
    """Run each operation several times, and return the statements of each time."""
    requests = OperationRequests(ids)
    operations: dict[str, Callable[[int], PreparedRequest]] = {
        "create": requests.create,
        "update": requests.update,
        "read by id": requests.read,
    }
    found = []
    for operation, prepare in operations.items():
        taken = []
        for number in range(_WARM_UP + _REPETITIONS):
            start = log.stat().st_size
            server.run_load([prepare(number)], 1, 0)
            taken.append(_statements(log, start))
        found.append(RoundTrips(version, operation, taken[_WARM_UP:]))
    return found


def _statements(log: Path, start: int) -> list[str]:
    """Return the first word of each statement that was logged after a position.

    The connection that listens for changes is left out: it reads new ones after the response.
    """
    logged = list(_LOGGED.finditer(log.read_bytes()))
    listening = {found[1] for found in logged if found[2] == b"LISTEN"}
    return [
        found[2].decode().upper() for found in logged if found.start() >= start and found[1] not in listening
    ]
