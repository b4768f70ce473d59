"""`dittybag search`: search prompts, libraries, resources and tasks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import click

from dittybag.cli.output import clip_line, json_option, print_json, terminal_safe
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_count
from dittybag.domain.text import fold

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import LibrarySession

_KINDS: Final = ("prompt", "library", "resource", "task")


@click.command("search", StrictCommand)
@click.argument("query")
@click.option(
    "--kind", "kinds", type=click.Choice(_KINDS), multiple=True, help="Only results of this kind; repeatable."
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Maximum number of results of each kind.",
)
@in_project
@json_option
def command(
    query: str, options: WorkspaceOptions, *, kinds: tuple[str, ...], limit: int, as_json: bool
) -> None:
    """Search prompts, libraries, resources and tasks, ignoring case.

    \b
    Examples:
      dittybag search "error handling"
      dittybag search deploy --kind task --kind resource
    """
    wanted = kinds or _KINDS

    async def work(library_session: LibrarySession) -> tuple[list[dict[str, Any]], dict[str, int]]:
        stored = [kind for kind in ("prompt", "resource", "task") if kind in wanted]
        session = library_session.session
        hits, totals = await session.workspace.search.all_kinds(session.caller, query, stored, limit)
        rows = [
            {
                "kind": hit.kind,
                "id": hit.id,
                "reference": hit.reference,
                "title": hit.title,
                "snippet": hit.snippet,
            }
            for hit in hits
        ]
        if "library" in wanted:
            totals["library"], found = await library_session.libraries.search(query, limit)
            rows += [
                {
                    "kind": "library",
                    "id": prompt.name,
                    "reference": prompt.name,
                    "title": prompt.title or prompt.name,
                    "snippet": text,
                }
                for prompt, text in found
            ]
        return rows, totals

    rows, totals = options.run_with_libraries(work)
    if as_json:
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
        ("" if shown[kind] == total else f"{shown[kind]:,} of ") + format_count(total, *_LABELS[kind])
        for kind, total in totals.items()
        if total or kind in kinds
    )
    click.echo(counted or "No results", err=True)
    if shown.total() < sum(totals.values()):
        click.echo("hint: to see more, raise --limit", err=True)


_LABELS: Final[dict[str, tuple[str, ...]]] = {
    "prompt": ("prompt",),
    "library": ("library prompt",),
    "resource": ("resource",),
    "task": ("task",),
}


def _highlight_match(text: str, query: str) -> str:
    """Return the text with the first match highlighted."""
    at = fold(text).find(fold(query)) if query else -1
    if at < 0 or len(fold(text)) != len(text):
        return text
    end = at + len(query)
    return text[:at] + click.style(text[at:end], fg="yellow", bold=True) + text[end:]
