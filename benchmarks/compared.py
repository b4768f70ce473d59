"""Writes the tables of the page about other products: `python -m benchmarks.compared`.

The features come from `product_facts.py`, the figures from the kept samples of `bench_products`.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from tests.interop.environments import ROOT

from benchmarks.bench_products import SAMPLES, ProductRun, tables
from benchmarks.product_facts import FEATURES, SOURCES, Fact, Source
from benchmarks.report_output import ReportTable, markdown_table

PAGE: Final = ROOT / "docs" / "compared.md"
#: The load average from which times are not those of the products alone.
_BUSY: Final = 2.0


def load_samples() -> ProductRun:
    """Return the kept samples."""
    return msgspec.json.decode(SAMPLES.read_bytes(), type=ProductRun)


def features() -> str:
    """Return the table of features. Every fact links to the page that says it."""
    rows = [
        [
            feature.title,
            *(_linked(source, fact) for source, fact in zip(SOURCES, feature.facts, strict=True)),
        ]
        for feature in FEATURES
    ]
    table = ReportTable("", ["", *(source.title for source in SOURCES)], [list(row) for row in rows])
    return markdown_table(table)


def _linked(source: Source, fact: Fact) -> str:
    return f"[{fact.text}]({source.link(fact.page)})"


def sources() -> str:
    """Return when the sources were current."""
    return ", ".join(f"{source.title} {source.date}" for source in SOURCES if source.date)


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
    """Replace what is between the marks of the page."""
    contents = {
        "features": features(),
        "dates of the sources": sources(),
        "results of bench_products": figures(run),
    }
    for name, content in contents.items():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name.split()[0]} -->)", re.DOTALL)
        text, count = mark.subn(
            lambda found, content=content: f"{found[1]}\n{content}\n\n{found[2]}",  # type: ignore[misc]
            text,
        )
        if count != 1:
            raise SystemExit(f"error: {PAGE} has no place for the {name}")
    return text


def main() -> None:
    PAGE.write_text(fill_page(PAGE.read_text(), load_samples()))


if __name__ == "__main__":
    main()
