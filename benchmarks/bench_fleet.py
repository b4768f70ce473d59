"""Compares three servers on one PostgreSQL with one server: `python -m benchmarks.bench_fleet`.

Connections are distributed evenly over the servers, as behind a load balancer. Client, servers and database
share the cores of one machine, so a fleet can only use the cores that one server leaves idle.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.bench_databases import (
    DatabaseSampling,
    DatabaseSeries,
    Workload,
    database_copies,
    dittybag_server,
    measure,
    read_requests,
    run_command,
)
from benchmarks.http_client import HttpServer

CONNECTIONS: Final = (16, 32)


@contextlib.contextmanager
def fleet(database: str, home: Path, size: int) -> Iterator[HttpServer]:
    """Run `size` servers on a database. The returned one opens its connections on all of them in turn."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(dittybag_server(database, home)) for _ in range(size)]
        turns = itertools.cycle([server.connect for server in servers])

        def connect() -> socket.socket:
            return next(turns)()

        servers[0].connect = connect  # type: ignore[method-assign]  # the client opens every connection with it
        yield servers[0]


def run(items: int, sampling: DatabaseSampling) -> tuple[str, list[DatabaseSeries]]:
    with database_copies(items) as both:
        candidates = {
            "one server": lambda: fleet(both.url, both.home, 1),
            "three servers": lambda: fleet(both.url, both.home, 3),
        }
        kinds = {"get_prompt": read_requests(both.file), "add_prompt": None}
        chosen = [
            Workload(title, count, requests) for title, requests in kinds.items() for count in CONNECTIONS
        ]
        return both.about, measure(candidates, chosen, sampling)


if __name__ == "__main__":
    run_command("bench_fleet", __doc__, 1000, run)
