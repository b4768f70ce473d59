"""The report of the HTTP benchmark: tables and performance targets."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from benchmarks.http_client import HANDSHAKE, STATELESS, LoadResult
from benchmarks.report_output import table

#: The numbers of concurrent connections.
CONNECTIONS: Final = (1, 16, 64)

#: Kinds of incomplete requests, and the seconds after which the connection must be closed: ten for the
#: headers, fourteen for the body, and a margin for a busy machine.
HALF_SENT_TIMEOUTS: Final[Mapping[str, float]] = {
    "no data": 12.0,
    "half of the headers": 12.0,
    "headers, byte by byte": 12.0,
    "headers, no body": 15.0,
    "half of the body": 15.0,
}

#: The minimum ratio of request rates, by number of connections.
RATE_TARGETS: Final = {1: 3.0, 16: 8.0, 64: 8.0}
#: The maximum ratios of p99 latency and memory.
P99_TARGET: Final = 0.25
MEMORY_TARGET: Final = 0.6
#: The server that the targets refer to, and all servers to compare with.
SDK: Final = "sdk"
SDKS: Final = {SDK: "the Python SDK", "sdk-tuned": "the tuned Python SDK"}


class HttpSeries(Struct, frozen=True):
    """One kind of request to one server."""

    title: str
    server: str
    #: The loads, one for each round, by number of connections.
    loads: dict[int, list[LoadResult]] = field(default_factory=lambda: {count: [] for count in CONNECTIONS})

    def median(self, connections: int, read: Callable[[LoadResult], float | None]) -> float | None:
        values = [value for load in self.loads[connections] if (value := read(load)) is not None]
        return statistics.median(values) if values else None

    def rate(self, connections: int) -> float:
        return statistics.median(load.rate for load in self.loads[connections])

    def p99(self, connections: int) -> float:
        return statistics.median(load.p99 for load in self.loads[connections])

    def spread(self, connections: int) -> float:
        """Return the ratio of the highest to the lowest rate. Smaller differences are not significant."""
        rates = [load.rate for load in self.loads[connections]]
        return max(rates) / min(rates)


class HttpReport(Struct, frozen=True):
    """All measurements."""

    series: list[HttpSeries]
    #: The bytes of memory of all processes after the loads, one for each round, by server.
    memory: dict[str, list[int]]
    #: The seconds until the connection was closed, or `None`, by server and kind of request.
    half_sent: dict[str, dict[str, float | None]]
    #: The machine's one-minute load average.
    load_before: float
    load_after: float

    def find_series(self, server: str, version: str = STATELESS) -> HttpSeries:
        """Return the series of a server, for one revision if there are several."""
        found = [series for series in self.series if series.server == server]
        return next((series for series in found if series.title.endswith(version)), found[0])

    def median_memory(self, server: str) -> float:
        return statistics.median(self.memory[server])


class HttpTarget(Struct, frozen=True):
    """One comparison with the SDK that has a target."""

    title: str
    reached: float
    needed: float
    #: Whether a higher value is better.
    greater: bool
    met: bool


def check_targets(report: HttpReport) -> list[HttpTarget]:
    """Compare Dittybag reading prompts with the SDK's echo tool."""
    found: list[HttpTarget] = []
    for version in (STATELESS, HANDSHAKE):
        ours, theirs = report.find_series("dittybag", version), report.find_series(SDK, version)
        for connections in CONNECTIONS:
            title = f"{version}, {_connections(connections)}"
            rate, needed = ours.rate(connections) / theirs.rate(connections), RATE_TARGETS[connections]
            found.append(HttpTarget(f"requests/s, {title}", rate, needed, greater=True, met=rate >= needed))
            p99 = ours.p99(connections) / theirs.p99(connections)
            found.append(HttpTarget(f"p99, {title}", p99, P99_TARGET, greater=False, met=p99 <= P99_TARGET))
    memory = report.median_memory("dittybag") / report.median_memory(SDK)
    found.append(HttpTarget("memory", memory, MEMORY_TARGET, greater=False, met=memory <= MEMORY_TARGET))
    return found


def tables(report: HttpReport, machine: str) -> str:
    """Return the report as text."""
    compared = [series for series in report.series if series.server in ("dittybag", "endpoint", *SDKS)]
    parts = [
        f"HTTP on {machine}; load average {report.load_before:.2f} before, {report.load_after:.2f} after",
        *_loads(compared, report),
        *(part for sdk in SDKS for part in _ratios(report, sdk)),
        "HTTP servers with Dittybag's endpoint, echo, 2026-07-28",
        _servers(report),
        "Seconds until the server closes a connection without a complete request",
        _half_sent(report),
        _client_limit(report),
        "Targets: Dittybag reading prompts, compared with the SDK's echo tool",
        "\n".join(map(_verdict, check_targets(report))),
    ]
    return "\n\n".join(parts)


