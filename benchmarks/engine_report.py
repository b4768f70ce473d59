"""The report of the engine benchmark: tables and performance targets."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from benchmarks.report_output import table

DITTYBAG: Final = "dittybag"


class EngineSamples(Struct):
    """The samples of one engine."""

    title: str
    #: Seconds from the start of the process to the response to `initialize`.
    first_response: list[float] = field(default_factory=list)
    #: Bytes of memory after the handshake and `tools/list`.
    memory_idle: list[int] = field(default_factory=list)
    #: Bytes of memory after a load that is the same for all engines.
    memory_loaded: list[int] = field(default_factory=list)
    #: Calls per second, one at a time.
    sequential: list[float] = field(default_factory=list)
    #: Calls per second with the pipe kept full.
    pipelined: list[float] = field(default_factory=list)


class Metric(Struct, frozen=True):
    """One column of the tables."""

    name: str
    title: str
    read: Callable[[EngineSamples], Sequence[float]]
    show: Callable[[float], str]
    #: Whether a higher value is better.
    greater: bool = False

    def median(self, figures: EngineSamples) -> float:
        return statistics.median(self.read(figures))

    def spread(self, figures: EngineSamples) -> float:
        """Return the ratio of the highest to the lowest sample. Smaller differences are not significant."""
        samples = self.read(figures)
        return max(samples) / min(samples)

    def advantage(self, dittybag: EngineSamples, other: EngineSamples) -> float:
        """Return how many times better Dittybag is."""
        own, compared = self.median(dittybag), self.median(other)
        return own / compared if self.greater else compared / own


def _milliseconds(value: float) -> str:
    return f"{value * 1000:.1f} ms"


def _megabytes(value: float) -> str:
    return f"{value / 1e6:.1f} MB"


def _per_second(value: float) -> str:
    return f"{value:,.0f}/s"


METRICS: Final = (
    Metric("first_response", "first response", lambda figures: figures.first_response, _milliseconds),
    Metric("memory_idle", "idle memory", lambda figures: figures.memory_idle, _megabytes),
    Metric("memory_loaded", "loaded memory", lambda figures: figures.memory_loaded, _megabytes),
    Metric("sequential", "sequential", lambda figures: figures.sequential, _per_second, greater=True),
    Metric("pipelined", "pipelined", lambda figures: figures.pipelined, _per_second, greater=True),
)

#: The minimum advantage over each engine. A target of 1 means: better than the engine.
TARGETS: Final[Mapping[str, Mapping[str, float]]] = {
    "python-sdk": {
        "first_response": 6,
        "memory_idle": 3,
        "memory_loaded": 3,
        "sequential": 5,
        "pipelined": 20,
    },
    "typescript-1": {metric.name: 1 for metric in METRICS},
    "typescript-2": {metric.name: 1 for metric in METRICS},
}


class EngineTarget(Struct, frozen=True):
    """One comparison with a target."""

    engine: str
    metric: str
    needed: float
    reached: float
    met: bool


def check_targets(figures: Mapping[str, EngineSamples]) -> list[EngineTarget]:
    """Return the targets for which both engines were measured."""
    found: list[EngineTarget] = []
    for engine, needs in TARGETS.items():
        if DITTYBAG not in figures or engine not in figures:
            continue
        for metric in METRICS:
            needed = needs[metric.name]
            reached = metric.advantage(figures[DITTYBAG], figures[engine])
            met = reached > needed if needed == 1 else reached >= needed
            found.append(EngineTarget(engine, metric.name, needed, reached, met))
    return found


def medians(figures: EngineSamples) -> dict[str, float]:
    """Return the median of every metric."""
    return {metric.name: metric.median(figures) for metric in METRICS}


def tables(figures: Mapping[str, EngineSamples], machine: str) -> str:
    """Return the report as text."""
    head = ["", *(metric.title for metric in METRICS)]
    absolute = [
        [found.title, *(metric.show(metric.median(found)) for metric in METRICS)]
        for found in figures.values()
    ]
    parts = [f"Medians on {machine}", table([head, *absolute])]
    dittybag = figures.get(DITTYBAG)
    if dittybag and len(figures) > 1:
        ratios = [
            [found.title, *(f"{metric.advantage(dittybag, found):.2f}x" for metric in METRICS)]
            for name, found in figures.items()
            if name != DITTYBAG
        ]
        parts += [f"How many times better {dittybag.title} is", table([head, *ratios])]
    spreads = [
        [found.title, *(f"{metric.spread(found):.2f}x" for metric in METRICS)] for found in figures.values()
    ]
    parts += ["Spread: highest sample / lowest sample", table([head, *spreads])]
    if verdicts := [_verdict(target, figures) for target in check_targets(figures)]:
        parts += ["Targets", "\n".join(verdicts)]
    return "\n\n".join(parts)


def _verdict(target: EngineTarget, figures: Mapping[str, EngineSamples]) -> str:
    title = next(metric.title for metric in METRICS if metric.name == target.metric)
    required = "more than 1x" if target.needed == 1 else f"at least {target.needed:g}x"
    mark = "met   " if target.met else "MISSED"
    return f"{mark}  {title} against {figures[target.engine].title}: {target.reached:.2f}x ({required})"
