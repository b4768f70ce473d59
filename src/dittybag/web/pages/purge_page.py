"""The Purge page: what a purge would remove, and its confirmation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dittybag.domain.display import format_count
from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.errors import NotAllowed, NothingToPurge, PurgeUnfinished
from dittybag.services.purge_service import Selection
from dittybag.web.browser_requests import WebRequest, WebResponse, parse_number, redirect
from dittybag.web.template_rendering import render_page

#: Maximum number of items that are listed.
_MAX_LISTED: Final = 100
_FIELDS: Final = ("kind", "id", "keep")


async def show_purge(request: WebRequest) -> WebResponse:
    """Show what would be purged, and ask for confirmation."""
    if not request.can_purge:
        raise NotAllowed("Only the owner of this machine and admins can purge content")
    fields = await _fields(request)
    items = await request.workspace.purges.plan(request.caller, _selection(fields))
    return render_page(
        request,
        "activity/purge.html",
        items=items[:_MAX_LISTED],
        more=len(items) - _MAX_LISTED,
        versions=sum(item.versions for item in items),
        fields=fields,
    )


async def _fields(request: WebRequest) -> dict[str, str]:
    """Return the item of the query, or the one that a change in the query is about: it may be deleted."""
    if seq := request.int_parameter("change"):
        change = (await request.workspace.history.compare(request.caller, seq)).first
        return {"kind": change.kind, "id": change.entity}
    return {name: request.query[name] for name in _FIELDS if request.query.get(name)}


async def purge(request: WebRequest) -> WebResponse:
    activity = request.link("/activity")
    try:
        items = await request.workspace.purges.run(request.caller, _selection(request.form))
    except PurgeUnfinished as error:
        return redirect(activity, f"{error}. To finish it, run on the server: dittybag purge --resume")
    versions = sum(item.versions for item in items)
    return redirect(activity, f"Purged {format_count(versions, 'version')} for good")


def _selection(fields: Mapping[str, str]) -> Selection:
    """Return what to purge. Raises `NothingToPurge`."""
    kind = next((kind for kind in ENTITY_TYPES if kind == fields.get("kind")), None)
    entity = fields.get("id", "")
    if kind is None or not (entity and (kind in ("prompt", "resource") or parse_number(entity) is not None)):
        raise NothingToPurge(f"{fields.get('kind', '')}:{entity}")
    return Selection(((kind, entity),), keep_current=fields.get("keep") == "current")
