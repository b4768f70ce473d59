"""The results of the last run of each benchmark, kept as files until the page is written from them."""

from __future__ import annotations

import datetime as dt
import os
from typing import Final

import msgspec
from msgspec import Struct

from benchmarks.peers import CACHE
from benchmarks.report_output import ReportTable, describe_machine

RESULTS: Final = CACHE / "results"


class BenchmarkRun(Struct, frozen=True):
    """The tables of one run, and under which conditions it was made."""

    benchmark: str
    date: str
    machine: str
    #: The options of the run.
    options: list[str]
    #: The machine's one-minute load average before and after the run.
    load_before: float
    load_after: float
    seconds: float
    tables: list[ReportTable]


def store_run(
    benchmark: str, options: list[str], load_before: float, seconds: float, tables: list[ReportTable]
) -> BenchmarkRun:
    """Store a run in place of the last one."""
    found = BenchmarkRun(
        benchmark=benchmark,
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        machine=describe_machine(),
        options=options,
        load_before=load_before,
        load_after=os.getloadavg()[0],
        seconds=seconds,
        tables=tables,
    )
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{benchmark}.json").write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    return found


def load_run(benchmark: str) -> BenchmarkRun | None:
    """Return the last run of a benchmark, if there is one."""
    file = RESULTS / f"{benchmark}.json"
    return msgspec.json.decode(file.read_bytes(), type=BenchmarkRun) if file.exists() else None
