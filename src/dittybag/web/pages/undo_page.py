"""Undo and restore: take back a change with the rest of its batch, and return to an older version."""

from __future__ import annotations

from typing import Final

from dittybag.domain.changes import Change, UndoEffect, undo_effects
from dittybag.domain.display import format_count
from dittybag.domain.errors import ChangedMeanwhile, ChangeNotFound
from dittybag.domain.resources import Resource
from dittybag.services.history_service import UndoResult, UndoSelection
from dittybag.web.browser_requests import WebRequest, WebResponse, parse_number, redirect
from dittybag.web.pages.entity_history import seq_to_undo
from dittybag.web.template_rendering import render_page, render_toast

#: Later changes of at most this many items of a batch are looked for.
_MAX_PLANNED: Final = 1_000
_EFFECTS: Final[dict[UndoEffect, str]] = {"delete": "Deleted", "restore": "Restored", "revert": "Reverted"}


async def undo(request: WebRequest) -> WebResponse:
    """Undo a change and the rest of its batch, and offer to redo it.

    Later changes of the same items are overwritten only if the form says up to which change its page has
    shown them (`seen`). Otherwise, the page of the change shows them first.
    """
    seq = request.number_in_form("seq")
    try:
        result = await _undo(request, seq, parse_number(request.form.get("seen", "")))
    except ChangedMeanwhile:
        return _refuse(request, seq)
    is_redo = request.form.get("redo") == "1"
    text = _describe(result.changes) if result.by else "Nothing to undo: it would change nothing"
    if not request.is_fragment:
        return redirect(request.return_link("/"), text, undo=result.by or 0, is_redo=not is_redo)
    kinds = dict.fromkeys(change.kind for change in result.changes)
    # Refreshes the page even if no event arrives.
    trigger = (b"hx-trigger", ", ".join(f"live:{kind}" for kind in kinds).encode())
    return render_toast(request, text, result.by or 0, is_redo=not is_redo, headers=(trigger,))


async def _undo(request: WebRequest, seq: int, seen: int | None) -> UndoResult:
    """Undo a change. Raises `ChangedMeanwhile` if it would overwrite changes after `seen`, or any."""
    history = request.workspace.history
    selection = UndoSelection(seq=seq)
    if seen is not None:
        return await history.undo(request.caller, selection, seen=seen)
    try:
        # Tasks may belong to several projects, or to one that this session cannot see.
        return await request.workspace.tasks.undo_batch(request.caller, seq)
    except ChangeNotFound:
        plan = await history.plan_undo(request.caller, selection, limit=_MAX_PLANNED)
    if plan.later:
        raise ChangedMeanwhile
    return await history.undo(request.caller, selection, seen=plan.seen)


def _describe(changes: list[Change]) -> str:
    effects = undo_effects(reversed(changes))
    if len(effects) > 1:
        return f"{format_count(len(effects), 'item')} restored to how they were"
    [(change, effect)] = effects
    if change.kind == "project" and effect == "revert":
        return f"Restored the pins of “{change.label}”"
    return f"{_EFFECTS[effect]} “{change.label}”"


def _refuse(request: WebRequest, seq: int) -> WebResponse:
    message = "This was changed again in the meantime. Review the change before you undo it."
    if request.is_fragment:
        return render_page(request, "refusal.html", status=409, message=message)
    return redirect(request.link(f"/activity/{seq}"), message)


async def restore(request: WebRequest) -> WebResponse:
    """Restore the version of a prompt or resource after a change, or a project that was deleted."""
    if project := request.number_in_form("project"):
        deletion = await request.workspace.administration.restore_project(request.caller, project)
        return redirect(request.link("/settings"), f"Restored {deletion.label}")
    seq = request.number_in_form("seq")
    history = request.workspace.history
    change = (await history.compare(request.caller, seq)).first
    restored = await history.restore(request.caller, seq, project=request.caller.project)
    if restored is None:
        return redirect(request.link("/activity"), f"Deleted “{change.label}”")
    link = request.link(f"/{change.kind}s/{change.entity}")
    if isinstance(restored, Resource):
        link = request.link("/resources/view", uri=restored.uri, tab="history")
    undo = await seq_to_undo(request, change.kind, change.entity, restored.version)
    return redirect(link, f"Restored version {change.state.version} as a new version", undo=undo)
