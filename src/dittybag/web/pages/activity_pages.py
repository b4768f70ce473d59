"""The Activity pages: the feed of changes, one change, and undo."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dittybag.domain.changes import Purged
from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.errors import ChangedMeanwhile, ChangeNotFound, ChangePurged
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.text import one_line
from dittybag.services.history_service import ChangePage, UndoPlan, UndoSelection
from dittybag.web.browser_requests import Route, WebRequest, WebResponse, redirect
from dittybag.web.pages.change_display import (
    diff_change,
    format_row,
    format_rows,
    group_changes,
    undo_effects,
)
from dittybag.web.template_rendering import render_page

_PER_PAGE: Final = 50
#: Maximum number of groups on an open page that receives new changes.
_MAX_SHOWN: Final = 200
_MAX_SEQ: Final = 2**62
#: Maximum number of changes of a batch in an undo plan.
_MAX_PLANNED: Final = 200
#: Maximum number of entities listed before an undo.
_MAX_NAMED: Final = 20
_TEXT_LENGTH: Final = 200


def _read_filter(request: WebRequest) -> ChangeQuery:
    """Read the filter from the query string."""
    query = request.query
    sees_all = query.get("where") == "all" and request.caller.principal is None
    return ChangeQuery(
        project=None if sees_all else request.caller.project,
        kind=next((kind for kind in ENTITY_TYPES if kind == query.get("kind")), None),
        actor=query.get("actor") or None,
        text=one_line(query.get("text", ""), _TEXT_LENGTH) or None,
        limit=_PER_PAGE,
    )


async def show_feed(request: WebRequest) -> WebResponse:
    """Show the feed."""
    change_filter = _read_filter(request)
    before = request.int_parameter("before", 0, 0, _MAX_SEQ) or None
    after = (
        request.int_parameter("after", -1, 0, _MAX_SEQ)
        if before is None and "after" in request.query
        else None
    )
    after = None if after is not None and after < 0 else after
    history = request.workspace.history
    page = await history.browse(
        request.caller,
        replace(change_filter, before=before, after=after or 0, oldest_first=after is not None),
    )
    if after is not None and page.newer is None and len(page.changes) < _PER_PAGE:
        # Less than a page is newer, so show the newest page.
        page = await history.browse(request.caller, change_filter)
    actors = await history.actors(request.caller, change_filter)
    if change_filter.actor is not None and change_filter.actor not in actors:
        actors.append(change_filter.actor)
    undone = request.int_parameter("undone", 0, 0, _MAX_SEQ)
    return render_page(
        request,
        "activity/activity_list.html",
        groups=group_changes(format_rows(request, page), page),
        page=page,
        filters=change_filter,
        is_filtered=change_filter != ChangeQuery(project=change_filter.project, limit=_PER_PAGE),
        actors=actors,
        kinds=list(ENTITY_TYPES),
        is_newest=page.newer is None,
        seen=_newest_seq(page, 0),
        undone=undone if request.can_write and undone else 0,
        sees_all=request.caller.principal is None,
        older=None if page.older is None else _feed_link(request, before=page.older),
        newer=None if page.newer is None else _feed_link(request, after=page.newer),
        newest=_feed_link(request),
    )


def _feed_link(request: WebRequest, **position: int) -> str:
    """Return the URL of the feed with the same filters at another position."""
    filters = {name: request.query.get(name) for name in ("actor", "kind", "text", "where")}
    return request.link("/activity", **filters, **position)


def _newest_seq(page: ChangePage, default: int) -> int:
    """Return the seq of the newest change on a page."""
    return page.newer or (page.changes[0].seq if page.changes else default)


async def show_new_changes(request: WebRequest) -> WebResponse:
    """Return the changes that are newer than the open feed, as a fragment."""
    change_filter = _read_filter(request)
    seen = request.int_parameter("seen", 0, 0, _MAX_SEQ)
    page = await request.workspace.history.browse(
        request.caller, replace(change_filter, after=seen, oldest_first=True)
    )
    shown = request.int_parameter("shown", 0, 0, _MAX_SEQ) + len(page.changes)
    replaces_feed = (page.newer is not None and not page.is_truncated) or shown > _MAX_SHOWN
    if replaces_feed:
        page = await request.workspace.history.browse(request.caller, change_filter)
        shown = len(page.changes)
    response = render_page(
        request,
        "activity/new_changes.html",
        groups=group_changes(format_rows(request, page), page),
        seen=_newest_seq(page, seen),
        shown=shown,
        replaces_feed=replaces_feed,
        page=page,
        older=None if page.older is None else _feed_link(request, before=page.older),
    )
    # Too many new changes replace the whole feed.
    reswap = ((b"hx-reswap", b"innerHTML"),) if replaces_feed else ()
    return WebResponse(response.status, response.body, headers=(*response.headers, *reswap))


async def show_change(request: WebRequest, problem: str = "") -> WebResponse:
    """Show one change: its diff and the effects of an undo."""
    seq = _seq(request)
    history = request.workspace.history
    found = await history.compare(request.caller, seq)
    change = found.first
    parts = diff_change(change, found.old, found.new)
    row = format_row(request, change)
    if request.is_fragment and request.method == "GET":
        return render_page(request, "activity/change_diff.html", parts=parts, row=row, purged=change.purged)
    undoing = await _plan_undo(request, seq)
    effects = [] if undoing is None else undo_effects(undoing.changes)
    later = [] if undoing is None else undoing.later
    return render_page(
        request,
        "activity/change_view.html",
        status=409 if problem else 200,
        row=row,
        parts=parts,
        purged=change.purged,
        has_content=not isinstance(change.state, Purged),
        entity=change.entity,
        undoing=undoing,
        effects=[(format_row(request, item), verb) for item, verb in effects[:_MAX_NAMED]],
        more=0 if undoing is None else len(effects) - _MAX_NAMED + undoing.total - len(undoing.changes),
        later=[format_row(request, item) for item in later[:_MAX_NAMED]],
        more_later=len(later) - _MAX_NAMED,
        problem=problem,
    )


async def _plan_undo(request: WebRequest, seq: int) -> UndoPlan | None:
    """Return the effects of an undo, or None if it is not possible."""
    if not request.can_write:
        return None
    try:
        return await request.workspace.history.plan_undo(
            request.caller, UndoSelection(seq=seq), limit=_MAX_PLANNED
        )
    except ChangePurged:
        return None


async def undo_change(request: WebRequest) -> WebResponse:
    """Undo a change and the rest of its batch."""
    seq = _seq(request)
    text = request.form.get("seen", "")
    seen = int(text) if text.isdecimal() and len(text) < 19 else 0
    try:
        result = await request.workspace.history.undo(request.caller, UndoSelection(seq=seq), seen=seen)
    except ChangedMeanwhile:
        return await show_change(
            request,
            "Some of these items were changed again in the meantime. Review the changes and try again.",
        )
    if result.by is None:
        return redirect(request.link("/activity"), "Nothing to undo: everything is already as it was before")
    return redirect(request.link("/activity", undone=result.by))


def _seq(request: WebRequest) -> int:
    text = request.parameters["seq"]
    if not text.isdecimal() or len(text) > 18:
        raise ChangeNotFound(0)
    return int(text)


routes: Final = (
    Route("GET", "/activity", show_feed),
    Route("GET", "/activity/new", show_new_changes),
    Route("GET", "/activity/{seq}", show_change),
    Route("POST", "/activity/{seq}/undo", undo_change),
)
