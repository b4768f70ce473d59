"""The Activity pages: the feed of changes, and one change."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from dittybag.domain.changes import undo_effects
from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.errors import ChangePurged
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.text import one_line
from dittybag.services.change_batches import BatchPage
from dittybag.services.history_service import UndoPlan, UndoSelection
from dittybag.web.actor_marks import ActorMarks
from dittybag.web.browser_requests import PER_PAGE, WebRequest, WebResponse, parse_number
from dittybag.web.entity_diffs import differences
from dittybag.web.filter_chips import FilterChip, filter_chips, without_filters
from dittybag.web.pages.change_display import format_row, group_by_day
from dittybag.web.template_rendering import render_page

#: Maximum number of groups on an open page that receives new changes.
_MAX_SHOWN: Final = 200
#: Maximum number of changes of a batch in an undo plan.
_MAX_PLANNED: Final = 200
#: Maximum number of entities listed before an undo.
_MAX_NAMED: Final = 20
#: Maximum number of changes of a batch listed in the feed.
_MAX_LISTED: Final = 50
_TEXT_LENGTH: Final = 200
_FILTERS: Final = ("actor", "kind", "text", "where")


def _read_query(request: WebRequest) -> ChangeQuery:
    query = request.query
    sees_all = query.get("where") == "all" and request.caller.principal is None
    return ChangeQuery(
        project=None if sees_all else request.caller.project,
        kind=request.chosen("kind", ENTITY_TYPES, None),
        actor=query.get("actor") or None,
        text=one_line(query.get("text", ""), _TEXT_LENGTH) or None,
    )


async def show_feed(request: WebRequest) -> WebResponse:
    query = _read_query(request)
    before = request.int_parameter("before") or None
    after = parse_number(request.query.get("after", "")) if before is None else None
    history, batches = request.workspace.history, request.workspace.batches
    position = replace(query, before=before, after=after or 0, oldest_first=after is not None)
    page = await batches.browse(request.caller, position, PER_PAGE)
    if after is not None and page.newer is None and len(page.entries) < PER_PAGE:
        # Less than a page is newer, so show the newest page.
        page = await batches.browse(request.caller, query, PER_PAGE)
    actors = await history.actors(request.caller, query)
    marks = ActorMarks(actors)
    if query.actor is not None and query.actor not in actors:
        actors.append(query.actor)
    return render_page(
        request,
        "activity/activity_list.html",
        **_page_values(request, page, marks),
        shown=len(page.entries),
        filters=query,
        chips=_chips(request, query),
        clear=without_filters(request, _FILTERS),
        is_filtered=query != ChangeQuery(project=query.project),
        actors=[(actor, actor) for actor in actors],
        kinds=[(kind, f"{kind.capitalize()}s") for kind in ENTITY_TYPES],
        is_newest=page.newer is None,
        seen=page.newest,
        sees_all=request.caller.principal is None,
        newer=None if page.newer is None else _feed_link(request, after=page.newer),
        newest=_feed_link(request),
    )


def _chips(request: WebRequest, query: ChangeQuery) -> list[FilterChip]:
    kind = "" if query.kind is None else f"{query.kind.capitalize()}s"
    everywhere = "All projects" if query.project is None else ""
    shown = {"actor": query.actor or "", "kind": kind, "text": query.text or "", "where": everywhere}
    labels = {"actor": "Who", "kind": "What", "text": "Text", "where": "Where"}
    return filter_chips(request, [(name, labels[name], shown[name]) for name in _FILTERS])


def _feed_link(request: WebRequest, **position: int) -> str:
    """Return the URL of the feed with the same filters at another position."""
    filters = {name: request.query.get(name) for name in _FILTERS}
    return request.link("/activity", **filters, **position)


async def show_new_changes(request: WebRequest) -> WebResponse:
    """Return the changes that are newer than the open feed, as a fragment."""
    query = _read_query(request)
    seen = request.int_parameter("seen")
    batches = request.workspace.batches
    page = await batches.browse(request.caller, replace(query, after=seen), PER_PAGE)
    shown = request.int_parameter("shown") + len(page.entries)
    replaces_feed = page.older is not None or shown > _MAX_SHOWN
    if replaces_feed:
        page = await batches.browse(request.caller, query, PER_PAGE)
        shown = len(page.entries)
    marks = ActorMarks(await request.workspace.history.actors(request.caller, query))
    return render_page(
        request,
        "activity/new_changes.html",
        # Too many new changes replace the whole feed.
        headers=((b"hx-reswap", b"innerHTML"),) if replaces_feed else (),
        **_page_values(request, page, marks),
        seen=page.newest,
        shown=shown,
        replaces_feed=replaces_feed,
    )


def _page_values(request: WebRequest, page: BatchPage, marks: ActorMarks) -> dict[str, Any]:
    older = None if page.older is None else _feed_link(request, before=page.older)
    return {"page": page, "days": group_by_day(request, page, marks), "older": older}


async def show_change(request: WebRequest) -> WebResponse:
    """Show one change: its diff and the effects of an undo."""
    seq = request.number_in_path("seq")
    if request.is_fragment and "batch" in request.query:
        return await _show_batch(request, seq)
    found = await request.workspace.history.compare(request.caller, seq)
    change = found.first
    parts = differences(found.before, found.after, (found.old, found.new))
    row = format_row(request, change)
    if request.is_fragment and request.method == "GET":
        return render_page(request, "activity/change_diff.html", parts=parts, row=row, purged=change.purged)
    undoing = await _plan_undo(request, seq)
    effects = [] if undoing is None else undo_effects(undoing.changes)
    later = [] if undoing is None else undoing.later
    return render_page(
        request,
        "activity/change_view.html",
        row=row,
        parts=parts,
        purged=change.purged,
        undoing=undoing,
        effects=[(format_row(request, item), verb) for item, verb in effects[:_MAX_NAMED]],
        more=0 if undoing is None else len(effects) - _MAX_NAMED + undoing.total - len(undoing.changes),
        later=[format_row(request, item) for item in later[:_MAX_NAMED]],
        more_later=len(later) - _MAX_NAMED,
    )


async def _show_batch(request: WebRequest, seq: int) -> WebResponse:
    """Return the first changes of a batch as a fragment."""
    changes, total = await request.workspace.batches.changes(request.caller, seq, _MAX_LISTED)
    return render_page(
        request,
        "activity/batch_changes.html",
        rows=[format_row(request, change) for change in changes],
        more=total - len(changes),
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
