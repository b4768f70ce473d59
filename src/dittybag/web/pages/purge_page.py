"""The Purge page: what a purge would remove, and its confirmation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.errors import Invalid, NotAllowed, Problem, PurgeUnfinished
from dittybag.services.purge_service import Selection
from dittybag.web.browser_requests import Route, WebRequest, WebResponse, redirect
from dittybag.web.template_rendering import render_page

#: Maximum number of items that are listed.
_MAX_LISTED: Final = 100
_FIELDS: Final = ("kind", "id", "change", "before")


async def show_purge(request: WebRequest) -> WebResponse:
    """Show what would be purged, and ask for confirmation."""
    if not request.can_purge:
        raise NotAllowed("Only the owner of this machine and admins can purge content")
    items = await request.workspace.purges.plan(request.caller, _selection(request.query))
    return render_page(
        request,
        "activity/purge.html",
        items=items[:_MAX_LISTED],
        more=len(items) - _MAX_LISTED,
        versions=sum(item.versions for item in items),
        fields={name: request.query[name] for name in _FIELDS if request.query.get(name)},
    )


async def purge(request: WebRequest) -> WebResponse:
    """Purge the selection of the form."""
    activity = request.link("/activity")
    try:
        items = await request.workspace.purges.run(request.caller, _selection(request.form))
    except PurgeUnfinished as error:
        return redirect(activity, f"{error}. To finish it, run on the server: dittybag purge --resume")
    versions = sum(item.versions for item in items)
    return redirect(activity, f"Purged {versions:,} version{'' if versions == 1 else 's'} for good")


def _selection(fields: Mapping[str, str]) -> Selection:
    """Return what to purge. Raises `Invalid`."""
    kind = next((kind for kind in ENTITY_TYPES if kind == fields.get("kind")), None)
    entity, change, before = (fields.get(name, "") for name in ("id", "change", "before"))
    if kind is not None and entity and (kind in ("prompt", "resource") or _is_number(entity)):
        return Selection(((kind, entity),))
    if _is_number(change):
        return Selection(seq=int(change))
    try:
        return Selection(before=int(datetime.fromisoformat(before).replace(tzinfo=UTC).timestamp() * 1e6))
    except (ValueError, OverflowError) as error:
        raise Invalid([Problem("before", f"'{before[:100]}' is not a valid date")]) from error


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


routes: Final = (
    Route("GET", "/purge", show_purge),
    Route("POST", "/purge", purge),
)
