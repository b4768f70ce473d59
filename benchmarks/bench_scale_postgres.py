"""Measures PostgreSQL workspaces of several sizes: `python -m benchmarks.bench_scale_postgres`.

Each call runs as an ordinary role of the database, on behalf of the owner of the machine and of a user under
row-level security. With `--baseline FOLDER`, the Dittybag in that source tree gets the same calls on the same
workspace, in turns; its results must be the same.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from benchmarks.bench_databases import Cluster, cluster
from benchmarks.postgres_scale_calls import CALLS, WHILE, WORDS
from benchmarks.postgres_scale_data import build
from benchmarks.report_output import ReportTable, print_progress, print_tables, rows_table

ROOT: Final = Path(__file__).resolve().parents[1]
SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
CALLERS: Final = ("owner", "user")
#: The role that owns the tables: neither a superuser nor exempt from row-level security.
ROLE: Final = "clerk"
#: A round of a call ends after this many repetitions, or earlier if they take longer than this.
_REPETITIONS: Final = 5
_MAX_MILLISECONDS: Final = 1000.0


class CallProcess:
    """A process that runs calls with one version of Dittybag."""

    def __init__(self, url: str, size: int, source: Path) -> None:
        paths = (str(source / "src"), str(ROOT))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.postgres_scale_calls", url, str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise SystemExit("error: a process did not start")

    def run(self, caller: str, name: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{caller} {name}\n")
        self._process.stdin.flush()
        result: dict[str, Any] = msgspec.json.decode(self._process.stdout.readline())
        return result

    def close(self) -> None:
        self._process.communicate()


class Series(Struct, frozen=True):
    """The milliseconds of one call on one size, by version."""

    size: int
    caller: str
    call: str
    times: dict[str, list[float]] = field(default_factory=dict)
    #: The versions that failed, because a statement took too long.
    failures: set[str] = field(default_factory=set)

    def median(self, version: str) -> float:
        return statistics.median(self.times[version])

    def p95(self, version: str) -> float:
        return sorted(self.times[version])[math.ceil(0.95 * len(self.times[version])) - 1]


def measure(
    size: int, processes: Mapping[str, CallProcess], names: Sequence[str], rounds: int
) -> list[Series]:
    """Run each call for each caller with each version, in turns."""
    found = [Series(size, caller, name) for caller in CALLERS for name in names]
    for number in range(rounds):
        for series in found:
            results = {
                version: _run_repeatedly(
                    process, series, series.times.setdefault(version, []), is_first=number == 0
                )
                for version, process in processes.items()
            }
            compared = {result["found"] for result in results.values() if "found" in result}
            # Every process reads other prompts.
            if len(compared) > 1 and series.call != "get":
                raise SystemExit(f"error: {series.call} as {series.caller} has different results")
            series.failures.update(version for version, result in results.items() if "error" in result)
    return found


def _run_repeatedly(
    process: CallProcess, series: Series, times: list[float], *, is_first: bool
) -> dict[str, Any]:
    """Run a call several times, unless it is slow. Returns the last result."""
    result = process.run(series.caller, series.call)
    spent = sum(result["times"])
    # The first call opens connections and fills caches.
    if not is_first or spent > _MAX_MILLISECONDS:
        times += result["times"]
    for _ in range(_REPETITIONS):
        if spent > _MAX_MILLISECONDS:
            break
        result = process.run(series.caller, series.call)
        times += result["times"]
        spent += sum(result["times"])
    return result


def stability(server: Cluster, database: str, size: int, process: CallProcess, runs: int) -> list[Series]:
    """Measure searches after each of several runs of ANALYZE, which samples other rows each time."""
    names = [name for name in CALLS if any(name.endswith(kind) for kind in WORDS)]
    found = [Series(size, caller, name) for caller in CALLERS for name in names]
    for number in range(runs):
        print_progress(f"ANALYZE, run {number + 1} of {runs} ...")
        server.sql("ANALYZE", database)
        for series in found:
            times = [process.run(series.caller, series.call)["times"][0] for _ in range(3)]
            series.times.setdefault("medians", []).append(statistics.median(times))
    return found


# Reporting


def report(found: Sequence[Series], sizes: Sequence[int], versions: Sequence[str], about: str) -> ReportTable:
    """Return a table of the median and the 95th percentile of each call, by size."""
    by_key = {(series.caller, series.call, series.size): series for series in found}
    rows = [["", "caller", *(f"{size:,} {who}" for size in sizes for who in versions)]]
    if len(versions) > 1:
        rows[0] += [f"{size:,} ratio" for size in sizes]
    for caller, call, _ in (key for key in by_key if key[2] == sizes[0]):
        row = [by_key[caller, call, size] for size in sizes]
        cells = [_cell(series, who) for series in row for who in versions]
        if len(versions) > 1:
            old, new = versions
            cells += [f"{series.median(old) / series.median(new):.1f}x" for series in row]
        rows.append([call, caller, *cells])
    return rows_table("Calls on PostgreSQL by number of prompts, median / p95 in ms", rows, about)


def _cell(series: Series, version: str) -> str:
    figures = f"{series.median(version):.1f} / {series.p95(version):.1f}"
    return f"fails after {figures}" if version in series.failures else figures


def stability_report(found: Sequence[Series]) -> ReportTable:
    rows = [["", "caller", "size", "least", "median", "most"]]
    for series in found:
        times = series.times["medians"]
        figures = (min(times), statistics.median(times), max(times))
        rows.append([series.call, series.caller, f"{series.size:,}", *(f"{each:.1f}" for each in figures)])
    return rows_table("Medians of searches after each run of ANALYZE, in ms", rows)


# Running


@contextmanager
def call_processes(url: str, size: int, versions: Mapping[str, Path]) -> Iterator[dict[str, CallProcess]]:
    with ExitStack() as stack:
        processes = {}
        for name, source in versions.items():
            processes[name] = CallProcess(url, size, source)
            stack.callback(processes[name].close)
        yield processes


def build_database(server: Cluster, size: int) -> tuple[str, str]:
    """Build a workspace in a database of its own. Returns the name of the database and the URL."""
    name = f"scale{size}"
    server.sql(f"CREATE DATABASE {name} OWNER {ROLE}")
    if server.has_trigrams:
        server.sql("CREATE EXTENSION pg_trgm WITH SCHEMA public", name)
    server.sql(f"CREATE SCHEMA workspace AUTHORIZATION {ROLE}", name)
    url = server.url(name, user=ROLE, schema="workspace")
    asyncio.run(build(url, size))
    return name, url


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_scale_postgres", description=__doc__)
    parser.add_argument(
        "--sizes", default=",".join(map(str, SIZES)), help="numbers of prompts, with commas in between"
    )
    parser.add_argument("--baseline", type=Path, help="the source tree of another version of Dittybag")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--analyze", type=int, default=0, help="also measure searches after each of N runs of ANALYZE"
    )
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    versions = {"before": options.baseline.resolve()} if options.baseline else {}
    versions["now"] = ROOT
    names = [*CALLS, *(f"get, while {name}" for name in WHILE)]
    found: list[Series] = []
    stable: list[Series] = []
    with cluster() as server:
        server.sql(f"CREATE ROLE {ROLE} LOGIN")
        for size in sizes:
            database, url = build_database(server, size)
            with call_processes(url, size, versions) as processes:
                found += measure(size, processes, names, options.rounds)
                if options.analyze:
                    stable += stability(server, database, size, processes["now"], options.analyze)
        about = f"PostgreSQL {server.version}, as an ordinary role."
    tables = [report(found, sizes, list(versions), about)]
    if stable:
        tables.append(stability_report(stable))
    print_tables(tables, as_json=options.json)


if __name__ == "__main__":
    main()