def _loads(compared: Sequence[HttpSeries], report: HttpReport) -> list[str]:
    parts = []
    for connections in CONNECTIONS:
        rows = [
            ["", "requests/s", "median", "p99", "CPU/request", "server CPU", "client CPU", "spread", "memory"]
        ]
        rows += [
            [
                series.title,
                f"{series.rate(connections):,.0f}",
                _milliseconds(series.median(connections, lambda load: load.median)),
                _milliseconds(series.p99(connections)),
                _microseconds(series.median(connections, lambda load: load.cost)),
                _share(series.median(connections, lambda load: load.server)),
                _share(series.median(connections, lambda load: load.client)),
                f"{series.spread(connections):.2f}x",
                _megabytes(report.median_memory(series.server)),
            ]
            for series in compared
        ]
        parts += [_connections(connections), table(rows)]
    return parts


def _ratios(report: HttpReport, sdk: str) -> tuple[str, str]:
    rows = [_columns()]
    for server in ("dittybag", "endpoint"):
        for version in (STATELESS, HANDSHAKE):
            ours, theirs = report.find_series(server, version), report.find_series(sdk, version)
            memory = report.median_memory(server) / report.median_memory(sdk)
            rows.append(
                [
                    ours.title,
                    *(f"{ours.rate(count) / theirs.rate(count):.2f}x" for count in CONNECTIONS),
                    *(f"{ours.p99(count) / theirs.p99(count):.2f}x" for count in CONNECTIONS),
                    f"{memory:.2f}x",
                ]
            )
    return f"Ratio to {SDKS[sdk]}", table(rows)


def _columns() -> list[str]:
    rates = (f"requests/s, {count}" for count in CONNECTIONS)
    return ["", *rates, *(f"p99, {count}" for count in CONNECTIONS), "memory"]


_SERVER_TITLES: Final = {
    "endpoint": "uvicorn, httptools and uvloop (Dittybag)",
    "h11": "uvicorn, h11 and asyncio",
    "granian": "granian, one worker",
}


def _servers(report: HttpReport) -> str:
    rows = [_columns()]
    for server, title in _SERVER_TITLES.items():
        series = report.find_series(server)
        rates = [f"{series.rate(count):,.0f}" for count in CONNECTIONS]
        worst = [_milliseconds(series.p99(count)) for count in CONNECTIONS]
        rows.append([title, *rates, *worst, _megabytes(report.median_memory(server))])
    return table(rows)


def _half_sent(report: HttpReport) -> str:
    rows = [["", *HALF_SENT_TIMEOUTS, ""]]
    for server, title in _SERVER_TITLES.items():
        found = report.half_sent[server]
        in_time = all(
            seconds is not None and seconds <= HALF_SENT_TIMEOUTS[kind] for kind, seconds in found.items()
        )
        shown = [
            "never" if (seconds := found[kind]) is None else f"{seconds:.1f}" for kind in HALF_SENT_TIMEOUTS
        ]
        rows.append([title, *shown, "met" if in_time else "MISSED"])
    return table(rows)


def _client_limit(report: HttpReport) -> str:
    """Return the client's maximum rates, which show that the client does not limit the servers."""
    baseline = report.find_series("baseline")
    fastest = {n: max(s.rate(n) for s in report.series if s.server != "baseline") for n in CONNECTIONS}
    reached = "; ".join(
        f"{baseline.rate(count):,.0f}/s at {_connections(count)}, "
        f"{baseline.rate(count) / fastest[count]:.1f} times the fastest server"
        for count in CONNECTIONS
    )
    return f"Client limit, with a server that does not parse requests: {reached}."


def _connections(count: int) -> str:
    return "1 connection" if count == 1 else f"{count} connections"


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value * 1000:.2f} ms"


def _microseconds(value: float | None) -> str:
    return "" if value is None else f"{value * 1e6:.0f} µs"


def _megabytes(value: float) -> str:
    return f"{value / 1e6:.1f} MB"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _verdict(target: HttpTarget) -> str:
    mark = "met   " if target.met else "MISSED"
    required = f"at least {target.needed:g}x" if target.greater else f"at most {target.needed:g}x"
    return f"{mark}  {target.title}: {target.reached:.2f}x ({required})"
