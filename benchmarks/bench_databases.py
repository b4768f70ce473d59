"""Compares PostgreSQL with SQLite as Dittybag's database, over HTTP: `python -m benchmarks.bench_databases`.

A workspace is built in SQLite and copied to a new PostgreSQL cluster with `dittybag copy`. Both are durable
and on the same disk. A server on each gets the same requests in turns, and every response is checked.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec
import pytest
from msgspec import Struct, field
from tests import postgres_servers

from benchmarks.http_client import HOST, STATELESS, HttpServer, PreparedRequest, call
from benchmarks.load_result import LoadResult
from benchmarks.report_output import (
    ReportTable,
    describe_machine,
    print_progress,
    print_tables,
    rows_table,
)
from benchmarks.sample_data import (
    CACHE,
    COMMON_WORD,
    RARE,
    RARE_WORDS,
    UNCOMMON_WORD,
    TextGenerator,
    build_sample_files,
    temporary_copy,
)
from benchmarks.stdio_client import ServerFailed

#: The number of different prompts to read.
READ_PROMPTS: Final = 2000
#: Prepared creates per second, more than either database can store.
CREATES_PER_SECOND: Final = 6000

#: The test settings use little memory; these are PostgreSQL's defaults.
_SETTINGS: Final = {"shared_buffers": "128MB", "autovacuum_naptime": "60s"}


class Cluster(postgres_servers.PostgresServer):
    """A durable PostgreSQL server for benchmarks."""

    def __init__(self, programs: Path, folder: Path) -> None:
        super().__init__(programs, folder, durable=True)
        self._settings = {**self._settings, **_SETTINGS}

    @property
    def pid(self) -> int:
        """The process that all others of the server are children of."""
        assert self._process is not None
        return self._process.pid

    @property
    def version(self) -> str:
        return self.sql("SHOW server_version")[0].split()[0]

    @property
    def log_file(self) -> Path:
        """The file with the server's log."""
        return self._folder / "log"


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """Run the system's PostgreSQL, or the one bundled with the tests, with its data on disk."""
    try:
        programs = postgres_servers.installed_programs()
    except pytest.skip.Exception:
        programs = postgres_servers.bundled_programs()
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=CACHE))
    found: Cluster | None = None
    try:
        found = Cluster(programs, folder)
        found.start()
        yield found
    finally:
        if found is not None:
            found.stop()
        shutil.rmtree(folder, ignore_errors=True)


class DatabaseCopies(Struct, frozen=True):
    """The same workspace in both databases."""

    home: Path
    file: Path
    url: str
    #: A description for the report: the sizes and the speed of the copy.
    about: str


@contextlib.contextmanager
def database_copies(items: int) -> Iterator[DatabaseCopies]:
    """Provide a workspace with `items` prompts and `items` tasks in both databases."""
    workspace = build_sample_files(items).workspace
    with (
        tempfile.TemporaryDirectory(dir=CACHE) as folder,
        temporary_copy(workspace, Path(folder), "workspace") as file,
        cluster() as server,
    ):
        print_progress(f"Copying {items:,} prompts and {items:,} tasks to PostgreSQL {server.version} ...")
        changes, seconds = copy_workspace(file, server.url())
        server.sql("VACUUM ANALYZE")
        trigrams = "with" if server.has_trigrams else "without"
        about = (
            f"{items:,} prompts and {items:,} tasks, PostgreSQL {server.version} {trigrams} pg_trgm, on "
            f"{describe_machine()}.\nCopied from SQLite to PostgreSQL in {seconds:.0f} s: "
            f"{changes / seconds:,.0f} changes per second."
        )
        yield DatabaseCopies(Path(folder), file, server.url(), about)


