"""What others changed since the last visit to Home, by actor, and its undo."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.changes import Action, ActorCount
from dittybag.domain.display import format_count
from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.errors import ChangedMeanwhile
from dittybag.domain.queries import ChangeQuery
from dittybag.services.history_service import UndoSelection
from dittybag.services.project_overview import is_person
from dittybag.web.actor_marks import ActorMark, ActorMarks
from dittybag.web.browser_requests import WebRequest, WebResponse, redirect
from dittybag.web.pages.change_display import VERBS, ChangeRow, format_row
from dittybag.web.visits import Visit, read_visit

#: Maximum numbers of actors, and of changed entities named for each.
_MAX_ACTORS: Final = 8
_MAX_NAMED: Final = 3
#: The number of recent changes in which named entities are looked for.
_SEARCHED_CHANGES: Final = 100
#: On the first visit, the changes of this time are shown, in microseconds.
_FIRST_VISIT: Final = 24 * 3600 * 1_000_000


class VisitGroup(Struct, frozen=True, kw_only=True):
    """What an actor changed since the last visit."""

    actor: str
    is_by_person: bool
    mark: ActorMark
    #: Verbs, each with how many entities were changed so, as in `3 prompts`, and the links to these changes.
    parts: list[tuple[str, list[tuple[str, str]]]]
    #: The newest of these changes, of one entity each.
    named: list[ChangeRow]
    total: int
    last_at: int
    #: The changes that an undo selects are those after this `seq`.
    after: int
    #: Not if the visitor has changed something under the same name, which a client may choose.
    is_undoable: bool


async def visit_values(request: WebRequest, visit: Visit) -> dict[str, Any]:
    """Return what others changed since the last visit, by actor, most recent first."""
    overview, history = request.workspace.overview, request.workspace.history
    since = None if visit.last_at else time.time_ns() // 1000 - _FIRST_VISIT
    activity = await overview.by_actor(request.caller, after=visit.last_seq, since=since)
    counts: dict[str, list[ActorCount]] = {}
    own: set[str] = set()
    for item in activity.counts:
        if _is_own(request, item):
            own.add(item.actor)
        else:
            counts.setdefault(item.actor, []).append(item)
    for actor in list(counts):
        if (undone := visit.undone_up_to(actor)) > activity.after:
            newer = (await overview.by_actor(request.caller, after=undone)).counts
            counts[actor] = [item for item in newer if item.actor == actor and not _is_own(request, item)]
    newest = sorted(
        (actor for actor, items in counts.items() if items),
        key=lambda actor: max(item.last for item in counts[actor]),
        reverse=True,
    )
    named: dict[str, list[ChangeRow]] = {}
    if newest:
        page = await history.browse(
            request.caller, ChangeQuery(project=request.caller.project, limit=_SEARCHED_CHANGES)
        )
        rows = [format_row(request, change, page.addresses) for change in page.changes]
        named = {
            actor: _newest_entities(rows, actor, min(item.first for item in counts[actor]))
            for actor in newest[:_MAX_ACTORS]
        }
    marks = ActorMarks(await history.actors(request.caller, ChangeQuery(project=request.caller.project)))
    return {
        "groups": [
            _format_group(request, counts[actor], marks, named[actor], is_undoable=actor not in own)
            for actor in newest[:_MAX_ACTORS]
        ],
        "more_actors": len(newest) - _MAX_ACTORS,
        "is_counted": not activity.is_truncated,
        "seen": activity.newest,
    }


def _is_own(request: WebRequest, item: ActorCount) -> bool:
    """Return whether the visitor made these changes, here or in a shell."""
    if item.interface == "web":
        return item.actor == request.caller.actor
    is_owner = request.session.name is None
    return is_owner and item.interface == "cli" and item.actor == request.context.person


def _newest_entities(rows: Sequence[ChangeRow], actor: str, first: int) -> list[ChangeRow]:
    """Return the newest changes of an actor that still have a page, one for each entity."""
    newest: dict[str, ChangeRow] = {}
    for row in rows:
        if row.actor == actor and row.seq >= first and row.link and row.kind != "project":
            newest.setdefault(row.link, row)
    return list(newest.values())[:_MAX_NAMED]


def _format_group(
    request: WebRequest,
    items: Sequence[ActorCount],
    marks: ActorMarks,
    named: list[ChangeRow],
    *,
    is_undoable: bool,
) -> VisitGroup:
    actor = items[0].actor
    totals: dict[Action, dict[Kind, int]] = {}
    for item in items:
        kinds = totals.setdefault(item.action, {})
        kinds[item.kind] = kinds.get(item.kind, 0) + item.count
    return VisitGroup(
        actor=actor,
        is_by_person=is_person(actor, items[0].interface, request.context.person),
        mark=marks.of(actor),
        parts=[
            (
                verb,
                [
                    (
                        format_count(totals[action][kind], kind),
                        request.link("/activity", actor=actor, kind=kind),
                    )
                    for kind in ENTITY_TYPES
                    if kind in totals[action]
                ],
            )
            for action, verb in VERBS.items()
            if action in totals
        ],
        named=named,
        total=sum(item.count for item in items),
        last_at=max(item.last_at for item in items),
        after=min(item.first for item in items) - 1,
        is_undoable=is_undoable and request.can_write,
    )


async def undo_actor(request: WebRequest) -> WebResponse:
    """Undo what an actor changed since the last visit, unless others have changed the same entities since."""
    actor = request.form.get("actor", "")
    after, seen = request.number_in_form("after"), request.number_in_form("seen")
    selection = UndoSelection(project=request.caller.project, actor=actor, after=max(after, 1))
    history = request.workspace.history
    plan = await history.plan_undo(request.caller, selection)
    if plan.later:
        return _refer_to_activity(request, actor)
    try:
        result = await history.undo(request.caller, selection, seen=seen)
    except ChangedMeanwhile:
        return _refer_to_activity(request, actor)
    visit = read_visit(request, *await request.workspace.overview.log_range(request.caller))
    stored = visit.with_undone(actor, seen).header(request)
    note = f"Undid {format_count(len(result.changes), 'change')} by {actor}"
    if result.by is None:
        note = "Nothing to undo: everything is already as it was before"
    response = redirect(request.link("/"), note, undo=result.by or 0, is_redo=True)
    return WebResponse(response.status, headers=(*response.headers, stored))


def _refer_to_activity(request: WebRequest, actor: str) -> WebResponse:
    note = "Some of these items were changed again, so nothing was undone. Undo single changes here."
    return redirect(request.link("/activity", actor=actor), note)
