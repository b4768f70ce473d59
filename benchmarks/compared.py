"""Writes the measured tables of the page about other products: `python -m benchmarks.compared`."""

from __future__ import annotations

import re
from typing import Final

import msgspec
from tests.interop.environments import ROOT

from benchmarks.bench_products import SAMPLES, ProductRun, tables
from benchmarks.report_output import markdown_table

PAGE: Final = ROOT / "docs" / "compared.md"
#: The load average from which times are not those of the products alone.
_BUSY: Final = 2.0


def load_samples() -> ProductRun:
    """Return the kept samples."""
    return msgspec.json.decode(SAMPLES.read_bytes(), type=ProductRun)


def figures(run: ProductRun) -> str:
    """Return the conditions and the tables of a run."""
    load = f"Load average {run.load_before:.1f} before, {run.load_after:.1f} after"
    parts = [f"{run.date}, {run.machine}. {load}. The run took {run.seconds:.0f} s."]
    if max(run.load_before, run.load_after) > _BUSY:
        parts.append(
            "**Measured on a busy machine**: times include waiting for a core and changed during the run, so"
            " the first and the last creates do not compare. CPU times, memory and counts are less affected."
        )
    for found in tables(run.products):
        parts += [f"**{found.table}**", markdown_table(found)]
    return "\n\n".join(parts)


def fill_page(text: str, run: ProductRun) -> str:
    """Replace the tables of the page."""
    mark = re.compile(r"(<!-- results of bench_products -->\n).*?(<!-- end of results -->)", re.DOTALL)
    text, count = mark.subn(lambda found: f"{found[1]}\n{figures(run)}\n\n{found[2]}", text)
    if count != 1:
        raise SystemExit(f"error: {PAGE} has no place for the results")
    return text


def main() -> None:
    PAGE.write_text(fill_page(PAGE.read_text(), load_samples()))


if __name__ == "__main__":
    main()
