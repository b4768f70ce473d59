"""The page Context: what is pinned to the project, and the pack that an agent would get now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dittybag.domain.errors import (
    Conflict,
    DittybagError,
    Invalid,
    NotFound,
    Problem,
    TaskNotFound,
    checked,
    require,
)
from dittybag.domain.pins import MAX_PINS, PIN_LENGTH, PinKind, split_pin
from dittybag.domain.projects import Project
from dittybag.domain.queries import PackRequest
from dittybag.domain.text import QUERY_LENGTH, line_problem, one_line
from dittybag.services.pin_service import PinnedItem
from dittybag.services.search_service import RankedQuery
from dittybag.web.browser_requests import WebRequest, WebResponse, redirect, status_of
from dittybag.web.pages.entity_history import latest_change
from dittybag.web.pages.pack_preview import item_link, pack_text, read_query, show_pack
from dittybag.web.pages.search_pages import KIND_NAMES
from dittybag.web.pages.task_form import task_tabs
from dittybag.web.task_display import STATUS_NAMES
from dittybag.web.template_rendering import render_page, render_toast

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


# Pins


async def change_pin(request: WebRequest) -> WebResponse:
    """Pin what the field `pin` names, or unpin what `unpin` names, and offer undo."""
    is_pinned = "unpin" not in request.form
    reference = request.form.get("pin" if is_pinned else "unpin", "").strip()
    pins = request.workspace.pins
    try:
        require([Problem("pin", "Type what to pin")] * (not reference))
        checked("pin", reference, line_problem("The reference", reference))
        library = await request.context.libraries.find(reference.removeprefix("library:"))
        write = pins.add if is_pinned else pins.remove
        item, is_changed = await write(request.caller, reference, library)
    except (Conflict, Invalid, NotFound) as error:
        return await _refuse(request, reference, error)
    verb = "Pinned" if is_pinned else "Unpinned"
    if not is_changed:
        verb = "Already pinned:" if is_pinned else "Not pinned:"
    text = f"{verb} “{_name_of(item)}”"
    seq = await _seq_to_undo(request, item.pin, is_pinned=is_pinned) if is_changed else 0
    if not request.is_fragment:
        return redirect(request.return_link("/context"), text, undo=seq)
    # Refreshes the page even if no event arrives.
    return render_toast(request, text, seq, headers=((b"hx-trigger", b"live:project"),))


async def _refuse(request: WebRequest, reference: str, error: DittybagError) -> WebResponse:
    status = status_of(error)
    if request.is_fragment:
        return render_page(request, "refusal.html", status=status, message=str(error))
    return await show_context(request, status=status, typed=reference, problem=str(error))


def _name_of(item: PinnedItem) -> str:
    return item.title or (split_pin(item.pin)[1] if item.kind == "library" else item.ref)


async def _seq_to_undo(request: WebRequest, pin: str, *, is_pinned: bool) -> int:
    """Return the `seq` of the change that has just pinned or unpinned an item.

    0 if someone else has changed the project since.
    """
    latest = await latest_change(request, "project", str(request.project.id))
    if latest is None or not isinstance(latest.before, Project) or not isinstance(latest.after, Project):
        return 0
    is_change = (pin in latest.after.pins) == is_pinned != (pin in latest.before.pins)
    return latest.seq if is_change else 0


# The tab Context of a task


async def show_task_context(request: WebRequest) -> WebResponse:
    number = request.number_in_path("id")
    try:
        task = await request.workspace.tasks.get(request.caller, number)
    except TaskNotFound:
        if not request.is_fragment:
            raise
        # An open page: the task has just been deleted.
        return render_page(request, "tasks/task_gone.html", number=number)
    return await show_pack(
        request,
        "tasks/task_pack.html",
        f"/tasks/{number}/context",
        # As `dittybag://packs/task/{id}` makes it.
        PackRequest(task=number),
        task=task,
        statuses=STATUS_NAMES,
        tabs=task_tabs(request, number),
    )


async def show_task_text(request: WebRequest) -> WebResponse:
    return await pack_text(request, PackRequest(task=request.number_in_path("id")))
