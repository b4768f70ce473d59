"""The report of the PostgreSQL benchmark: creates by number of connections, ratios and round trips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from benchmarks.load_result import LoadResult
from benchmarks.postgres_round_trips import RoundTrips
from benchmarks.report_output import Cell, ReportTable, ratio, spread

_ROUND_TRIPS_NOTE: Final = (
    "Medians. Not counted: that statements are prepared once for each connection, and what the connection "
    "that listens for changes reads after a commit."
)


class PostgresSamples(Struct):
    """The samples of one candidate on a number of connections, one for each round."""

    title: str
    connections: int
    loads: list[LoadResult] = field(default_factory=list)
    #: CPU seconds of PostgreSQL during the loads.
    database_cpu: list[float] = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        return [load.rate for load in self.loads]


def postgres_tables(
    about: str, samples: Sequence[PostgresSamples], round_trips: Sequence[RoundTrips]
) -> list[ReportTable]:
    return [
        ReportTable(
            "Durable creates on PostgreSQL",
            [
                "",
                "connections",
                "creates/s",
                "median, ms",
                "p99",
                "p99 / median",
                "server CPU per create",
                "PostgreSQL CPU per create",
                "client CPU",
            ],
            [_row(each) for each in samples],
            [about],
        ),
        _ratios(samples),
        ReportTable(
            "Round trips between a server and PostgreSQL, counted in its log",
            ["", "operation", "round trips", "statements"],
            [found.row() for found in round_trips],
            [_ROUND_TRIPS_NOTE],
        ),
    ]


def _row(samples: PostgresSamples) -> list[Cell]:
    loads = samples.loads
    is_floor = samples.title.startswith("floor")
    costs = [cpu / load.calls for cpu, load in zip(samples.database_cpu, loads, strict=True)]
    return [
        samples.title,
        str(samples.connections),
        spread(samples.rates),
        spread([load.median for load in loads], factor=1000).median,
        spread([load.p99 for load in loads], "ms", 1000),
        spread([load.p99 / load.median for load in loads]).median,
        # The load of a floor is PostgreSQL's own.
        "" if is_floor else spread([load.cost for load in loads], "µs", 1e6),
        spread(costs, "µs", 1e6),
        f"{spread([load.client for load in loads]).median:.0%}",
    ]


def _ratios(samples: Sequence[PostgresSamples]) -> ReportTable:
    """Compare every candidate with the first one, which is one server of this version."""
    counts = list(dict.fromkeys(each.connections for each in samples))
    by_title: dict[str, list[PostgresSamples]] = {}
    for each in samples:
        by_title.setdefault(each.title, []).append(each)
    own, *others = by_title
    cells: list[list[Cell]] = [
        [
            other,
            *(ratio(a.rates, b.rates) for a, b in zip(by_title[other], by_title[own], strict=True)),
        ]
        for other in others
    ]
    return ReportTable(
        f"Creates per second, compared with {own}: how many times as many",
        ["", *(f"{count} connection{'s' if count > 1 else ''}" for count in counts)],
        cells,
    )
