"""Generates docs/reference/clients.md: `python -m tests.clients.client_reference`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dittybag.clients.client_facts import CLIENT_FACTS, FEATURES, LIMITS, ClientFacts, Limit, Source
from tests.stdio_server_process import ROOT

REFERENCE: Path = ROOT / "docs" / "reference" / "clients.md"

#: The part of the page above this line is not generated.
MARKER = "<!-- Generated below this line by: python -m tests.clients.client_reference -->\n"


def render_page() -> str:
    """Return the reference page."""
    parts = [REFERENCE.read_text().partition(MARKER)[0] + MARKER, *_overview(), ""]
    for facts in CLIENT_FACTS.values():
        parts += [f"## {facts.title}", "", *_details(facts), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def _overview() -> Iterator[str]:
    yield "## Overview\n"
    yield f"| client | {' | '.join(FEATURES.values())} |"
    yield f"|---|{'---|' * len(FEATURES)}"
    for facts in CLIENT_FACTS.values():
        values = " | ".join(getattr(facts, name).value for name in FEATURES)
        yield f"| [{facts.title}](#{facts.title.lower().replace(' ', '-')}) | {values} |"


def _details(facts: ClientFacts) -> Iterator[str]:
    yield "| fact | value | source |"
    yield "|---|---|---|"
    for name, title in FEATURES.items():
        fact = getattr(facts, name)
        yield _row(title, fact.value, fact.note, fact.source)
    shown = facts.prompt_name
    pattern = f"`{shown.pattern}`" if shown.pattern else "unknown"
    yield _row("name of a prompt", f"{pattern}, arguments: {shown.arguments}", shown.note, shown.source)
    for field, title in LIMITS.items():
        limit = getattr(facts, field)
        yield _row(f"limit: {title}", _amount(limit), limit.note, limit.source)
    for file in facts.files:
        places = ", ".join(f"`{place}`" for place in (file.project, file.user) if place)
        syntax = file.argument_syntax.format(index="N", name="NAME")
        arguments = f"arguments as `{syntax}`" if syntax else "no arguments"
        yield _row(f"files: {file.kind}", f"{places}; {arguments}", file.note, file.source)


def _amount(limit: Limit) -> str:
    if limit.amount is None:
        return "unknown" if limit.source is None else "none"
    return f"{limit.amount:,} {limit.unit}"


def _row(title: str, value: str, note: str, source: Source | None) -> str:
    return f"| {title} | {value}{f': {note}' if note else ''} | {_link(source)} |"


def _link(source: Source | None) -> str:
    if source is None:
        return ""
    host = source.url.split("/")[2]
    as_of = f", text of {source.as_of}" if source.as_of else ""
    return f"[{host}]({source.url}), {source.looked_up}{as_of}"


if __name__ == "__main__":
    REFERENCE.write_text(render_page())
