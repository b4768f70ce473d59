"""What was measured over HTTP, as tables, and the bars that Dittybag has to clear."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from benchmarks.http_client import HANDSHAKE, STATELESS, Load
from benchmarks.report_output import table

#: How many connections are busy at once.
CONNECTIONS: Final = (1, 16, 64)

#: Ways not to come to the point, and the seconds after which such a connection must be gone: ten for the
#: head of a request, fourteen for its body, and some for a busy machine.
HALF_SENT: Final[Mapping[str, float]] = {
    "nothing": 12.0,
    "half a head": 12.0,
    "a head, byte by byte": 12.0,
    "a head, no body": 15.0,
    "half a body": 15.0,
}

#: By connections, how many times the requests of the SDK must be answered at least.
RATE_BARS: Final = {1: 3.0, 16: 8.0, 64: 8.0}
#: At most this much of what the SDK takes.
P99_BAR: Final = 0.25
MEMORY_BAR: Final = 0.6
#: Who the bars are about, and who is compared besides.
PEER: Final = "sdk"
PEERS: Final = {PEER: "the Python SDK", "sdk-tuned": "the tuned Python SDK"}


class Series(Struct, frozen=True):
    """One kind of question to one server."""

    title: str
    server: str
    #: By connections, one of each round.
    loads: dict[int, list[Load]] = field(default_factory=lambda: {count: [] for count in CONNECTIONS})

    def median(self, connections: int, read: Callable[[Load], float | None]) -> float | None:
        values = [value for load in self.loads[connections] if (value := read(load)) is not None]
        return statistics.median(values) if values else None

    def rate(self, connections: int) -> float:
        return statistics.median(load.rate for load in self.loads[connections])

    def p99(self, connections: int) -> float:
        return statistics.median(load.p99 for load in self.loads[connections])

    def spread(self, connections: int) -> float:
        """The highest rate over the lowest: what differs by less than this is not worth an opinion."""
        rates = [load.rate for load in self.loads[connections]]
        return max(rates) / min(rates)


class Report(Struct, frozen=True):
    """All of it."""

    series: list[Series]
    #: By server, the bytes of its processes after its loads, in each round.
    memory: dict[str, list[int]]
    #: By server and way, the seconds after which it hung up, if it did.
    half_sent: dict[str, dict[str, float | None]]
    #: How much else the machine had to do: the load average of a minute.
    load_before: float
    load_after: float

    def of(self, server: str, version: str = STATELESS) -> Series:
        """The series of a server, of one revision where it was asked in several."""
        found = [series for series in self.series if series.server == server]
        return next((series for series in found if series.title.endswith(version)), found[0])

    def memory_of(self, server: str) -> float:
        return statistics.median(self.memory[server])


class Bar(Struct, frozen=True):
    """One comparison with the SDK that has to come out in our favour."""

    title: str
    reached: float
    needed: float
    #: Whether the greater number is the better one.
    greater: bool
    met: bool


def bars(report: Report) -> list[Bar]:
    """The product, reading prompts, against the SDK that answers its argument."""
    found: list[Bar] = []
    for version in (STATELESS, HANDSHAKE):
        ours, theirs = report.of("dittybag", version), report.of(PEER, version)
        for connections in CONNECTIONS:
            title = f"{version}, {_connections(connections)}"
            rate, needed = ours.rate(connections) / theirs.rate(connections), RATE_BARS[connections]
            found.append(Bar(f"requests/s, {title}", rate, needed, greater=True, met=rate >= needed))
            p99 = ours.p99(connections) / theirs.p99(connections)
            found.append(Bar(f"p99, {title}", p99, P99_BAR, greater=False, met=p99 <= P99_BAR))
    memory = report.memory_of("dittybag") / report.memory_of(PEER)
    found.append(Bar("memory", memory, MEMORY_BAR, greater=False, met=memory <= MEMORY_BAR))
    return found


def tables(report: Report, machine: str) -> str:
    """The report for people."""
    compared = [series for series in report.series if series.server in ("dittybag", "ours", *PEERS)]
    parts = [
        f"HTTP on {machine}; load average {report.load_before:.2f} before, {report.load_after:.2f} after",
        *_loads(compared, report),
        *(part for peer in PEERS for part in _ratios(report, peer)),
        "HTTP servers under our endpoint, echo, 2026-07-28",
        _servers(report),
        "Seconds until a connection is closed on which no whole request comes",
        _half_sent(report),
        _about_the_client(report),
        "The bars: the product, reading prompts, against the SDK with a trivial tool",
        "\n".join(map(_verdict, bars(report))),
    ]
    return "\n\n".join(parts)


def _loads(compared: Sequence[Series], report: Report) -> list[str]:
    parts = []
    for connections in CONNECTIONS:
        rows = [["", "requests/s", "median", "p99", "CPU each", "server", "client", "spread", "memory"]]
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
                _megabytes(report.memory_of(series.server)),
            ]
            for series in compared
        ]
        parts += [f"{_connections(connections)}, kept busy".capitalize(), table(rows)]
    return parts


def _ratios(report: Report, peer: str) -> tuple[str, str]:
    rows = [_columns()]
    for server in ("dittybag", "ours"):
        for version in (STATELESS, HANDSHAKE):
            ours, theirs = report.of(server, version), report.of(peer, version)
            memory = report.memory_of(server) / report.memory_of(peer)
            rows.append(
                [
                    ours.title,
                    *(f"{ours.rate(count) / theirs.rate(count):.2f}x" for count in CONNECTIONS),
                    *(f"{ours.p99(count) / theirs.p99(count):.2f}x" for count in CONNECTIONS),
                    f"{memory:.2f}x",
                ]
            )
    return f"How many times that of {PEERS[peer]}", table(rows)


def _columns() -> list[str]:
    rates = (f"requests/s, {count}" for count in CONNECTIONS)
    return ["", *rates, *(f"p99, {count}" for count in CONNECTIONS), "memory"]


_SERVER_TITLES: Final = {
    "ours": "uvicorn, httptools and uvloop (ours)",
    "h11": "uvicorn, h11 and asyncio",
    "granian": "granian, one worker",
}


def _servers(report: Report) -> str:
    rows = [_columns()]
    for server, title in _SERVER_TITLES.items():
        series = report.of(server)
        rates = [f"{series.rate(count):,.0f}" for count in CONNECTIONS]
        worst = [_milliseconds(series.p99(count)) for count in CONNECTIONS]
        rows.append([title, *rates, *worst, _megabytes(report.memory_of(server))])
    return table(rows)


def _half_sent(report: Report) -> str:
    rows = [["", *HALF_SENT, ""]]
    for server, title in _SERVER_TITLES.items():
        found = report.half_sent[server]
        in_time = all(seconds is not None and seconds <= HALF_SENT[way] for way, seconds in found.items())
        shown = ["never" if (seconds := found[way]) is None else f"{seconds:.1f}" for way in HALF_SENT]
        rows.append([title, *shown, "in time" if in_time else "TOO LATE"])
    return table(rows)


def _about_the_client(report: Report) -> str:
    """Whether it was the servers that were measured."""
    floor = report.of("floor")
    fastest = {n: max(s.rate(n) for s in report.series if s.server != "floor") for n in CONNECTIONS}
    reached = "; ".join(
        f"{floor.rate(count):,.0f}/s at {_connections(count)}, {floor.rate(count) / fastest[count]:.1f} times"
        f" the fastest server"
        for count in CONNECTIONS
    )
    return f"What the client can do, with a server that reads nothing: {reached}."


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


def _verdict(bar: Bar) -> str:
    mark = "met   " if bar.met else "MISSED"
    wanted = f"at least {bar.needed:g}x" if bar.greater else f"at most {bar.needed:g}x"
    return f"{mark}  {bar.title}: {bar.reached:.2f}x ({wanted})"
