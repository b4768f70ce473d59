"""Runs the benchmarks one after the other: `python -m benchmarks`.

The tables are printed, and kept as JSON; `python -m benchmarks.report` writes them into the reference page.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

import msgspec
from tests.interop.environments import ROOT

from benchmarks.report_output import ReportTable, print_progress, text_table
from benchmarks.results import BenchmarkRun, store_run

BENCHMARKS: Final = ("bench_stdio", "bench_http", "bench_postgres", "bench_commands", "bench_search")
#: They take much longer: full stores, and other products.
LONG: Final = ("bench_store", "bench_packs", "bench_products")
#: They can measure another version in turns with this one.
COMPARING: Final = ("bench_stdio", "bench_http", "bench_postgres")


def run(name: str, options: Sequence[str]) -> BenchmarkRun:
    """Run a benchmark in its own process, and store its results."""
    load, started = os.getloadavg()[0], time.monotonic()
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *options]
    result = subprocess.run(command, check=False, stdout=subprocess.PIPE, cwd=ROOT)
    if result.returncode:
        raise SystemExit(f"error: {name} failed")
    tables = msgspec.json.decode(result.stdout, type=list[ReportTable])
    return store_run(name, list(options), load, time.monotonic() - started, tables)


def show(found: BenchmarkRun) -> None:
    head = f"{found.benchmark}: {found.machine}; load average {found.load_before:.2f} before, "
    print(f"{head}{found.load_after:.2f} after; {found.seconds:.0f} s\n")
    print("\n\n".join(map(text_table, found.tables)), end="\n\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these benchmarks")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements")
    parser.add_argument("--long", action="store_true", help="also those that take much longer")
    parser.add_argument("--before", metavar="SOURCE", help="also measure another folder or Git revision")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    known = (*BENCHMARKS, *LONG)
    if unknown := sorted(set(options.names) - set(known)):
        raise SystemExit(
            f"error: unknown benchmark: {', '.join(unknown)}\nhint: choose from {', '.join(known)}"
        )
    chosen = options.names or (known if options.long else BENCHMARKS)
    found = []
    for name in chosen:
        print_progress(f"{name} ...")
        quick = ["--quick"] if options.quick else []
        before = ["--before", options.before] if options.before and name in COMPARING else []
        found.append(run(name, [*quick, *before]))
        if not options.json:
            show(found[-1])
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(found)).decode())


if __name__ == "__main__":
    main()
