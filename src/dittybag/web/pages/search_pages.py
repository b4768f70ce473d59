"""Search over prompts, library prompts, resources and tasks."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from dittybag.domain.entities import Kind
from dittybag.domain.text import fold, one_line, snippet_around
from dittybag.services.search_service import SEARCH_KINDS, SearchHit
from dittybag.web.browser_requests import WebRequest, WebResponse
from dittybag.web.library_checks import search_prompts
from dittybag.web.pages.change_display import entity_link
from dittybag.web.side_by_side import TextSpan, highlight_runs
from dittybag.web.template_rendering import render_page

#: Maximum number of results of each kind in the dropdown and on the results page.
_DROPDOWN_LIMIT: Final = 5
_PAGE_LIMIT: Final = 50
#: Characters shown before the first match.
_LEAD_LENGTH: Final = 25

#: The query parameter for text of the list pages that filter by the same text.
_FILTERS: Final[dict[Kind, str]] = {"prompt": "q", "task": "text"}
_TITLES: Final[dict[Kind, str]] = {"prompt": "Prompts", "resource": "Resources", "task": "Tasks"}


class SearchResultRow(Struct, frozen=True):
    """A search result with its matches highlighted."""

    link: str
    title: list[TextSpan]
    snippet: list[TextSpan]


class SearchResultGroup(Struct, frozen=True):
    """The search results of one kind."""

    title: str
    icon: str
    rows: list[SearchResultRow]
    #: The list page of this kind, filtered by the same text if it supports that.
    link: str
    is_narrowed: bool


async def show_results(request: WebRequest) -> WebResponse:
    """Show the results as a page, or as a fragment for the dropdown."""
    query = request.query.get("q", "").strip()
    limit = _DROPDOWN_LIMIT if request.is_fragment else _PAGE_LIMIT
    groups = await _groups(request, query, limit) if query else []
    template = "home/search_dropdown.html" if request.is_fragment else "home/search_results.html"
    return render_page(request, template, query=query, groups=groups)


async def _groups(request: WebRequest, query: str, limit: int) -> list[SearchResultGroup]:
    principal = request.caller.principal
    kinds = SEARCH_KINDS if principal is None or principal.sees_project else ()
    hits = await request.workspace.search.quick_search(request.caller, query, kinds, limit)
    groups = [
        SearchResultGroup(
            _TITLES[kind],
            f"{kind}s",
            [_row(request, hit, query) for hit in hits if hit.kind == kind],
            request.link(f"/{kind}s", **({_FILTERS[kind]: query} if kind in _FILTERS else {})),
            kind in _FILTERS,
        )
        for kind in kinds
    ]
    library = [
        SearchResultRow(
            request.link("/libraries/prompt", name=prompt.name),
            highlight_matches(prompt.title or prompt.name, query),
            highlight_matches(f"{prompt.name} · {snippet_around(prompt.description or '', query)}", query),
        )
        for prompt in await search_prompts(request.context.libraries, query, limit)
    ]
    library_link = request.link("/prompts", tab="libraries", q=query)
    groups.insert(
        1, SearchResultGroup("Library prompts", "libraries", library, library_link, is_narrowed=True)
    )
    return [group for group in groups if group.rows]


def _row(request: WebRequest, hit: SearchHit, query: str) -> SearchResultRow:
    link = entity_link(request.project.name, hit.kind, str(hit.id))
    return SearchResultRow(
        link,
        highlight_matches(one_line(hit.title) or "(blank title)", query),
        _shorten_lead(highlight_matches(" ".join(hit.snippet.split()), query)),
    )


def _shorten_lead(spans: list[TextSpan]) -> list[TextSpan]:
    """Cut the text before the first match, so that the match is visible in a short line."""
    if len(spans) > 1 and not spans[0].is_highlighted and len(spans[0].text) > _LEAD_LENGTH:
        tail = spans[0].text[-_LEAD_LENGTH:]
        # Cut between words if possible.
        return [TextSpan("… " + (tail.partition(" ")[2] or tail)), *spans[1:]]
    return spans


def highlight_matches(text: str, query: str) -> list[TextSpan]:
    """Split a short text into spans and highlight the matches."""
    # Case folding can turn one character into several.
    origins = [at for at, character in enumerate(text) for _ in fold(character)]
    runs, done = [], 0
    for found in re.finditer(re.escape(fold(query)), fold(text)):
        begin, done = max(origins[found.start()], done), origins[found.end() - 1] + 1
        runs.append((begin, done))
    return list(highlight_runs(text, runs))
