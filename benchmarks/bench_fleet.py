"""Three servers on one PostgreSQL, beside one: `python -m benchmarks.bench_fleet`.

Connections are spread evenly over the servers, as behind one address. Client, servers and database share the
cores of one machine: a fleet gains only as much as one server leaves of them.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.bench_databases import Deed, Effort, Series, copies, dittybag, measure, present, reads
from benchmarks.http_client import HttpServer

CONNECTIONS: Final = (16, 32)


@contextlib.contextmanager
def fleet(database: str, home: Path, size: int) -> Iterator[HttpServer]:
    """So many servers on a database; the first, whose connections go to all of them in turn."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(dittybag(database, home)) for _ in range(size)]
        turns = itertools.cycle([server.connected for server in servers])

        def connected() -> socket.socket:
            return next(turns)()

        servers[0].connected = connected  # type: ignore[method-assign]  # the client opens all of its here
        yield servers[0]


def run(items: int, effort: Effort) -> tuple[str, list[Series]]:
    with copies(items) as both:
        contestants = {
            "one server": lambda: fleet(both.url, both.home, 1),
            "three servers": lambda: fleet(both.url, both.home, 3),
        }
        kinds = {"get_prompt": reads(both.file), "add_prompt": None}
        chosen = [Deed(title, count, asked) for title, asked in kinds.items() for count in CONNECTIONS]
        return both.about, measure(contestants, chosen, effort)


if __name__ == "__main__":
    present("fleet", __doc__, 1000, run)
