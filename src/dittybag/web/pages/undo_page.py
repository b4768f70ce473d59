"""Undo from a toast: takes back what was just done, unless it was changed again."""

from __future__ import annotations

from typing import Final

from dittybag.domain.changes import Change, UndoEffect, undo_effects
from dittybag.domain.display import format_count
from dittybag.domain.errors import ChangedMeanwhile
from dittybag.services.history_service import UndoSelection
from dittybag.web.browser_requests import WebRequest, WebResponse, redirect
from dittybag.web.template_rendering import render_page

#: Later changes of at most this many items of a batch are looked for.
_MAX_PLANNED: Final = 1_000
_EFFECTS: Final[dict[UndoEffect, str]] = {"delete": "Deleted", "restore": "Restored", "revert": "Reverted"}


async def undo(request: WebRequest) -> WebResponse:
    """Undo a change and the rest of its batch, and offer to redo it."""
    selection = UndoSelection(seq=request.number_in_form("seq"), project=request.caller.project)
    history = request.workspace.history
    plan = await history.plan_undo(request.caller, selection, limit=_MAX_PLANNED)
    if plan.later:
        return _refuse(request, plan.changes[0])
    try:
        result = await history.undo(request.caller, selection, seen=plan.seen)
    except ChangedMeanwhile:
        return _refuse(request, plan.changes[0])
    is_redo = request.form.get("redo") == "1"
    text = _describe(result.changes) if result.by else "Nothing to undo: everything is already as it was"
    if not request.is_fragment:
        return redirect(request.return_link("/"), text, undo=result.by or 0, is_redo=not is_redo)
    kinds = dict.fromkeys(change.kind for change in result.changes)
    return render_page(
        request,
        "undone.html",
        # Refreshes the page even if no event arrives.
        headers=((b"hx-trigger", ", ".join(f"live:{kind}" for kind in kinds).encode()),),
        text=text,
        seq=result.by or 0,
        offers_redo=not is_redo,
        back=request.form.get("back", ""),
    )


def _describe(changes: list[Change]) -> str:
    effects = undo_effects(reversed(changes))
    if len(effects) > 1:
        return f"{format_count(len(effects), 'item')} restored to how they were"
    [(change, effect)] = effects
    if change.kind == "project" and effect == "revert":
        return f"Restored the pins of “{change.label}”"
    return f"{_EFFECTS[effect]} “{change.label}”"


def _refuse(request: WebRequest, change: Change) -> WebResponse:
    message = f"“{change.label}” was changed again in the meantime. Review the change before you undo it."
    if request.is_fragment:
        return render_page(request, "refusal.html", status=409, message=message)
    return redirect(request.link(f"/activity/{change.seq}"), message)