def copy_workspace(source: Path, target: str) -> tuple[int, float]:
    """Copy a workspace. Returns the number of changes and the seconds."""
    command = [sys.executable, "-m", "dittybag", "copy", "--from", str(source), "--to", target, "--json"]
    environment = {**os.environ, "DITTYBAG_HOME": str(source.parent)}
    started = time.perf_counter()
    result = subprocess.run(command, check=False, capture_output=True, env=environment)
    if result.returncode:
        raise ServerFailed(f"copying failed: {result.stderr[-500:].decode(errors='replace')}")
    return msgspec.json.decode(result.stdout)["data"]["changes"], time.perf_counter() - started


def dittybag_server(database: str, home: Path) -> HttpServer:
    """Start a server on a database. Entering its context waits until it listens."""

    def command(port: int) -> Sequence[str]:
        return sys.executable, "-m", "dittybag", "serve", "--db", database, "--http", f"{HOST}:{port}"

    return HttpServer(command, {"DITTYBAG_HOME": str(home)})


# Workloads


def read_requests(database: Path) -> list[PreparedRequest]:
    """Return requests that read prompts from all parts of a workspace."""

    def expects(*expected: str) -> Callable[[Any], bool]:
        def is_valid(result: Any) -> bool:
            found = result["structuredContent"]
            return (found["id"], found["title"], found["content"]) == expected

        return is_valid

    with contextlib.closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        rows = connection.execute(
            """SELECT id, title, content FROM prompts
               WHERE number % max(1, (SELECT count(*) FROM prompts) / ?) = 0""",
            (READ_PROMPTS,),
        ).fetchall()
    return [
        call(number, STATELESS, "get_prompt", {"id": row[0]}, expects(*map(str, row)))
        for number, row in enumerate(rows)
    ]


def search_requests(words: Sequence[str], expected: int) -> list[PreparedRequest]:
    """Return searches for words that occur in `expected` prompts."""
    return [
        call(
            number,
            STATELESS,
            "search_prompts",
            {"query": word},
            lambda result: result["structuredContent"]["total"] == expected,
        )
        for number, word in enumerate(words)
    ]


def create_requests(generator: TextGenerator, prefix: str, seconds: float) -> list[PreparedRequest]:
    """Return more creates than can be stored in `seconds`. `prefix` makes the titles unique."""
    drafts = [generator.draft() for _ in range(int(seconds * CREATES_PER_SECOND))]
    return [
        call(
            number,
            STATELESS,
            "add_prompt",
            {"title": f"{prefix} {draft.title}", "content": draft.content, "tags": list(draft.tags)},
            lambda result: bool(result["structuredContent"]["id"]),
        )
        for number, draft in enumerate(drafts)
    ]


class Workload(Struct, frozen=True):
    """A sequence of requests on a number of connections."""

    title: str
    connections: int
    #: The requests, in turn; `None` to create new prompts.
    requests: list[PreparedRequest] | None


