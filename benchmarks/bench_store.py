"""A full store on stdio, beside a bare insert into SQLite: `python -m benchmarks.bench_store`.

What is compared is measured in turns, so that a change of the machine's pace meets all of it. Every answer is
checked. The files are copies of a workspace that is built once (see `benchmarks.sample_data`).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks.report_output import machine, tell
from benchmarks.sample_data import (
    CACHE,
    copied,
    prepare,
)
from benchmarks.stdio_client import ServerFailed
from benchmarks.store_calls import (
    FULL,
    QUICK,
    Effort,
    Request,
    Session,
    measure_calls,
    number_found,
    result_of,
)
from benchmarks.store_creates import measure_creates
from benchmarks.store_report import Report, Starts, as_json, tables


def measure_starts(full: Path, folder: Path, effort: Effort) -> dict[str, Starts]:
    """Starts on an empty store and on a full one, in turns."""
    empty = folder / "empty.db"
    starts = {"empty": Starts(), "full": Starts()}
    # One more that does not count: files are made, bytecode is written.
    for number in range(effort.spawns + 1):
        if number % 5 == 1:
            tell(f"Start-up {number} of {effort.spawns} ...")
        for name, database in (("empty", empty), ("full", full)):
            start = time.perf_counter()
            with Session(database) as session:
                session.greet()
                initialize = time.perf_counter() - start
                _, (answer,) = session.timed([Request("prompts/list", {})])
                first_page = time.perf_counter() - start
            if bool(number_found(result_of(answer))) != (name == "full"):
                raise ServerFailed(f"unexpected prompts in the {name} store: {answer[:500]!r}")
            if number:
                starts[name].initialize.append(initialize)
                starts[name].first_page.append(first_page)
    return starts


def measure(items: int, effort: Effort) -> Report:
    """Everything, one after another."""
    files = prepare(items)
    # Not in a temporary folder of the system: that may be in memory, where nothing is durable.
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        folder = Path(name)
        with copied(files.workspace, folder, "full") as full:
            size = full.stat().st_size / 1e6
            starts = measure_starts(full, folder, effort)
            found, memory = measure_calls(full, items, effort)
        creates = measure_creates(files.workspace, files.bare, folder, effort)
    return Report(machine(), items, size, found, memory, creates, starts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_store", description=__doc__)
    parser.add_argument(
        "--items", type=int, default=100_000, help="how many prompts, and how many tasks (default: 100000)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--json", action="store_true", help="all samples as JSON")
    options = parser.parse_args()
    if options.items < 1000:
        raise SystemExit("error: a store of fewer than 1000 items is not worth measuring")
    try:
        report = measure(options.items, QUICK if options.quick else FULL)
    except ServerFailed as error:
        raise SystemExit(f"error: {error}") from None
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(as_json(report))).decode())
    else:
        print(tables(report))


if __name__ == "__main__":
    main()
