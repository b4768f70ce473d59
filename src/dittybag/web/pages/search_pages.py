"""Search over prompts, library prompts, resources and tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from dittybag.domain.errors import TaskNotFound
from dittybag.domain.passages import match_spans
from dittybag.domain.ranked_search import ParsedQuery, parse_query
from dittybag.domain.text import QUERY_LENGTH, one_line
from dittybag.services.search_service import RANKED_KINDS, RankedHit, RankedKind, RankedPage, RankedQuery
from dittybag.web.browser_requests import PER_PAGE, WebRequest, WebResponse
from dittybag.web.pages.change_display import entity_link
from dittybag.web.task_display import task_facts
from dittybag.web.template_rendering import render_page

#: Number of results in the dropdown.
_DROPDOWN_LIMIT: Final = 8
#: Characters shown before the first match in the dropdown, which has short lines.
_LEAD_LENGTH: Final = 25

KIND_NAMES: Final[dict[RankedKind, str]] = {
    "prompt": "Prompt",
    "library_prompt": "Library prompt",
    "resource": "Resource",
    "task": "Task",
}
_ICONS: Final[dict[RankedKind, str]] = {
    "prompt": "prompts",
    "library_prompt": "libraries",
    "resource": "resources",
    "task": "tasks",
}


class TextSpan(Struct, frozen=True):
    """A part of a text."""

    text: str
    is_highlighted: bool = False


class SearchResultRow(Struct, frozen=True):
    """A search result with its matches highlighted."""

    hit: RankedHit
    #: What people call its kind, and its icon.
    kind: str
    icon: str
    link: str
    title: list[TextSpan]
    passage: list[TextSpan]
    #: Tasks only: the status, the project, the assignee and the labels.
    facts: list[str]


async def show_results(request: WebRequest) -> WebResponse:
    """Show the results as a page, or as a fragment for the dropdown."""
    query = request.query.get("q", "").strip()[:QUERY_LENGTH]
    kind = next((kind for kind in RANKED_KINDS if kind == request.query.get("kind")), None)
    found = await _find(request, query, kind) if query else RankedPage([], 0)
    # As the dropdown appears while the last word is typed, longer words match.
    parsed = parse_query(query, incomplete=True)
    facts = {} if request.is_fragment else await _task_facts(request, found.hits)
    rows = [_row(request, hit, parsed, facts) for hit in found.hits]
    template = "home/search_dropdown.html" if request.is_fragment else "home/search_results.html"
    return render_page(
        request,
        template,
        query=query,
        rows=rows,
        total=found.total,
        suggestion=found.suggestion,
        kinds=[
            (name, label, request.link("/search", q=query, **({"kind": name} if name else {})))
            for name, label in [("", "All"), *((each, f"{KIND_NAMES[each]}s") for each in RANKED_KINDS)]
        ],
        kind=kind or "",
        pages=request.pages(found.total),
    )


async def _find(request: WebRequest, query: str, kind: RankedKind | None) -> RankedPage:
    principal = request.caller.principal
    if principal is not None and not principal.sees_project:
        return RankedPage([], 0)
    limit, offset = (_DROPDOWN_LIMIT, 0) if request.is_fragment else (PER_PAGE, request.offset)
    wanted = RankedQuery(query, (kind,) if kind else (), limit, offset, incomplete=True)
    return await request.workspace.search.ranked(request.caller, wanted)


async def _task_facts(request: WebRequest, hits: Sequence[RankedHit]) -> dict[str | int, list[str]]:
    """Return what results show about tasks, by their ids."""
    facts: dict[str | int, list[str]] = {}
    for hit in hits:
        if hit.kind == "task":
            with suppress(TaskNotFound):
                facts[hit.id] = task_facts(await request.workspace.tasks.get(request.caller, int(hit.id)))
    return facts


def _row(
    request: WebRequest, hit: RankedHit, parsed: ParsedQuery, facts: Mapping[str | int, list[str]]
) -> SearchResultRow:
    passage = _highlighted(hit.passage, parsed)
    return SearchResultRow(
        hit,
        KIND_NAMES[hit.kind],
        _ICONS[hit.kind],
        hit_link(request, hit),
        _highlighted(one_line(hit.title) or "(blank title)", parsed),
        _shorten_lead(passage) if request.is_fragment else passage,
        facts.get(hit.id, []),
    )


def hit_link(request: WebRequest, hit: RankedHit) -> str:
    """Return the URL of the page of a result."""
    if hit.kind == "library_prompt":
        return request.link("/libraries/prompt", name=hit.ref)
    return entity_link(request.project.name, hit.kind, str(hit.id))


def _highlighted(text: str, parsed: ParsedQuery) -> list[TextSpan]:
    """Split a short text into spans and highlight the matches."""
    spans, at = [], 0
    for begin, end in match_spans(text, parsed):
        spans += [TextSpan(text[at:begin]), TextSpan(text[begin:end], is_highlighted=True)]
        at = end
    return [span for span in (*spans, TextSpan(text[at:])) if span.text]


def _shorten_lead(spans: list[TextSpan]) -> list[TextSpan]:
    """Cut the text before the first match, so that the match is visible in a short line."""
    if len(spans) > 1 and not spans[0].is_highlighted and len(spans[0].text) > _LEAD_LENGTH:
        tail = spans[0].text[-_LEAD_LENGTH:]
        # Cut between words if possible.
        return [TextSpan("… " + (tail.partition(" ")[2] or tail)), *spans[1:]]
    return spans
