"""Measures a full store on stdio, with a bare SQLite insert as baseline: `python -m benchmarks.bench_store`.

Measurements alternate, so that changes in machine load affect all of them. Every response is checked. The
files are copies of a workspace that is built once (see `benchmarks.sample_data`).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.report_output import print_progress, print_tables
from benchmarks.sample_data import (
    CACHE,
    build_sample_files,
    temporary_copy,
)
from benchmarks.stdio_client import ServerFailed
from benchmarks.store_calls import (
    FULL,
    QUICK,
    DittybagSession,
    McpRequest,
    StoreSampling,
    measure_calls,
    result_count,
    result_of,
)
from benchmarks.store_creates import measure_creates
from benchmarks.store_report import Starts, StoreReport, tables


def measure_starts(full: Path, folder: Path, sampling: StoreSampling) -> dict[str, Starts]:
    """Measure starts with an empty and with a full store, in turns."""
    empty = folder / "empty.db"
    starts = {"empty": Starts(), "full": Starts()}
    # The first start is not counted: it creates files and bytecode.
    for number in range(sampling.spawns + 1):
        if number % 5 == 1:
            print_progress(f"Start-up {number} of {sampling.spawns} ...")
        for name, database in (("empty", empty), ("full", full)):
            start = time.perf_counter()
            with DittybagSession(database) as session:
                session.initialize()
                initialize = time.perf_counter() - start
                _, (response,) = session.time_requests([McpRequest("prompts/list", {})])
                first_page = time.perf_counter() - start
            if bool(result_count(result_of(response))) != (name == "full"):
                raise ServerFailed(f"unexpected prompts in the {name} store: {response[:500]!r}")
            if number:
                starts[name].initialize.append(initialize)
                starts[name].first_page.append(first_page)
    return starts


def measure(items: int, sampling: StoreSampling) -> StoreReport:
    """Run all measurements and return the report."""
    files = build_sample_files(items)
    # The system's temporary folder may be in memory, where writes are not durable.
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        folder = Path(name)
        with temporary_copy(files.workspace, folder, "full") as full:
            size = full.stat().st_size / 1e6
            starts = measure_starts(full, folder, sampling)
            found, memory = measure_calls(full, items, sampling)
        creates = measure_creates(files.workspace, files.bare, folder, sampling)
    return StoreReport(items, size, found, memory, creates, starts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_store", description=__doc__)
    parser.add_argument(
        "--items", type=int, default=100_000, help="number of prompts and number of tasks (default: 100000)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    options = parser.parse_args()
    if options.items < 1000:
        raise SystemExit("error: --items must be at least 1000")
    try:
        report = measure(options.items, QUICK if options.quick else FULL)
    except ServerFailed as error:
        raise SystemExit(f"error: {error}") from None
    print_tables(tables(report), as_json=options.json)


if __name__ == "__main__":
    main()
