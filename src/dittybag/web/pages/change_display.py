"""Changes as pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.changes import Change, Entity, Kind, label_of
from dittybag.domain.errors import clip
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.domain.times import iso
from dittybag.services.history_service import ChangePage
from dittybag.services.project_overview import is_person
from dittybag.web.browser_requests import Request, project_link
from dittybag.web.pages.prompt_history import Difference, differences
from dittybag.web.side_by_side import side_by_side

#: As much of a name as a list shows.
_LABEL_LENGTH: Final = 120
_PAST: Final = {"create": "created", "update": "changed", "delete": "deleted", "restore": "restored"}

#: The parts of a thing that people change, as they are called. What a resource holds is kept apart.
_PARTS: Final[dict[type[Entity], dict[str, str]]] = {
    Project: {"name": "Name"},
    Resource: {
        "name": "Name",
        "title": "Title",
        "uri": "URI",
        "mime_type": "Type",
        "description": "Description",
    },
    Task: {
        "title": "Title",
        "project": "Project",
        "priority": "Priority",
        "energy": "Energy",
        "time_estimate": "Time estimate",
        "due_date": "Due",
        "completed_at": "Done",
        "notes": "Notes",
    },
}


class ChangeRow(Struct, frozen=True, kw_only=True):
    """A change in a list."""

    seq: int
    at: int
    actor: str
    is_by_person: bool
    verb: str
    kind: Kind
    label: str
    #: Where the thing is now; empty if it is gone.
    link: str
    #: Where the change itself is shown.
    change_link: str
    #: The project it happened in, unless that is the one of the page.
    project: str


class Deed(Struct, frozen=True):
    """What somebody did in one go: at least one change, the newest first."""

    rows: list[ChangeRow]

    @property
    def first(self) -> ChangeRow:
        return self.rows[0]


def thing_of(change: Change) -> Entity:
    """What was changed, as it was last."""
    thing = change.after if change.after is not None else change.before
    assert thing is not None
    return thing


def verb_of(change: Change) -> str:
    """What was done to it, as in `changed`."""
    before, after = change.before, change.after
    if change.action == "restore":
        return "took back" if after is None else "brought back" if before is None else "changed back"
    if not isinstance(before, Task) or not isinstance(after, Task) or before.completed == after.completed:
        return _PAST[change.action]
    return "completed" if after.completed else "reopened"


def rows_of(request: Request, look: ChangePage) -> list[ChangeRow]:
    """Changes as rows of a list."""
    return [_row(request, change, look.addresses) for change in look.changes]


def deeds_of(rows: Iterable[ChangeRow], look: ChangePage) -> list[Deed]:
    """The same, with those together that were done together."""
    batches = {change.seq: change.batch for change in look.changes}
    return [Deed(list(group)) for _, group in groupby(rows, lambda row: batches[row.seq])]


def row_of(request: Request, change: Change) -> ChangeRow:
    """One change, of a thing that need not be there."""
    return _row(request, change, {})


def _row(request: Request, change: Change, addresses: Mapping[tuple[Kind, str], str]) -> ChangeRow:
    here = request.project
    place = here.name
    if change.project not in (None, here.id):
        place = addresses.get(("project", str(change.project)), "")
    address = addresses.get((change.kind, change.entity))
    return ChangeRow(
        seq=change.seq,
        at=change.at,
        actor=clip(change.actor, _LABEL_LENGTH),
        is_by_person=is_person(change.actor, request.site.person),
        verb=verb_of(change),
        kind=change.kind,
        label=clip(label_of(thing_of(change)), _LABEL_LENGTH),
        link="" if address is None or not place else thing_link(place, change.kind, address),
        change_link=request.link(f"/activity/{change.seq}"),
        project="" if place == here.name else place or "a deleted project",
    )


def thing_link(project: str, kind: Kind, address: str) -> str:
    """The page of a thing."""
    if kind == "project":
        return project_link(address, "/")
    if kind == "resource":
        return project_link(project, "/resources/view", uri=address)
    return project_link(project, f"/{kind}s/{address}")


def compared(change: Change, old: bytes | None, new: bytes | None) -> list[Difference]:
    """What a change has changed, part by part. `old` and `new`: what a resource held."""
    before, after = change.before, change.after
    if isinstance(before, Prompt) or isinstance(after, Prompt):
        assert isinstance(before, Prompt | None)
        assert isinstance(after, Prompt | None)
        return differences(before, after)
    parts = _PARTS[type(thing_of(change))]
    texts = ((title, _text(before, part), _text(after, part)) for part, title in parts.items())
    return [*_differing(texts), *_differing([("Content", _shown(before, old), _shown(after, new))])]


def _differing(texts: Iterable[tuple[str, str, str]]) -> Iterator[Difference]:
    return (Difference(title, side_by_side(old, new)) for title, old, new in texts if old != new)


def _text(entity: Entity | None, part: str) -> str:
    value: Any = None if entity is None else getattr(entity, part)
    if part == "completed_at":
        return "" if value is None else iso(value)
    return "" if value is None else str(value)


def _shown(state: Entity | None, content: bytes | None) -> str:
    """What a resource held, as lines."""
    if not isinstance(state, Resource) or content is None:
        return ""
    if state.is_text:
        return content.decode("utf-8", "replace")
    return f"{state.size} bytes with the SHA-256 {state.sha256}"


def effects(changes: Sequence[Change]) -> list[tuple[Change, str]]:
    """What becomes of each thing if these changes, the newest first, are undone."""
    first = {(change.kind, change.entity): change for change in changes}
    return [(change, _effect(change)) for change in first.values()]


def _effect(change: Change) -> str:
    if change.before is None:
        return "Delete"
    return "Bring back" if change.after is None else "Change back"