def workloads(database: Path, items: int) -> list[Workload]:
    found = read_requests(database)
    return [
        Workload("get_prompt", 1, found),
        Workload("get_prompt", 16, found),
        Workload("add_prompt", 1, None),
        Workload("add_prompt", 16, None),
        Workload("search_prompts, rare word", 1, search_requests(RARE_WORDS, RARE)),
        Workload("search_prompts, rare word", 16, search_requests(RARE_WORDS, RARE)),
        Workload("search_prompts, one in a hundred", 1, search_requests([UNCOMMON_WORD], items // 100)),
        Workload("search_prompts, common word", 1, search_requests([COMMON_WORD], items // 10)),
    ]


# Measuring


class DatabaseSampling(Struct, frozen=True):
    """The number and length of the measurements."""

    rounds: int
    #: The length of each load.
    seconds: float


FULL: Final = DatabaseSampling(rounds=5, seconds=1.0)
QUICK: Final = DatabaseSampling(rounds=2, seconds=0.5)


class DatabaseSeries(Struct, frozen=True):
    """One workload and its loads, one for each round, by candidate."""

    title: str
    connections: int
    loads: dict[str, list[LoadResult]] = field(default_factory=dict)

    def rate(self, name: str) -> float:
        return statistics.median(load.rate for load in self.loads[name])

    def p99(self, name: str) -> float:
        return statistics.median(load.p99 for load in self.loads[name])

    def ratio(self, name: str, other: str) -> float:
        """Return the median over the rounds of the ratio of two request rates."""
        pairs = zip(self.loads[name], self.loads[other], strict=True)
        return statistics.median(first.rate / second.rate for first, second in pairs)


def measure(
    candidates: Mapping[str, Callable[[], contextlib.AbstractContextManager[HttpServer]]],
    chosen: Sequence[Workload],
    sampling: DatabaseSampling,
) -> list[DatabaseSeries]:
    """Run every workload on every candidate, in turns."""
    generator = TextGenerator("creates over HTTP")
    found = [DatabaseSeries(workload.title, workload.connections) for workload in chosen]
    for number in range(sampling.rounds):
        for name, open_server in candidates.items():
            print_progress(f"Round {number + 1} of {sampling.rounds}: {name} ...")
            with open_server() as server:
                for place, (workload, series) in enumerate(zip(chosen, found, strict=True)):
                    prefix = f"{name} {number}.{place}"
                    # The warm-up opens connections and fills caches.
                    server.run_load(
                        _workload_requests(workload, generator, f"{prefix} before", 0.2),
                        workload.connections,
                        0.2,
                    )
                    requests = _workload_requests(workload, generator, prefix, sampling.seconds)
                    load = server.run_load(requests, workload.connections, sampling.seconds)
                    series.loads.setdefault(name, []).append(load)
    return found


def _workload_requests(
    workload: Workload, generator: TextGenerator, prefix: str, seconds: float
) -> list[PreparedRequest]:
    return create_requests(generator, prefix, seconds) if workload.requests is None else workload.requests


# Reporting

_COLUMNS: Final = ("rate", "p99")


def comparison(series: Sequence[DatabaseSeries], about: str) -> ReportTable:
    """Return a table of two candidates and the ratio of their request rates."""
    other, name = both = tuple(series[0].loads)
    rows = [["", "connections", *(f"{who}, {what}" for who in both for what in _COLUMNS), "ratio"]]
    for one in series:
        figures = [figure for who in both for figure in _figures(one, who)]
        rows.append([one.title, str(one.connections), *figures, f"{one.ratio(name, other):.2f}x"])
    return rows_table(f"{name} compared with {other}", rows, about)


def _figures(series: DatabaseSeries, name: str) -> tuple[str, str]:
    return f"{series.rate(name):,.0f}/s", f"{series.p99(name) * 1000:.2f} ms"


def run_command(
    name: str,
    what: str | None,
    items: int,
    run: Callable[[int, DatabaseSampling], tuple[str, list[DatabaseSeries]]],
) -> None:
    """Run a benchmark with the options of the command line and print the results.

    `run` returns a description and the measured series.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=what)
    parser.add_argument(
        "--items", type=int, default=items, help=f"number of prompts and number of tasks (default: {items})"
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    options = parser.parse_args()
    if options.items < 1000:
        raise SystemExit("error: --items must be at least 1000")
    before = os.getloadavg()[0]
    try:
        about, series = run(options.items, QUICK if options.quick else FULL)
    except ServerFailed as error:
        raise SystemExit(f"error: {error}") from None
    about += f" Load average {before:.2f} before, {os.getloadavg()[0]:.2f} after."
    print_tables([comparison(series, about)], as_json=options.json)


def run(items: int, sampling: DatabaseSampling) -> tuple[str, list[DatabaseSeries]]:
    with database_copies(items) as both:
        candidates = {
            "SQLite": lambda: dittybag_server(str(both.file), both.home),
            "PostgreSQL": lambda: dittybag_server(both.url, both.home),
        }
        return both.about, measure(candidates, workloads(both.file, items), sampling)


if __name__ == "__main__":
    run_command("bench_databases", __doc__, 100_000, run)
