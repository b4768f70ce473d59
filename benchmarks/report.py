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
    for found in run.tables:
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
