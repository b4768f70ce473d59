"""Writes the results of the last runs into the reference page: `python -m benchmarks.report`.

The page has a pair of comments for each benchmark. What is between them is replaced, if there are results:

    <!-- results of bench_stdio -->
    <!-- end of results -->
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tests.interop.environments import ROOT

from benchmarks.report_output import markdown_table
from benchmarks.results import BenchmarkRun, load_run

PAGE: Final = ROOT / "docs" / "reference" / "benchmarks.md"
#: The tables that the page shows; of the other benchmarks, it shows all.
_SHOWN: Final = {
    "bench_stdio": (
        "Start and memory, client: Python SDK 2.3.0",
        "Calls, client: TypeScript SDK 1.32.2",
    ),
    "bench_http": ("HTTP, aiohttp 3.14.3, without a session",),
    "bench_postgres": ("Durable creates on PostgreSQL",),
    "bench_store": ("Calls on SQLite by number of prompts, median in ms",),
}
_PLACES: Final = re.compile(
    r"(?P<start><!-- results of (?P<name>\w+) -->\n).*?(?P<end><!-- end of results -->)", re.DOTALL
)


def conditions(run: BenchmarkRun) -> str:
    """Return when and where a run was made, and under which load."""
    command = " ".join(["python", "-m", f"benchmarks.{run.benchmark}", *run.options])
    load = f"Load average {run.load_before:.1f} before, {run.load_after:.1f} after"
    return f"{run.date}, {run.machine}. {load}. `{command}` took {run.seconds:.0f} s."


def section(run: BenchmarkRun) -> str:
    """Return the results of a run as Markdown."""
    parts = [conditions(run)]
    shown = _SHOWN.get(run.benchmark)
    for found in run.tables:
        if shown is not None and found.table not in shown:
            continue
        parts += [f"**{found.table}**", markdown_table(found)]
    return "\n\n".join(parts)


def fill_page(text: str, last_run: Callable[[str], BenchmarkRun | None] = load_run) -> str:
    """Return the page with the results of the last runs."""

    def replace(place: re.Match[str]) -> str:
        run = last_run(place["name"])
        return place[0] if run is None else f"{place['start']}\n{section(run)}\n\n{place['end']}"

    return _PLACES.sub(replace, text)


def main() -> None:
    PAGE.write_text(fill_page(PAGE.read_text()))


if __name__ == "__main__":
    main()
