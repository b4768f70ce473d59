"""The Activity pages: the feed of changes, one change, and undo."""

from __future__ import annotations

from typing import Final

from dittybag.domain.changes import Purged, undo_effects
from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.errors import ChangedMeanwhile, ChangePurged
from dittybag.domain.text import one_line
from dittybag.services.history_service import ChangeFilter, ChangePage, UndoPlan
from dittybag.web.browser_requests import PER_PAGE, WebRequest, WebResponse, parse_number, redirect
from dittybag.web.entity_diffs import change_differences
from dittybag.web.pages.change_display import format_row, group_changes
from dittybag.web.template_rendering import render_page

#: Maximum number of groups on an open page that receives new changes.
_MAX_SHOWN: Final = 200
#: Maximum number of entities listed before an undo.
_MAX_NAMED: Final = 20
_TEXT_LENGTH: Final = 200


def _read_filter(request: WebRequest) -> ChangeFilter:
    """Read the filter from the query string."""
    query = request.query
    return ChangeFilter(
        kind=request.chosen("kind", ENTITY_TYPES, None),
        actor=query.get("actor") or None,
        text=one_line(query.get("text", ""), _TEXT_LENGTH) or None,
        all_projects=query.get("where") == "all" and request.caller.principal is None,
    )


async def show_feed(request: WebRequest) -> WebResponse:
    """Show the feed."""
    change_filter = _read_filter(request)
    before = request.int_parameter("before") or None
    after = parse_number(request.query.get("after", "")) if before is None else None
    history = request.workspace.history
    page = await history.browse(request.caller, change_filter, before=before, after=after, limit=PER_PAGE)
    if after is not None and page.newer is None and len(page.changes) < PER_PAGE:
        # Less than a page is newer, so show the newest page.
        page = await history.browse(request.caller, change_filter, limit=PER_PAGE)
    actors = await history.actors(request.caller, change_filter)
    if change_filter.actor is not None and change_filter.actor not in actors:
        actors.append(change_filter.actor)
    undone = request.int_parameter("undone")
    return render_page(
        request,
        "activity/activity_list.html",
        groups=group_changes(request, page),
        page=page,
        filters=change_filter,
        is_filtered=change_filter != ChangeFilter(all_projects=change_filter.all_projects),
        actors=[(actor, actor) for actor in actors],
        kinds=[(kind, f"{kind.capitalize()}s") for kind in ENTITY_TYPES],
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
    seen = request.int_parameter("seen")
    page = await request.workspace.history.browse(request.caller, change_filter, after=seen, limit=PER_PAGE)
    shown = request.int_parameter("shown") + len(page.changes)
    replaces_feed = (page.newer is not None and not page.is_truncated) or shown > _MAX_SHOWN
    if replaces_feed:
        page = await request.workspace.history.browse(request.caller, change_filter, limit=PER_PAGE)
        shown = len(page.changes)
    return render_page(
        request,
        "activity/new_changes.html",
        # Too many new changes replace the whole feed.
        headers=((b"hx-reswap", b"innerHTML"),) if replaces_feed else (),
        groups=group_changes(request, page),
        seen=_newest_seq(page, seen),
        shown=shown,
        replaces_feed=replaces_feed,
        page=page,
        older=None if page.older is None else _feed_link(request, before=page.older),
    )


async def show_change(request: WebRequest, problem: str = "") -> WebResponse:
    """Show one change: its diff and the effects of an undo."""
    seq = request.number_in_path("seq")
    history = request.workspace.history
    change, old, new = await history.get_with_contents(request.caller, seq)
    parts = change_differences(change, (old, new))
    row = format_row(request, change)
    if request.is_fragment and request.method == "GET":
        return render_page(request, "activity/change_diff.html", parts=parts, row=row, purged=change.purged)
    undoing = await _plan_undo(request, seq)
    effects = [] if undoing is None else undo_effects(undoing.batch)
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
        more=0 if undoing is None else len(effects) - _MAX_NAMED + undoing.total - len(undoing.batch),
        later=[format_row(request, item) for item in later[:_MAX_NAMED]],
        more_later=len(later) - _MAX_NAMED,
        problem=problem,
    )


async def _plan_undo(request: WebRequest, seq: int) -> UndoPlan | None:
    """Return the effects of an undo, or None if it is not possible."""
    if not request.can_write:
        return None
    try:
        return await request.workspace.history.plan_undo(request.caller, seq)
    except ChangePurged:
        return None


async def undo_change(request: WebRequest) -> WebResponse:
    """Undo a change and the rest of its batch."""
    seq = request.number_in_path("seq")
    seen = request.number_in_form("seen")
    try:
        result = await request.workspace.history.undo_in_any_project(request.caller, seq, seen=seen)
    except ChangedMeanwhile:
        return await show_change(
            request,
            "Some of these items were changed again in the meantime. Review the changes and try again.",
        )
    if result.by is None:
        return redirect(request.link("/activity"), "Nothing to undo: everything is already as it was before")
    return redirect(request.link("/activity", undone=result.by))
