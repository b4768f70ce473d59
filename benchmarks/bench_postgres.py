"""Measures durable creates on PostgreSQL through HTTP: `python -m benchmarks.bench_postgres`.

One and three servers on one PostgreSQL create prompts, in turns with bare inserts by a client of the
database. Servers connect as the owner of their database, who is not a superuser. Then the round trips of each
operation are counted in PostgreSQL's log.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.client_process import PROGRAMS, ClientProcess
from benchmarks.comparison_options import Sampling, run_comparison
from benchmarks.http_client import HOST, STATELESS, HttpServer, PreparedRequest, call, run_load
from benchmarks.load_result import LoadResult
from benchmarks.peers import CACHE
from benchmarks.postgres_cluster import Cluster, cluster
from benchmarks.postgres_report import PostgresSamples, postgres_tables
from benchmarks.postgres_round_trips import LOGGING, RoundTrips, count_round_trips
from benchmarks.processes import cpu_seconds, with_children
from benchmarks.product import Product, Workspace, fill_workspace
from benchmarks.report_output import ReportTable, print_progress
from benchmarks.sample_data import Draft, TextGenerator

CONNECTIONS: Final = (1, 24)
FLEETS: Final = {"one server": 1, "three servers": 3}
#: The owner of the databases.
ROLE: Final = "team"
#: The length of the warm-up before each load.
WARM_UP: Final = 0.3
#: Prepared creates per second, more than a server stores.
CREATES_PER_SECOND: Final = 8000

BARE: Final = "floor: bare insert"
BARE_WITH_LOG: Final = "floor: insert, log row and index in one statement"
_TABLES: Final = """
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE TABLE bare (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text, title text, content text, tags text[]
);
CREATE TABLE logged (number bigint PRIMARY KEY, id text UNIQUE, title text UNIQUE, content text, tags text[]);
CREATE INDEX ON logged USING gin (title gin_trgm_ops, content gin_trgm_ops);
CREATE INDEX ON logged USING gin (tags);
CREATE TABLE log (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text, at timestamptz, after jsonb);
"""
_STATEMENTS: Final = {
    BARE: "INSERT INTO bare (id, title, content, tags) VALUES ($1, $2, $3, $4) RETURNING number",
    BARE_WITH_LOG: """
        WITH change AS (
            INSERT INTO log (id, at, after)
            VALUES ($1, now(), jsonb_build_object('title', $2::text, 'content', $3::text, 'tags', $4::text[]))
            RETURNING seq
        )
        INSERT INTO logged (number, id, title, content, tags) SELECT seq, $1, $2, $3, $4 FROM change
        RETURNING number
    """,
}


FULL: Final = Sampling(rounds=5, seconds=1.0)
QUICK: Final = Sampling(rounds=2, seconds=0.5)

#: Runs a load on a number of connections.
Load = Callable[[int, float], LoadResult]


class CreateRequests:
    """Requests that create prompts; no two have the same title."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._drafts = drafts
        self._loads = itertools.count()

    def for_seconds(self, seconds: float) -> list[PreparedRequest]:
        prefix = f"load {next(self._loads)}"
        chosen = itertools.islice(itertools.cycle(self._drafts), int(seconds * CREATES_PER_SECOND))
        return [
            call(
                number,
                STATELESS,
                "add_prompt",
                {
                    "title": f"{prefix}, {number}: {draft.title}",
                    "content": draft.content,
                    "tags": list(draft.tags),
                },
                lambda result: bool(result["structuredContent"]["id"]),
            )
            for number, draft in enumerate(chosen)
        ]


def server_on(workspace: Workspace) -> HttpServer:
    serve = [workspace.product.command, "serve", "--db", workspace.database, "--http"]
    return HttpServer(lambda port: [*serve, f"{HOST}:{port}"], workspace.variables)


