"""What was measured, as tables, and the bars that our engine has to clear."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from benchmarks.report_output import table

OURS: Final = "ours"


class Figures(Struct):
    """The samples of one engine."""

    title: str
    #: Seconds from the start of the process to the answer to `initialize`.
    first_answer: list[float] = field(default_factory=list)
    #: Bytes after the handshake and `tools/list`.
    memory_idle: list[int] = field(default_factory=list)
    #: Bytes after a load that is the same for all engines.
    memory_loaded: list[int] = field(default_factory=list)
    #: Calls per second, one at a time.
    sequential: list[float] = field(default_factory=list)
    #: Calls per second with the pipe kept full.
    pipelined: list[float] = field(default_factory=list)


class Measure(Struct, frozen=True):
    """One column of the tables."""

    name: str
    title: str
    read: Callable[[Figures], Sequence[float]]
    show: Callable[[float], str]
    #: Whether the greater number is the better one.
    greater: bool = False

    def median(self, figures: Figures) -> float:
        return statistics.median(self.read(figures))

    def spread(self, figures: Figures) -> float:
        """The highest sample over the lowest: what differs by less than this is not worth an opinion."""
        samples = self.read(figures)
        return max(samples) / min(samples)

    def advantage(self, ours: Figures, other: Figures) -> float:
        """How many times better ours is."""
        mine, theirs = self.median(ours), self.median(other)
        return mine / theirs if self.greater else theirs / mine


def _milliseconds(value: float) -> str:
    return f"{value * 1000:.1f} ms"


def _megabytes(value: float) -> str:
    return f"{value / 1e6:.1f} MB"


def _per_second(value: float) -> str:
    return f"{value:,.0f}/s"


MEASURES: Final = (
    Measure("first_answer", "first answer", lambda figures: figures.first_answer, _milliseconds),
    Measure("memory_idle", "memory idle", lambda figures: figures.memory_idle, _megabytes),
    Measure("memory_loaded", "loaded", lambda figures: figures.memory_loaded, _megabytes),
    Measure("sequential", "sequential", lambda figures: figures.sequential, _per_second, greater=True),
    Measure("pipelined", "pipelined", lambda figures: figures.pipelined, _per_second, greater=True),
)

#: How many times better we have to be than whom: at least as much, or ahead at all where it is 1.
BARS: Final[Mapping[str, Mapping[str, float]]] = {
    "python-sdk": {
        "first_answer": 6,
        "memory_idle": 3,
        "memory_loaded": 3,
        "sequential": 5,
        "pipelined": 20,
    },
    "typescript-1": {measure.name: 1 for measure in MEASURES},
    "typescript-2": {measure.name: 1 for measure in MEASURES},
}


class Bar(Struct, frozen=True):
    """One comparison that has to come out in our favour."""

    engine: str
    measure: str
    needed: float
    reached: float
    met: bool


def bars(figures: Mapping[str, Figures]) -> list[Bar]:
    """Every bar for which both sides were measured."""
    found: list[Bar] = []
    for engine, needs in BARS.items():
        if OURS not in figures or engine not in figures:
            continue
        for measure in MEASURES:
            needed = needs[measure.name]
            reached = measure.advantage(figures[OURS], figures[engine])
            met = reached > needed if needed == 1 else reached >= needed
            found.append(Bar(engine, measure.name, needed, reached, met))
    return found


def medians(figures: Figures) -> dict[str, float]:
    """The median of every measure."""
    return {measure.name: measure.median(figures) for measure in MEASURES}


def tables(figures: Mapping[str, Figures], machine: str) -> str:
    """The report for people."""
    head = ["", *(measure.title for measure in MEASURES)]
    absolute = [
        [found.title, *(measure.show(measure.median(found)) for measure in MEASURES)]
        for found in figures.values()
    ]
    parts = [f"Medians on {machine}", table([head, *absolute])]
    ours = figures.get(OURS)
    if ours and len(figures) > 1:
        ratios = [
            [found.title, *(f"{measure.advantage(ours, found):.2f}x" for measure in MEASURES)]
            for name, found in figures.items()
            if name != OURS
        ]
        parts += [f"How many times better {ours.title} is", table([head, *ratios])]
    spreads = [
        [found.title, *(f"{measure.spread(found):.2f}x" for measure in MEASURES)]
        for found in figures.values()
    ]
    parts += ["Spread: the highest sample over the lowest", table([head, *spreads])]
    if verdicts := [_verdict(bar, figures) for bar in bars(figures)]:
        parts += ["The bars", "\n".join(verdicts)]
    return "\n\n".join(parts)


def _verdict(bar: Bar, figures: Mapping[str, Figures]) -> str:
    title = next(measure.title for measure in MEASURES if measure.name == bar.measure)
    wanted = "ahead" if bar.needed == 1 else f"at least {bar.needed:g}x"
    mark = "met   " if bar.met else "MISSED"
    return f"{mark}  {title} against {figures[bar.engine].title}: {bar.reached:.2f}x ({wanted})"
