"""`dittybag search`: search prompts, libraries, resources and tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from dittybag.cli.error_output import wants_json
from dittybag.cli.output import clip_line, hint, limit_option, print_json, terminal_safe
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_count
from dittybag.domain.entities import ENTITY_TYPES, Kind, struct_data
from dittybag.domain.text import fold

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import LibrarySession

_KINDS: Final = ("prompt", "library", "resource", "task")


@click.command("search", StrictCommand)
@click.argument("query")
@click.option(
    "--kind", "kinds", type=click.Choice(_KINDS), multiple=True, help="Only results of this kind; repeatable."
)
@limit_option(10, 1000, "Maximum number of results of each kind.")
@in_project
def command(query: str, options: WorkspaceOptions, *, kinds: tuple[str, ...], limit: int) -> None:
    """Search prompts, libraries, resources and tasks, ignoring case.

    \b
    Examples:
      dittybag search "error handling"
      dittybag search deploy --kind task --kind resource
    """
    rows, totals = options.run_with_libraries(lambda session: _search(session, query, kinds or _KINDS, limit))
    if wants_json():
        print_json({"hits": rows, "totals": totals})
        return
    for row in rows:
        title = clip_line(row["title"]) if row["title"] != row["reference"] else ""
        click.secho(f"{row['kind']}  {terminal_safe(row['reference'])}", bold=True, nl=False)
        click.echo(f"  {title}" if title else "")
        if snippet := clip_line(row["snippet"], 200):
            click.echo(f"  {_highlight_match(snippet, query)}")
    shown = Counter(row["kind"] for row in rows)
    counted = ", ".join(
        ("" if shown[kind] == total else f"{shown[kind]:,} of ")
        + format_count(total, "library prompt" if kind == "library" else kind)
        for kind, total in totals.items()
        if total or kind in kinds
    )
    click.echo(counted or "No results", err=True)
    if shown.total() < sum(totals.values()):
        hint("to see more, raise --limit")


async def _search(
    session: LibrarySession, query: str, kinds: Sequence[str], limit: int
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the results as JSON data, and their number by kind."""
    stored: list[Kind] = [kind for kind in ENTITY_TYPES if kind in kinds]
    workspace, caller = session.session.workspace, session.session.caller
    hits, totals = await workspace.search.all_kinds(caller, query, stored, limit)
    rows = [struct_data(hit) for hit in hits]
    if "library" in kinds:
        totals["library"], found = await session.libraries.search(query, limit)
        rows += [
            {
                "kind": "library",
                "id": prompt.name,
                "reference": prompt.name,
                "title": prompt.title or prompt.name,
                "snippet": snippet,
            }
            for prompt, snippet in found
        ]
    return rows, totals


def _highlight_match(text: str, query: str) -> str:
    """Return the text with the first match highlighted."""
    at = fold(text).find(fold(query)) if query else -1
    if at < 0 or len(fold(text)) != len(text):
        return text
    end = at + len(query)
    return text[:at] + click.style(text[at:end], fg="yellow", bold=True) + text[end:]
