"""`dittybag search`: search prompts, libraries, resources and tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from dittybag.cli.error_output import wants_json
from dittybag.cli.output import clip_line, format_time, hint, limit_option, print_json, terminal_safe
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_count
from dittybag.domain.entities import struct_data
from dittybag.domain.times import iso

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import LibrarySession
    from dittybag.domain.ranked_search import ParsedQuery
    from dittybag.services.search_service import RankedHit, RankedKind, RankedPage

#: What people call each kind.
_KINDS: Final[dict[str, RankedKind]] = {
    "prompt": "prompt",
    "library": "library_prompt",
    "resource": "resource",
    "task": "task",
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}
_PASSAGE_LENGTH: Final = 220


@click.command("search", StrictCommand)
@click.argument("query")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(list(_KINDS)),
    multiple=True,
    help="Only results of this kind; repeatable.",
)
@limit_option(10, 1000)
@in_project
def command(query: str, options: WorkspaceOptions, *, kinds: tuple[str, ...], limit: int) -> None:
    """Search prompts, libraries, resources and tasks. The best results come first.

    A result has some of the words, in any order and form: deploy also finds deployment. "Quoted text" must
    occur exactly. Case, accents and width do not matter.

    \b
    Examples:
      dittybag search "handling errors"
      dittybag search '"error handling" python'
      dittybag search deploy --kind task --kind resource
    """
    page = options.run_with_libraries(lambda session: _search(session, query, kinds, limit))
    if wants_json():
        hits = [{**struct_data(hit), "at": None if hit.at is None else iso(hit.at)} for hit in page.hits]
        print_json({"hits": hits, "total": page.total, "suggestion": page.suggestion})
        return
    from dittybag.domain.ranked_search import parse_query

    parsed = parse_query(query)
    for hit in page.hits:
        _print_hit(hit, parsed)
    _print_summary(page)


async def _search(session: LibrarySession, query: str, kinds: tuple[str, ...], limit: int) -> RankedPage:
    from dittybag.services.search_service import RankedQuery

    wanted = RankedQuery(query, tuple(_KINDS[kind] for kind in kinds), limit)
    return await session.session.workspace.search.ranked(session.session.caller, wanted)


def _print_hit(hit: RankedHit, parsed: ParsedQuery) -> None:
    # What other commands take: the number of a task.
    reference = str(hit.id) if hit.kind == "task" else hit.ref
    title = clip_line(hit.title) if hit.title != hit.ref else ""
    click.secho(f"{_NAMES[hit.kind]}  {terminal_safe(reference)}", bold=True, nl=False)
    click.echo(f"  {title}" if title else "")
    if passage := clip_line(hit.passage, _PASSAGE_LENGTH):
        click.echo(f"  {_highlighted(passage, parsed)}")
    if hit.at is not None:
        actor = f" by {clip_line(hit.actor)}" if hit.actor else ""
        click.secho(f"  {format_time(hit.at)}{actor}", dim=True)


def _print_summary(page: RankedPage) -> None:
    shown = len(page.hits)
    if not page.total:
        click.echo("No results", err=True)
        if page.suggestion:
            hint(f"did you mean: {terminal_safe(page.suggestion)}")
        return
    counted = format_count(page.total, "result")
    click.echo(counted if shown == page.total else f"{shown:,} of {counted}", err=True)
    if shown < page.total:
        hint("to see more, raise --limit")


def _highlighted(text: str, parsed: ParsedQuery) -> str:
    """Return the text with the matches highlighted."""
    from dittybag.domain.passages import match_spans

    parts: list[Any] = []
    done = 0
    for start, end in match_spans(text, parsed):
        parts += (text[done:start], click.style(text[start:end], fg="yellow", bold=True))
        done = end
    return "".join((*parts, text[done:]))