@contextlib.contextmanager
def _fleet(workspace: Workspace, size: int, requests: CreateRequests, _: int) -> Iterator[Load]:
    """Run servers on one database. Connections are distributed over them, as behind a load balancer."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(server_on(workspace)) for _ in range(size)]
        yield lambda connections, seconds: run_load(
            servers, requests.for_seconds(seconds), connections, seconds
        )


@contextlib.contextmanager
def _inserts(
    server: Cluster, url: str, statement: str, drafts: Sequence[Draft], number: int
) -> Iterator[Load]:
    """Insert rows with a client of the database."""
    with ClientProcess([sys.executable, str(PROGRAMS / "postgres_inserts.py")]) as client:
        rows = [(draft.title, draft.content, draft.tags) for draft in drafts]
        plan = {"url": url, "statement": statement, "drafts": rows, "prefix": f"round {number}"}
        client.open(plan)
        yield lambda connections, seconds: client.load(seconds, at_a_time=connections, server=server.pid)


def _database(server: Cluster, place: int | str) -> str:
    """Create a database of the role, and return its URL."""
    server.sql(f"CREATE DATABASE creates_{place} OWNER {ROLE}")
    return server.url(f"creates_{place}", user=ROLE)


def measure(
    server: Cluster, workspaces: Sequence[Workspace], sampling: Sampling, only: str
) -> list[PostgresSamples]:
    """Measure all candidates at every number of connections, in turns."""
    generator = TextGenerator("creates on PostgreSQL")
    drafts = [generator.draft() for _ in range(1000)]
    requests = CreateRequests(drafts)
    url = _database(server, "bare")
    server.sql(f"{_TABLES} GRANT ALL ON ALL TABLES IN SCHEMA public TO {ROLE}", url.rpartition("/")[2])
    candidates: dict[str, Callable[[int], contextlib.AbstractContextManager[Load]]] = {}
    for workspace, (title, size) in itertools.product(workspaces, FLEETS.items()):
        candidates[f"{workspace.product.title}, {title}"] = partial(_fleet, workspace, size, requests)
    for title, statement in _STATEMENTS.items():
        candidates[title] = partial(_inserts, server, url, statement, drafts)
    samples = {(title, count): PostgresSamples(title, count) for title in candidates for count in CONNECTIONS}
    for number in range(sampling.rounds):
        for title, start in candidates.items():
            print_progress(f"Round {number + 1} of {sampling.rounds}: {title} ...")
            with start(number) as load:
                for count in CONNECTIONS:
                    load(count, WARM_UP)
                    _measure_load(server, load, count, sampling.seconds, samples[title, count])
    return list(samples.values())


def _measure_load(
    server: Cluster, load: Load, connections: int, seconds: float, samples: PostgresSamples
) -> None:
    before = cpu_seconds(with_children(server.pid))
    samples.loads.append(load(connections, seconds))
    samples.database_cpu.append(cpu_seconds(with_children(server.pid)) - before)


def measure_all(found: Sequence[Product], sampling: Sampling, only: str) -> list[ReportTable]:
    """Run all measurements on a new PostgreSQL, of candidates whose title contains a text."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as name, cluster() as server:
        server.sql(f"CREATE ROLE {ROLE} LOGIN")
        workspaces = [
            fill_workspace(product, Path(name) / str(place), sampling.prompts, _database(server, place))
            for place, product in enumerate(found)
        ]
        samples = measure(server, workspaces, sampling, only)
        round_trips = [each for workspace in workspaces for each in _count(server, workspace)]
        about = f"PostgreSQL {server.version}, durable, with its default settings, on the same machine."
    return postgres_tables(about, samples, round_trips)


def _count(server: Cluster, workspace: Workspace) -> list[RoundTrips]:
    """Count the round trips of a server whose statements are logged."""
    database = workspace.database.rpartition("/")[2]
    for setting, value in LOGGING.items():
        server.sql(f"ALTER DATABASE {database} SET {setting} = '{value}'")
    with server_on(workspace) as running:
        ids = [key for _, key in workspace.prompts]
        return count_round_trips(workspace.product.title, running, server.log_file, ids)


if __name__ == "__main__":
    run_comparison("bench_postgres", __doc__, (FULL, QUICK), measure_all)
