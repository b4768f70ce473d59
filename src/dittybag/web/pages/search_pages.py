"""Search over everything: as you type, and as a page."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.domain.changes import Kind
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.ports import Libraries
from dittybag.domain.text import fold, snippet_around
from dittybag.services.search_service import SEARCH_KINDS, SearchHit
from dittybag.web.browser_requests import WebResponse, WebRequest, Route
from dittybag.web.pages.change_display import entity_link
from dittybag.web.side_by_side import TextSpan
from dittybag.web.template_rendering import render_page

#: So many hits of each kind are shown under the box, and on a page.
_FEW: Final = 5
_MANY: Final = 50
#: So many prompts of libraries are looked at, at most.
_MOST_LIBRARY_PROMPTS: Final = 20_000
_LIBRARY_PAGE: Final = 1000
#: So much of a text is shown before a match.
_LEAD: Final = 25

#: Under which name the pages of these things take a text to look for.
_FILTERS: Final[dict[Kind, str]] = {"prompt": "q", "task": "text"}
_TITLES: Final[dict[Kind, str]] = {"prompt": "Prompts", "resource": "Resources", "task": "Tasks"}


class FoundRow(Struct, frozen=True):
    """Something that was found, with the matches marked."""

    link: str
    title: list[TextSpan]
    snippet: list[TextSpan]


class FoundGroup(Struct, frozen=True):
    """What was found of a kind."""

    title: str
    icon: str
    rows: list[FoundRow]
    #: The page of such things, narrowed to the same text if it looks for that everywhere, too.
    link: str
    is_narrowed: bool


async def found(request: WebRequest) -> WebResponse:
    """What has a text in it: for under the box, or as a page."""
    query = request.query.get("q", "").strip()
    groups = await _groups(request, query, _FEW if request.is_fragment else _MANY) if query else []
    template = "home/search_dropdown.html" if request.is_fragment else "home/search_results.html"
    return render_page(request, template, query=query, groups=groups)


async def _groups(request: WebRequest, query: str, limit: int) -> list[FoundGroup]:
    principal = request.caller.principal
    kinds = SEARCH_KINDS if principal is None or principal.sees_project else ()
    hits = await request.workspace.search.quick_search(request.caller, query, kinds, limit)
    groups = [
        FoundGroup(
            _TITLES[kind],
            f"{kind}s",
            [_row(request, hit, query) for hit in hits if hit.kind == kind],
            request.link(f"/{kind}s", **({_FILTERS[kind]: query} if kind in _FILTERS else {})),
            kind in _FILTERS,
        )
        for kind in kinds
    ]
    library = [
        FoundRow(
            request.link("/libraries/prompt", name=prompt.name),
            marked(prompt.title or prompt.name, query),
            marked(f"{prompt.name} · {snippet_around(prompt.description or '', query)}", query),
        )
        for prompt in await library_prompts(request.context.libraries, query, limit)
    ]
    every = request.link("/prompts", tab="libraries", q=query)
    groups.insert(1, FoundGroup("Library prompts", "libraries", library, every, is_narrowed=True))
    return [group for group in groups if group.rows]


def _row(request: WebRequest, hit: SearchHit, query: str) -> FoundRow:
    link = entity_link(request.project.name, hit.kind, str(hit.id))
    return FoundRow(link, marked(hit.title, query), _led_in(marked(" ".join(hit.snippet.split()), query)))


def _led_in(pieces: list[TextSpan]) -> list[TextSpan]:
    """The same with less before the first match, so that it can be seen in a short line."""
    if len(pieces) > 1 and not pieces[0].is_highlighted and len(pieces[0].text) > _LEAD:
        tail = pieces[0].text[-_LEAD:]
        # Words stay whole, if there are any.
        return [TextSpan("… " + (tail.partition(" ")[2] or tail)), *pieces[1:]]
    return pieces


async def library_prompts(libraries: Libraries, query: str, limit: int) -> list[LibraryPrompt]:
    """Some prompts of libraries with a text in their name, title or description, in any case."""
    needle = fold(query)
    matching: list[LibraryPrompt] = []
    looked, after = 0, ""
    while looked < _MOST_LIBRARY_PROMPTS and len(matching) < limit:
        prompts = await libraries.page(after, _LIBRARY_PAGE)
        matching += [
            prompt
            for prompt in prompts
            if any(needle in fold(text or "") for text in (prompt.name, prompt.title, prompt.description))
        ]
        if len(prompts) < _LIBRARY_PAGE:
            break
        looked, after = looked + len(prompts), prompts[-1].name
    return matching[:limit]


def marked(text: str, query: str) -> list[TextSpan]:
    """A short text in pieces, of which those that match are marked."""
    needle = fold(query)
    # Folding may make several characters of one.
    origins = [at for at, character in enumerate(text) for _ in fold(character)]
    whole = "".join(fold(character) for character in text)
    pieces, done = [], 0
    at = whole.find(needle) if needle else -1
    while at >= 0:
        begin, end = max(origins[at], done), origins[at + len(needle) - 1] + 1
        if begin > done:
            pieces.append(TextSpan(text[done:begin]))
        if end > begin:
            pieces.append(TextSpan(text[begin:end], is_highlighted=True))
            done = end
        at = whole.find(needle, at + len(needle))
    if done < len(text):
        pieces.append(TextSpan(text[done:]))
    return pieces


routes: Final = (Route("GET", "/search", found),)
