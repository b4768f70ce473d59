"""What the benchmark of the store found: tables for people, JSON for machines."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from benchmarks.report_output import table
from benchmarks.store_calls import AT_ONCE, Call
from benchmarks.store_creates import BARE, SERVICE, SERVICE_AT_ONCE, STDIO, STDIO_AT_ONCE, Creates


class Starts(Struct):
    """Seconds from the start of the process to two answers."""

    initialize: list[float] = field(default_factory=list)
    first_page: list[float] = field(default_factory=list)


class Ratio(Struct, frozen=True):
    """A comparison of two things that were measured in turns."""

    title: str
    reached: float
    bar: float
    #: Whether it has to be at least the bar, and not at most.
    least: bool = False

    @property
    def met(self) -> bool:
        return self.reached >= self.bar if self.least else self.reached <= self.bar


class Report(Struct, frozen=True):
    """Everything that was measured."""

    machine: str
    items: int
    megabytes: float
    calls: list[Call]
    memory: int
    creates: dict[str, Creates]
    starts: dict[str, Starts]

    def ratios(self) -> list[Ratio]:
        """The comparisons, with their bars."""
        ways, empty, full = self.creates, self.starts["empty"], self.starts["full"]
        bare, in_process, on_stdio = (ways[name].samples for name in (BARE, SERVICE, STDIO))
        return [
            Ratio("create in process, over the floor", _over(in_process, bare), 2),
            Ratio("... on average", statistics.mean(in_process) / statistics.mean(bare), 2),
            Ratio("create on stdio, over the floor", _over(on_stdio, bare), 2),
            Ratio("... on average", statistics.mean(on_stdio) / statistics.mean(bare), 2),
            Ratio(
                f"{AT_ONCE} at once in process, over the rate of one by one",
                _over(in_process, ways[SERVICE_AT_ONCE].samples),
                2,
                least=True,
            ),
            Ratio(
                f"{AT_ONCE} at once on stdio, over the rate of one by one",
                _over(on_stdio, ways[STDIO_AT_ONCE].samples),
                2,
                least=True,
            ),
            Ratio("start-up, full over empty", _over(full.initialize, empty.initialize), 1.2),
            Ratio("... to a page of prompts", _over(full.first_page, empty.first_page), 1.2),
        ]


def _over(samples: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(samples) / statistics.median(others)


def _high(samples: Sequence[float]) -> float:
    """What 95 of 100 samples stay below."""
    return sorted(samples)[int(len(samples) * 0.95)]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def _call_row(call: Call) -> list[str]:
    median = statistics.median(call.samples)
    return [
        call.title,
        "" if call.found is None else f"{call.found:,}",
        _milliseconds(call.samples[0]),
        _milliseconds(median),
        _milliseconds(_high(call.samples)),
        "" if call.bar is None else f"{call.bar * 1000:g} ms",
        "" if call.bar is None else "ok" if median <= call.bar else "OVER",
    ]


def _create_row(way: Creates) -> list[str]:
    average = statistics.fmean(way.samples)
    return [
        way.title,
        _milliseconds(statistics.median(way.samples)),
        _milliseconds(_high(way.samples)),
        _milliseconds(average),
        f"{1 / average:,.0f}/s",
    ]


def _start_row(name: str, starts: Starts) -> list[str]:
    return [
        f"{name} store",
        _milliseconds(statistics.median(starts.initialize)),
        _milliseconds(statistics.median(starts.first_page)),
    ]


def _ratio_row(ratio: Ratio) -> list[str]:
    wanted, missed = ("at least", "UNDER") if ratio.least else ("at most", "OVER")
    return [ratio.title, f"{ratio.reached:.2f}x", f"{wanted} {ratio.bar:g}x", "ok" if ratio.met else missed]


def tables(report: Report) -> str:
    """The report for people."""
    items = f"{report.items:,}"
    return "\n\n".join(
        [
            f"{items} prompts and {items} tasks in {report.megabytes:.0f} MB, on {report.machine}",
            "Calls on stdio",
            table(
                [
                    ["", "found", "first", "median", "95%", "bar", ""],
                    *(_call_row(call) for call in report.calls),
                ]
            ),
            f"The server took {report.memory / 1e6:.1f} MB of memory after them.",
            "Durable creates, per prompt",
            table(
                [
                    ["", "median", "95%", "average", "rate on average"],
                    *(_create_row(way) for way in report.creates.values()),
                ]
            ),
            "From the start of the process to answers",
            table(
                [
                    ["", "initialize", "prompts/list"],
                    *(_start_row(name, starts) for name, starts in report.starts.items()),
                ]
            ),
            "Ratios",
            table([["", "reached", "bar", ""], *(_ratio_row(ratio) for ratio in report.ratios())]),
        ]
    )


def as_json(report: Report) -> Mapping[str, Any]:
    """All samples, in seconds, and the ratios."""
    return {
        "machine": report.machine,
        "items": report.items,
        "megabytes": report.megabytes,
        "memory": report.memory,
        "calls": [
            {
                "call": call.title,
                "found": call.found,
                "bar": call.bar,
                "median": statistics.median(call.samples),
                "samples": call.samples,
            }
            for call in report.calls
        ],
        "creates": {name: way.samples for name, way in report.creates.items()},
        "starts": report.starts,
        "ratios": [
            {"ratio": ratio.title, "reached": ratio.reached, "bar": ratio.bar, "met": ratio.met}
            for ratio in report.ratios()
        ],
    }
