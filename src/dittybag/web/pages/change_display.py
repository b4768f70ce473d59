"""Display values for changes: rows and groups."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from dittybag.domain.changes import Change
from dittybag.domain.entities import Kind
from dittybag.domain.errors import clip
from dittybag.services.history_service import ChangePage
from dittybag.services.project_overview import is_person
from dittybag.web.browser_requests import WebRequest, project_link
from dittybag.web.task_display import summarise_change

#: Longer names are cut in lists.
_MAX_LABEL_LENGTH: Final = 120


class ChangeRow(Struct, frozen=True, kw_only=True):
    """A change in a list."""

    seq: int
    at: int
    actor: str
    is_by_person: bool
    verb: str
    kind: Kind
    label: str
    #: The page of the entity; empty if it was deleted.
    link: str
    #: The page of the change.
    change_link: str
    #: The name of its project, if that is not the project of the page.
    project: str
    #: Tasks only: what changed for those who work on it, as in `to do → doing, assigned to cursor`.
    summary: str


def group_changes(request: WebRequest, page: ChangePage) -> list[list[ChangeRow]]:
    """Return the changes of a page as rows, grouped by batch."""
    return [
        [format_row(request, change, page.addresses) for change in batch]
        for _, batch in groupby(page.changes, lambda change: change.batch)
    ]


def format_row(
    request: WebRequest, change: Change, addresses: Mapping[tuple[Kind, str], str] = MappingProxyType({})
) -> ChangeRow:
    """Return a change as a row, with a link to its entity if its address is known."""
    project_name = request.project.name
    if change.project not in (None, request.project.id):
        project_name = addresses.get(("project", str(change.project)), "")
    address = addresses.get((change.kind, change.entity))
    return ChangeRow(
        seq=change.seq,
        at=change.at,
        actor=clip(change.actor, _MAX_LABEL_LENGTH),
        is_by_person=is_person(change.actor, change.interface, request.context.person),
        verb=change.verb,
        kind=change.kind,
        label=clip(change.label, _MAX_LABEL_LENGTH),
        link="" if address is None or not project_name else entity_link(project_name, change.kind, address),
        change_link=request.link(f"/activity/{change.seq}"),
        project="" if project_name == request.project.name else project_name or "a deleted project",
        summary=clip(summarise_change(change), _MAX_LABEL_LENGTH),
    )


def entity_link(project: str, kind: Kind, address: str) -> str:
    if kind == "project":
        return project_link(address, "/")
    if kind == "resource":
        return project_link(project, "/resources/view", uri=address)
    return project_link(project, f"/{kind}s/{address}")
