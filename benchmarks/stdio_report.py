"""The report of the stdio benchmark: a table for each client, and the ratios to each other server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from benchmarks.load_result import LoadResult
from benchmarks.report_output import Cell, ReportTable, Spread, ratio, spread

#: The row that the others are compared with, and the row of the same version that calls a trivial tool.
PRODUCT: Final = "Dittybag"
ENGINE: Final = "Dittybag, engine only"

_ADVANTAGE_NOTE: Final = "Above 1, Dittybag is better: less time, CPU time or memory, or more calls."


class StdioSamples(Struct):
    """The samples of one server with one client, one for each round."""

    client: str
    server: str
    #: Seconds from the start of the process to the response to `initialize` and to `tools/list`.
    initialize: list[float] = field(default_factory=list)
    tools: list[float] = field(default_factory=list)
    #: CPU seconds until the tools are listed.
    start_cpu: list[float] = field(default_factory=list)
    sequential: list[LoadResult] = field(default_factory=list)
    pipelined: list[LoadResult] = field(default_factory=list)
    #: Bytes of memory after the loads.
    memory: list[int] = field(default_factory=list)


class Measure(Struct, frozen=True):
    """One column: how to read its samples, and how to show them."""

    title: str
    read: Callable[[StdioSamples], Sequence[float]]
    unit: str = ""
    factor: float = 1
    #: Whether a higher value is better.
    greater: bool = False

    def show(self, samples: StdioSamples) -> Spread:
        return spread(self.read(samples), self.unit, self.factor)

    def advantage(self, own: StdioSamples, other: StdioSamples) -> float:
        """Return how many times better the first is: the median over the rounds."""
        both = self.read(own), self.read(other)
        return ratio(*both).median if self.greater else ratio(*reversed(both)).median


def start_measures() -> tuple[Measure, ...]:
    """Return the columns in which products are compared."""
    return (
        Measure("to `initialize`", lambda found: found.initialize, "ms", 1000),
        Measure("to `tools/list`", lambda found: found.tools, "ms", 1000),
        Measure("CPU of the start", lambda found: found.start_cpu, "ms", 1000),
        Measure("memory", lambda found: found.memory, "MB", 1e-6),
    )


def call_measures(pipelined: int) -> tuple[Measure, ...]:
    """Return the columns in which servers with the same tool are compared."""
    return (
        Measure(
            "calls/s, one at a time", lambda found: [load.rate for load in found.sequential], greater=True
        ),
        Measure(
            "server CPU per call",
            lambda found: [load.cost for load in found.sequential],
            "µs",
            1e6,
        ),
        Measure(
            f"calls/s, {pipelined} at a time",
            lambda found: [load.rate for load in found.pipelined],
            greater=True,
        ),
        Measure(
            f"server CPU per call, {pipelined} at a time",
            lambda found: [load.cost for load in found.pipelined],
            "µs",
            1e6,
        ),
    )


def stdio_tables(samples: Sequence[StdioSamples], pipelined: int) -> list[ReportTable]:
    """Return the tables of every client."""
    found: list[ReportTable] = []
    for client in dict.fromkeys(each.client for each in samples):
        rows = {each.server: each for each in samples if each.client == client}
        for what, columns, own in (
            ("start and memory", start_measures(), PRODUCT),
            ("calls", call_measures(pipelined), ENGINE),
        ):
            title = f"{what.capitalize()}, client: {client}"
            notes = [_client_limit(rows)] if own == ENGINE else []
            found.append(_figures(title, rows, columns, notes))
            found.append(_ratios(f"{title}: advantage of {own}", rows, columns, own))
    return found


def _figures(
    title: str, rows: dict[str, StdioSamples], columns: Sequence[Measure], notes: list[str]
) -> ReportTable:
    return ReportTable(
        title,
        ["server", *(column.title for column in columns)],
        [[server, *(column.show(found) for column in columns)] for server, found in rows.items()],
        notes,
    )


def _client_limit(rows: dict[str, StdioSamples]) -> str:
    """Say how busy the client was with the fastest server."""
    rates = {server: spread([load.rate for load in found.pipelined]).median for server, found in rows.items()}
    fastest = max(rates, key=rates.__getitem__)
    busy = spread([load.client for load in rows[fastest].pipelined]).median
    return f"The most calls a second that this client made: {rates[fastest]:,.0f} ({fastest}), {limit(busy)}."


def limit(share: float) -> str:
    """Say what share of one core a client used, and that it limits a figure if that is almost all of it.

    A smaller share proves nothing: on a busy machine, the client may have waited for a core.
    """
    used = f"with {share:.0%} of one core for the client"
    return f"{used}, which limits this figure" if share > 0.9 else used


def _ratios(title: str, rows: dict[str, StdioSamples], columns: Sequence[Measure], own: str) -> ReportTable:
    """Compare a row with the other servers, and both rows of Dittybag with those of the version before."""
    own_rows = {f"{PRODUCT} before": PRODUCT, f"{PRODUCT} before, engine only": ENGINE}
    cells: list[list[Cell]] = [
        [server, *(column.advantage(rows[own_rows.get(server, own)], found) for column in columns)]
        for server, found in rows.items()
        if server not in (PRODUCT, ENGINE)
    ]
    return ReportTable(title, ["over", *(column.title for column in columns)], cells, [_ADVANTAGE_NOTE])
