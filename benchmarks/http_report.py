"""The report of the HTTP benchmark: ratios to other servers, and a table for each client and situation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from benchmarks.load_result import LoadResult
from benchmarks.report_output import Cell, ReportTable, number, ratio, spread
from benchmarks.stdio_report import PRODUCT

#: The server that answers with the least work, which shows the client's own maximum.
SOCKET_LOOP: Final = "floor: socket loop"
#: A client that uses more of one core than this limits what is measured.
BUSY: Final = 0.9

_RATIO_NOTE: Final = (
    "Each figure is the median of the ratios of the rounds; above 1, Dittybag is better. Dittybag reads a "
    "prompt, the others return an argument; with tokens and access log, they have the log only. Where the "
    "client limits the rate, only the CPU time shows the difference."
)


class HttpSamples(Struct):
    """The samples of one server with one client, one for each round."""

    client: str
    situation: str
    server: str
    connections: int
    loads: list[LoadResult] = field(default_factory=list)
    #: Bytes of memory after the loads.
    memory: list[int] = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        return [load.rate for load in self.loads]

    @property
    def costs(self) -> list[float]:
        return [load.cost for load in self.loads]

    @property
    def client_share(self) -> float:
        """The share of one core that the client used."""
        return spread([load.client for load in self.loads]).median


def http_tables(samples: Sequence[HttpSamples]) -> list[ReportTable]:
    """Return the ratios, and the figures of every client and situation."""
    groups: dict[tuple[str, str], list[HttpSamples]] = {}
    for each in samples:
        groups.setdefault((each.client, each.situation), []).append(each)
    figures = [_figures(f"HTTP, {client}, {situation}", rows) for (client, situation), rows in groups.items()]
    return [_ratios(groups), *figures]


def _by_server(rows: Sequence[HttpSamples]) -> dict[str, dict[int, HttpSamples]]:
    found: dict[str, dict[int, HttpSamples]] = {}
    for each in rows:
        found.setdefault(each.server, {})[each.connections] = each
    return found


def _ratios(groups: dict[tuple[str, str], list[HttpSamples]]) -> ReportTable:
    cells: list[list[Cell]] = []
    for (client, situation), rows in groups.items():
        servers = _by_server(rows)
        own = servers.pop(PRODUCT)
        for server, others in servers.items():
            rates = [number(ratio(own[count].rates, others[count].rates).median) for count in others]
            costs = [number(ratio(others[count].costs, own[count].costs).median) for count in others]
            cells.append([client, situation, server, " / ".join(rates), " / ".join(costs)])
    return ReportTable(
        "HTTP: advantage of Dittybag, at 1 and 16 requests at a time",
        ["client", "requests", "over", "requests/s", "server CPU per request"],
        cells,
        [_RATIO_NOTE],
    )


def _figures(title: str, rows: Sequence[HttpSamples]) -> ReportTable:
    cells: list[list[Cell]] = [
        [
            each.server,
            str(each.connections),
            spread(each.rates),
            spread([load.median for load in each.loads], "ms", 1000).median,
            spread([load.p99 for load in each.loads], "ms", 1000),
            spread(each.costs, "µs", 1e6),
            f"{each.client_share:.0%}",
            spread(each.memory, "MB", 1e-6).median,
        ]
        for servers in _by_server(rows).values()
        for each in servers.values()
    ]
    columns = ["server", "at a time", "requests/s", "median, ms", "p99", "server CPU per request"]
    return ReportTable(title, [*columns, "client CPU", "memory, MB"], cells, _client_limits(rows))


def _client_limits(rows: Sequence[HttpSamples]) -> list[str]:
    """Say what the client itself makes of a server that does the least, and whom it limits."""
    floors = [each for each in rows if each.server == SOCKET_LOOP]
    limited = [
        f"{each.server} at {each.connections}"
        for each in rows
        if each.client_share > BUSY and each.server != SOCKET_LOOP
    ]
    found = []
    if floors:
        most = ", ".join(f"{spread(each.rates).median:,.0f}/s at {each.connections}" for each in floors)
        found.append(f"The client's own maximum, with the socket loop: {most}.")
    if limited:
        found.append(f"The client uses more than {BUSY:.0%} of a core, and limits: {', '.join(limited)}.")
    return [" ".join(found)] if found else []
