"""Activity: who changed what and when, what it was before, and undoing it."""

from __future__ import annotations

from typing import Final

from dittybag.domain.changes import KINDS
from dittybag.domain.errors import ChangedMeanwhile, ChangeNotFound
from dittybag.domain.text import one_line
from dittybag.services.history_service import ChangeFilter, ChangePage
from dittybag.web.browser_requests import Answer, Request, Route, redirect
from dittybag.web.pages.change_display import compared, deeds_of, effects, row_of, rows_of
from dittybag.web.template_rendering import page

_PER_PAGE: Final = 50
#: A page that stays open does not grow beyond that.
_MOST_SHOWN: Final = 200
_FAR: Final = 2**62
#: Of more things than that, only the first are named before they are undone.
_NAMED: Final = 20
_TEXT_LENGTH: Final = 200


def _wanted(request: Request) -> ChangeFilter:
    """What the address asks for."""
    query = request.query
    return ChangeFilter(
        kind=next((kind for kind in KINDS if kind == query.get("kind")), None),
        actor=query.get("actor") or None,
        text=one_line(query.get("text", ""), _TEXT_LENGTH) or None,
        everywhere=query.get("where") == "all" and request.caller.principal is None,
    )


async def listed(request: Request) -> Answer:
    """The feed."""
    wanted = _wanted(request)
    before = request.number("before", 0, 0, _FAR) or None
    after = request.number("after", -1, 0, _FAR) if before is None and "after" in request.query else None
    after = None if after is not None and after < 0 else after
    history = request.workspace.history
    look = await history.browse(request.caller, wanted, before=before, after=after, limit=_PER_PAGE)
    if after is not None and look.newer is None and len(look.changes) < _PER_PAGE:
        # There is less than a page after it: the newest page has all of that.
        look = await history.browse(request.caller, wanted, limit=_PER_PAGE)
    actors = await history.actors(request.caller, wanted)
    if wanted.actor is not None and wanted.actor not in actors:
        actors.append(wanted.actor)
    undone = request.number("undone", 0, 0, _FAR)
    return page(
        request,
        "activity/activity_list.html",
        deeds=deeds_of(rows_of(request, look), look),
        look=look,
        wanted=wanted,
        is_filtered=wanted != ChangeFilter(everywhere=wanted.everywhere),
        actors=actors,
        kinds=list(KINDS),
        is_newest=look.newer is None,
        seen=_last(look, 0),
        undone=undone if request.can_write and undone else 0,
        sees_all=request.caller.principal is None,
        older=None if look.older is None else _feed(request, before=look.older),
        newer=None if look.newer is None else _feed(request, after=look.newer),
        newest=_feed(request),
    )


def _feed(request: Request, **place: int) -> str:
    """The feed of what the address asks for, at another place."""
    chosen = {name: request.query.get(name) for name in ("actor", "kind", "text", "where")}
    return request.link("/activity", **chosen, **place)


def _last(look: ChangePage, otherwise: int) -> int:
    """After which change there is something new to whoever sees this."""
    return look.newer or (look.changes[0].seq if look.changes else otherwise)


async def news(request: Request) -> Answer:
    """What has come on top of the feed since."""
    wanted = _wanted(request)
    seen = request.number("seen", 0, 0, _FAR)
    look = await request.workspace.history.browse(request.caller, wanted, after=seen, limit=_PER_PAGE)
    shown = request.number("shown", 0, 0, _FAR) + len(look.changes)
    is_much = (look.newer is not None and not look.is_truncated) or shown > _MOST_SHOWN
    if is_much:
        look = await request.workspace.history.browse(request.caller, wanted, limit=_PER_PAGE)
        shown = len(look.changes)
    answer = page(
        request,
        "activity/new_changes.html",
        deeds=deeds_of(rows_of(request, look), look),
        seen=_last(look, seen),
        shown=shown,
        is_much=is_much,
        look=look,
        older=None if look.older is None else _feed(request, before=look.older),
    )
    # More than fits on top takes the place of everything.
    instead = ((b"hx-reswap", b"innerHTML"),) if is_much else ()
    return Answer(answer.status, answer.body, headers=(*answer.headers, *instead))


async def shown(request: Request, problem: str = "") -> Answer:
    """One change: what it was before, and what undoing it means."""
    seq = _seq(request)
    history = request.workspace.history
    change, old, new = await history.get_with_contents(request.caller, seq)
    parts = compared(change, old, new)
    row = row_of(request, change)
    if request.is_part and request.method == "GET":
        return page(request, "activity/change_diff.html", parts=parts, row=row)
    undoing = await history.plan_undo(request.caller, seq) if request.can_write else None
    planned = [] if undoing is None else effects(undoing.together)
    later = [] if undoing is None else undoing.later
    return page(
        request,
        "activity/change_view.html",
        status=409 if problem else 200,
        row=row,
        parts=parts,
        undoing=undoing,
        effects=[(row_of(request, item), words) for item, words in planned[:_NAMED]],
        more=0 if undoing is None else len(planned) - _NAMED + undoing.total - len(undoing.together),
        later=[row_of(request, item) for item in later[:_NAMED]],
        more_later=len(later) - _NAMED,
        problem=problem,
    )


async def undone(request: Request) -> Answer:
    """Undo a change and what was done together with it."""
    seq = _seq(request)
    text = request.form.get("seen", "")
    seen = int(text) if text.isdecimal() and len(text) < 19 else 0
    try:
        done = await request.workspace.history.undo_in_any_project(request.caller, seq, seen=seen)
    except ChangedMeanwhile:
        return await shown(
            request, "Something of it was changed again meanwhile. ChangePage at it once more."
        )
    if done.by is None:
        return redirect(request.link("/activity"), "Everything is already as it was before")
    return redirect(request.link("/activity", undone=done.by))


def _seq(request: Request) -> int:
    text = request.parameters["seq"]
    if not text.isdecimal() or len(text) > 18:
        raise ChangeNotFound(0)
    return int(text)


routes: Final = (
    Route("GET", "/activity", listed),
    Route("GET", "/activity/news", news),
    Route("GET", "/activity/{seq}", shown),
    Route("POST", "/activity/{seq}/undo", undone),
)
