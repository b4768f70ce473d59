"""Pin items to the project of a page, and unpin them."""

from __future__ import annotations

from dittybag.domain.errors import Conflict, DittybagError, Invalid, NotFound, Problem, checked, require
from dittybag.domain.pins import split_pin
from dittybag.domain.projects import Project
from dittybag.domain.text import line_problem
from dittybag.services.pin_service import PinnedItem
from dittybag.web.browser_requests import WebRequest, WebResponse, redirect, status_of
from dittybag.web.pages.context_page import show_context
from dittybag.web.pages.entity_history import latest_change
from dittybag.web.template_rendering import render_page, render_toast


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
