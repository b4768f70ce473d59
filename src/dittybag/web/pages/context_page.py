"""The page Context: what is pinned to the project, and the pack that an agent would get now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dittybag.domain.pins import MAX_PINS, PIN_LENGTH, PinKind, split_pin
from dittybag.domain.queries import PackRequest
from dittybag.domain.text import QUERY_LENGTH, one_line
from dittybag.services.pin_service import PinnedItem
from dittybag.services.search_service import RankedQuery
from dittybag.web.browser_requests import WebRequest, WebResponse
from dittybag.web.pages.pack_preview import item_link, pack_text, read_query, show_pack
from dittybag.web.pages.search_pages import KIND_NAMES
from dittybag.web.template_rendering import render_page

#: Maximum number of suggested items.
_MAX_SUGGESTED: Final = 12
_KIND_NAMES: Final[dict[PinKind, str]] = {
    "prompt": "Prompt",
    "library": "Library prompt",
    "resource": "Resource",
    "task": "Task",
}
_ICONS: Final[dict[PinKind, str]] = {
    "prompt": "prompts",
    "library": "libraries",
    "resource": "resources",
    "task": "tasks",
}


class PinRow(Struct, frozen=True, kw_only=True):
    """A pinned item for display."""

    pin: str
    kind: str
    icon: str
    ref: str
    #: Its title, or what it is called.
    title: str
    #: Empty if it no longer exists, or if the session cannot see it.
    link: str


async def show_context(
    request: WebRequest, *, status: int = 200, typed: str = "", problem: str = ""
) -> WebResponse:
    """Show the pins and the pack. `typed`, `problem`: a reference that could not be pinned, and why."""
    query = read_query(request)
    items = await request.workspace.pins.all(request.caller)
    return await show_pack(
        request,
        "context/context_page.html",
        "/context",
        PackRequest(query=query),
        status=status,
        pins=[await _row(request, item) for item in items],
        max_pins=MAX_PINS,
        query=query,
        query_length=QUERY_LENGTH,
        typed=typed,
        ref_length=PIN_LENGTH,
        problem=problem,
    )


async def show_text(request: WebRequest) -> WebResponse:
    return await pack_text(request, PackRequest(query=read_query(request)))


async def suggest_items(request: WebRequest) -> WebResponse:
    """Return the references of items that match what is being typed, as options."""
    text = request.query.get("pin", "").strip()[:QUERY_LENGTH]
    options: Sequence[tuple[str, str]] = ()
    if text:
        wanted = RankedQuery(text, (), _MAX_SUGGESTED, 0, incomplete=True)
        hits = (await request.workspace.search.ranked(request.caller, wanted)).hits
        options = [(hit.ref, f"{KIND_NAMES[hit.kind]}: {one_line(hit.title)}") for hit in hits]
    return render_page(request, "context/pin_options.html", options=options)


async def _row(request: WebRequest, item: PinnedItem) -> PinRow:
    title = item.title
    if item.kind == "library":
        # The store does not have library prompts.
        found = await request.context.libraries.find(split_pin(item.pin)[1])
        title = None if found is None else found.title or found.name
    return PinRow(
        pin=item.pin,
        kind=_KIND_NAMES[item.kind],
        icon=_ICONS[item.kind],
        ref=item.ref,
        title=item.ref if title is None else one_line(title) or item.ref,
        link="" if title is None else item_link(request, item.pin),
    )
