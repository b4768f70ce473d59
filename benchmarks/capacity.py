"""Writes the tables of the capacity page: `python -m benchmarks.capacity`.

It measures service times on this machine, keeps them in `capacity.json`, computes the model, checks it with
the simulation, and replaces the tables of `docs/reference/capacity.md`.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from benchmarks import capacity_model as model
from benchmarks import capacity_simulation as simulation
from benchmarks.capacity_measurements import (
    FULL,
    QUICK,
    FileFigures,
    SchemaFigures,
    measure_files,
    measure_schemas,
    measure_service_times,
)
from benchmarks.capacity_model import Assumptions, LoadFigures, Measurements, ServiceTimes
from benchmarks.report_output import print_progress

FILE: Final = Path(__file__).with_name("capacity.json")
PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "capacity.md"

#: The loads of the simulation, as shares of the rate at which the server's event loop is always busy.
LOADS: Final = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
_MB: Final = 1e6


class CapacityFigures(Struct, frozen=True):
    """Everything that was measured."""

    service: Measurements
    schemas: SchemaFigures
    files: FileFigures


# Tables


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"


def milli(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


def carried(times: ServiceTimes, chosen: Assumptions) -> str:
    """What each kind of installation carries."""
    large = chosen.database_processors
    rows = [
        model.capacity(times, chosen, title="one server process", servers=1, processors=4),
        model.capacity(times, chosen, title="one PostgreSQL with 4 processors", servers=None, processors=4),
        model.capacity(
            times, chosen, title=f"one PostgreSQL with {large} processors", servers=None, processors=large
        ),
        model.capacity(
            times, chosen, title="the same with 2 replicas", servers=None, processors=large, replicas=2
        ),
    ]
    one = rows[2]
    lines = [_capacity_row(row) for row in rows]
    for count in (10, 100):
        many = msgspec.structs.replace(
            one,
            title=f"{count} such databases, routed by workspace",
            calls=count * one.calls,
            writes=count * one.writes,
            servers=count * one.servers,
        )
        lines.append(_capacity_row(many))
    head = (
        "",
        "calls a second",
        "of them writes",
        "exhausted first",
        "server processes",
        "connections to each database",
        "USD for a million calls",
    )
    return markdown(head, lines)


def _capacity_row(row: model.Capacity) -> list[str]:
    return [
        row.title,
        f"{row.calls:,.0f}",
        f"{row.writes:,.0f}",
        row.limit,
        f"{row.servers:,}",
        f"{row.connections:,}",
        f"{row.price:.3f}",
    ]


def service_table(found: Measurements, times: ServiceTimes) -> str:
    """The measured service times."""
    single, many = found.batches[0], found.batches[-1]
    rows = [
        ["read by id: CPU of the server", micro(times.read_server)],
        ["read by id: CPU of PostgreSQL", micro(times.read_database)],
        ["a server that is woken for each request pays more", micro(times.wake)],
        [
            "create: CPU of the server without the writer",
            micro(times.create_server),
        ],
        *(
            [
                f"batch of {each.size}: elapsed, CPU of the server, CPU of PostgreSQL",
                f"{milli(each.elapsed)}, {milli(each.server)}, {milli(each.database)}",
            ]
            for each in (single, found.batches[len(found.batches) // 2], many)
        ),
        ["writes a second with full batches", f"{model.write_rate(times):,.0f}"],
        ["memory of a server process", f"{found.server_memory / _MB:,.0f} MB"],
        ["tables and indexes for a prompt of 500 characters", f"{found.stored_bytes / 1000:,.1f} KB"],
        ["write-ahead log for a create", f"{found.logged_bytes / 1000:,.1f} KB"],
        ["load average before and after", f"{found.load[0]:.1f}, {found.load[1]:.1f}"],
        [
            "other threads that ran meanwhile",
            f"{statistics.mean(load.background for load in (*found.reads, *found.creates)):.1f}",
        ],
    ]
    return markdown((f"measured on {found.machine}", ""), rows)


def check_table(found: Measurements, times: ServiceTimes, seconds: float) -> str:
    """The simulation against the measured loads."""
    machines = simulation.Machines
    rows = []
    kinds = (("read", found.reads, machines.read), ("create", found.creates, machines.create))
    for name, loads, operation in kinds:
        for load in loads:
            simulated = simulation.closed_load(
                times,
                operation,
                load.connections,
                processors=found.processors,
                background=load.background,
                seconds=seconds,
            )
            rows.append(_check_row(name, load, simulated))
    head = (
        "",
        "connections",
        "a second: measured",
        "simulated",
        "error",
        "p99: measured",
        "simulated",
        "error",
    )
    return markdown(head, rows)


def _check_row(name: str, load: LoadFigures, simulated: simulation.SimulatedLoad) -> list[str]:
    return [
        name,
        str(load.connections),
        f"{load.rate:,.0f}",
        f"{simulated.rate:,.0f}",
        f"{simulated.rate / load.rate - 1:+.0%}",
        milli(load.p99),
        milli(simulated.p99),
        f"{simulated.p99 / load.p99 - 1:+.0%}",
    ]


def queue_table(times: ServiceTimes, chosen: Assumptions, seconds: float) -> str:
    """One server under random arrivals: the model against the simulation."""
    variation = model.squared_variation(times.shape)
    # A lone request is woken for twice: the model has no such thing, so it is left out here.
    steady = msgspec.structs.replace(times, wake=0.0)
    alone = steady.read_server + steady.read_rest + steady.read_database
    rows = []
    for load in LOADS:
        rate = load / steady.read_server
        reads = simulation.open_load(steady, 0.0, rate, seconds=seconds)
        # Each request takes two turns on the event loop.
        wait = 2 * model.mg1_wait(2 * rate, steady.read_server / 2, variation)
        mixed_rate = load / model.server_cpu(steady, chosen.writes)
        mixed = simulation.open_load(steady, chosen.writes, mixed_rate, seconds=seconds)
        rows.append(
            [
                f"{load:.0%}",
                f"{reads.utilisation['server']:.0%}",
                milli(wait),
                milli(max(reads.mean - alone, 0.0)),
                milli(reads.p99),
                f"{mixed.utilisation['server']:.0%}",
                milli(mixed.p99),
            ]
        )
    head = (
        "load",
        "reads only: busy",
        "mean queueing delay: model",
        "simulated",
        "p99",
        f"with {chosen.writes:.0%} writes: busy",
        "p99",
    )
    return markdown(head, rows)


def workspace_table(found: CapacityFigures) -> str:
    """What many workspaces cost, and what a million would."""
    files, schemas = found.files, found.schemas
    million = 1_000_000
    backend = (schemas.backend_after - schemas.backend_before) / schemas.count
    rows = [
        [
            f"memory of a process with all open (measured with {files.count:,})",
            f"{files.memory / 1000:,.0f} KB",
            f"{files.memory * million / 1e9:,.0f} GB",
            f"{backend / 1000:,.0f} KB in each backend that has used it",
            f"{backend * million / 1e9:,.0f} GB",
        ],
        [
            "descriptors; files",
            f"{files.descriptors:,.0f}",
            f"{files.descriptors * million:,.0f}",
            f"{schemas.files:,.0f} files",
            f"{schemas.files * million:,.0f}",
        ],
        [
            "threads; listening connections",
            f"{files.threads:,.0f}",
            "1,000,000",
            "1",
            "1,000,000",
        ],
        [
            "bytes on disk, empty",
            f"{files.size / 1000:,.0f} KB",
            f"{files.size * million / 1e9:,.0f} GB",
            f"{schemas.size / 1000:,.0f} KB",
            f"{schemas.size * million / 1e9:,.0f} GB",
        ],
        [
            "of them system catalogue",
            "",
            "",
            f"{schemas.catalogue / 1000:,.0f} KB",
            f"{schemas.catalogue * million / 1e9:,.0f} GB",
        ],
        [
            "time to create one",
            milli(files.create),
            f"{files.create * million / 3600:,.0f} hours",
            milli(schemas.create),
            f"{schemas.create * million / 3600:,.0f} hours",
        ],
        [
            "time to open one",
            milli(files.open),
            f"{files.open * million / 3600:,.1f} hours",
            f"{milli(schemas.open_first)} (first), {milli(schemas.open_last)} (last)",
            f"{statistics.mean((schemas.open_first, schemas.open_last)) * million / 3600:,.0f} hours",
        ],
    ]
    head = ("", "an SQLite file", "a million", f"a schema (measured with {schemas.count:,})", "a million")
    return markdown(head, rows)


def _warning(found: Measurements) -> str:
    """What readers must know if the machine was busy."""
    if found.load[0] <= 1:
        return ""
    load = f"load average {found.load[0]:.0f}, {found.processors} processors"
    return (
        f"\n\n**Measured on a busy machine** ({load}): "
        "CPU times are too high, waits for the disk could not be told apart from waits for a processor and "
        "count as none, so these figures are rough. Run the command on a quiet machine."
    )


def tables(found: CapacityFigures, chosen: Assumptions, seconds: float = 5.0) -> dict[str, str]:
    """Return all tables of the page by name. `seconds`: simulated time of each load."""
    times = model.service_times(found.service)
    return {
        "carried": carried(times, chosen) + _warning(found.service),
        "service": service_table(found.service, times),
        "check": check_table(found.service, times, seconds),
        "queue": queue_table(times, chosen, seconds),
        "workspaces": workspace_table(found),
    }


def fill_page(text: str, found: dict[str, str]) -> str:
    """Replace the tables between the marks of the page."""
    for name, content in found.items():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, count = mark.subn(lambda match, content=content: f"{match[1]}{content}\n{match[2]}", text)  # type: ignore[misc]
        if count != 1:
            raise SystemExit(f"error: {PAGE} has no table '{name}'")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capacity", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements")
    parser.add_argument("--model", action="store_true", help=f"do not measure, but use {FILE.name}")
    parser.add_argument("--json", action="store_true", help="print the measurements, and write nothing")
    options = parser.parse_args()
    if options.model:
        figures = msgspec.json.decode(FILE.read_bytes(), type=CapacityFigures)
    else:
        sampling = QUICK if options.quick else FULL
        figures = CapacityFigures(
            service=measure_service_times(sampling),
            schemas=measure_schemas(sampling.schemas),
            files=measure_files(sampling.files),
        )
    encoded = msgspec.json.format(msgspec.json.encode(figures), indent=1).decode() + "\n"
    if options.json:
        print(encoded)
        return
    print_progress("Simulating ...")
    found = tables(figures, Assumptions())
    FILE.write_text(encoded)
    PAGE.write_text(fill_page(PAGE.read_text(), found))
    print("\n\n".join(found.values()))


if __name__ == "__main__":
    main()
