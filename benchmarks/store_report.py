"""The report of the store benchmark."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from msgspec import Struct, field

from benchmarks.report_output import ReportTable, rows_table
from benchmarks.store_calls import CONCURRENT, TimedCall
from benchmarks.store_creates import (
    BARE,
    INDEXED,
    SERVICE,
    SERVICE_CONCURRENT,
    STDIO,
    STDIO_CONCURRENT,
    CreateMethod,
)


class Starts(Struct):
    """Seconds from the start of the process to two responses."""

    initialize: list[float] = field(default_factory=list)
    first_page: list[float] = field(default_factory=list)


class Ratio(Struct, frozen=True):
    """A ratio of two measurements, with its target."""

    title: str
    reached: float
    target: float
    #: Whether the target is a minimum; otherwise it is a maximum.
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.reached >= self.target if self.at_least else self.reached <= self.target


class StoreReport(Struct, frozen=True):
    """All measurements."""

    items: int
    megabytes: float
    calls: list[TimedCall]
    memory: int
    creates: dict[str, CreateMethod]
    starts: dict[str, Starts]

    def ratios(self) -> list[Ratio]:
        """Return the ratios with their targets."""
        methods, empty, full = self.creates, self.starts["empty"], self.starts["full"]
        bare, in_process, on_stdio = (methods[name].samples for name in (BARE, SERVICE, STDIO))
        return [
            Ratio("create in process / baseline", _ratio(in_process, bare), 2),
            Ratio("... mean", statistics.mean(in_process) / statistics.mean(bare), 2),
            Ratio("create in process / all indexes", _ratio(in_process, methods[INDEXED].samples), 1.5),
            Ratio("create on stdio / baseline", _ratio(on_stdio, bare), 2),
            Ratio("... mean", statistics.mean(on_stdio) / statistics.mean(bare), 2),
            Ratio(
                f"rate of {CONCURRENT} concurrent / sequential, in process",
                _ratio(in_process, methods[SERVICE_CONCURRENT].samples),
                2,
                at_least=True,
            ),
            Ratio(
                f"rate of {CONCURRENT} pipelined / sequential, on stdio",
                _ratio(on_stdio, methods[STDIO_CONCURRENT].samples),
                2,
                at_least=True,
            ),
            Ratio("start-up, full / empty store", _ratio(full.initialize, empty.initialize), 1.2),
            Ratio("... to the first page of prompts", _ratio(full.first_page, empty.first_page), 1.2),
        ]


def _ratio(samples: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(samples) / statistics.median(others)


def _p95(samples: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return sorted(samples)[int(len(samples) * 0.95)]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def _call_row(call: TimedCall) -> list[str]:
    median = statistics.median(call.samples)
    return [
        call.title,
        "" if call.found is None else f"{call.found:,}",
        _milliseconds(call.samples[0]),
        _milliseconds(median),
        _milliseconds(_p95(call.samples)),
        "" if call.target is None else f"{call.target * 1000:g} ms",
        "" if call.target is None else "met" if median <= call.target else "MISSED",
    ]


def _create_row(method: CreateMethod) -> list[str]:
    mean = statistics.fmean(method.samples)
    return [
        method.title,
        _milliseconds(statistics.median(method.samples)),
        _milliseconds(_p95(method.samples)),
        _milliseconds(mean),
        f"{1 / mean:,.0f}/s",
    ]


def _start_row(name: str, starts: Starts) -> list[str]:
    return [
        f"{name} store",
        _milliseconds(statistics.median(starts.initialize)),
        _milliseconds(statistics.median(starts.first_page)),
    ]


def _ratio_row(ratio: Ratio) -> list[str]:
    bound = "at least" if ratio.at_least else "at most"
    return [
        ratio.title,
        f"{ratio.reached:.2f}x",
        f"{bound} {ratio.target:g}x",
        "met" if ratio.met else "MISSED",
    ]


def tables(report: StoreReport) -> list[ReportTable]:
    """Return the report as tables."""
    items = f"{report.items:,}"
    return [
        rows_table(
            f"Calls on stdio with {items} prompts and {items} tasks in {report.megabytes:.0f} MB",
            [["", "found", "first", "median", "p95", "target", ""], *map(_call_row, report.calls)],
            f"Server memory after these calls: {report.memory / 1e6:.1f} MB.",
        ),
        rows_table(
            "Durable creates, per prompt",
            [["", "median", "p95", "mean", "mean rate"], *map(_create_row, report.creates.values())],
        ),
        rows_table(
            "From process start to the response",
            [["", "initialize", "prompts/list"], *(_start_row(*each) for each in report.starts.items())],
        ),
        rows_table("Ratios", [["", "ratio", "target", ""], *map(_ratio_row, report.ratios())]),
    ]
