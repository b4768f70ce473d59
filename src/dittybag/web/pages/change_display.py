"""Display values for changes: rows, groups, diffs and the effects of an undo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.changes import Change, Purged
from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind
from dittybag.domain.errors import clip
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.domain.times import iso
from dittybag.services.history_service import ChangePage
from dittybag.services.project_overview import is_person
from dittybag.web.browser_requests import WebRequest, project_link
from dittybag.web.pages.prompt_history import Difference, differences
from dittybag.web.side_by_side import side_by_side

#: Longer names are cut in lists.
_MAX_LABEL_LENGTH: Final = 120
_PAST_VERBS: Final = {"create": "created", "update": "changed", "delete": "deleted", "restore": "restored"}

#: The titles of the fields that people change. The content of a resource is stored separately.
_FIELD_TITLES: Final[dict[type[Entity], dict[str, str]]] = {
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
    #: The page of the entity; empty if it was deleted.
    link: str
    #: The page of the change.
    change_link: str
    #: The name of its project, if that is not the project of the page.
    project: str


class ChangeGroup(Struct, frozen=True):
    """The changes of one batch, newest first; at least one."""

    rows: list[ChangeRow]

    @property
    def first(self) -> ChangeRow:
        return self.rows[0]


def verb_of(change: Change) -> str:
    """Return the past-tense verb of a change, as in `created`."""
    before, after = change.before, change.after
    if change.action == "restore":
        return "removed" if after is None else "restored" if before is None else "reverted"
    if not isinstance(before, Task) or not isinstance(after, Task) or before.completed == after.completed:
        return _PAST_VERBS[change.action]
    return "completed" if after.completed else "reopened"


def format_rows(request: WebRequest, page: ChangePage) -> list[ChangeRow]:
    """Return the changes of a page as rows."""
    return [_row(request, change, page.addresses) for change in page.changes]


def group_changes(rows: Iterable[ChangeRow], page: ChangePage) -> list[ChangeGroup]:
    """Group the rows of a page by batch."""
    batches = {change.seq: change.batch for change in page.changes}
    return [ChangeGroup(list(group)) for _, group in groupby(rows, lambda row: batches[row.seq])]


def format_row(request: WebRequest, change: Change) -> ChangeRow:
    """Return one change as a row without a link to its entity."""
    return _row(request, change, {})


def _row(request: WebRequest, change: Change, addresses: Mapping[tuple[Kind, str], str]) -> ChangeRow:
    project = request.project
    project_name = project.name
    if change.project not in (None, project.id):
        project_name = addresses.get(("project", str(change.project)), "")
    address = addresses.get((change.kind, change.entity))
    return ChangeRow(
        seq=change.seq,
        at=change.at,
        actor=clip(change.actor, _MAX_LABEL_LENGTH),
        is_by_person=is_person(change.actor, change.interface, request.context.person),
        verb=verb_of(change),
        kind=change.kind,
        label=clip(change.label, _MAX_LABEL_LENGTH),
        link="" if address is None or not project_name else entity_link(project_name, change.kind, address),
        change_link=request.link(f"/activity/{change.seq}"),
        project="" if project_name == project.name else project_name or "a deleted project",
    )


def entity_link(project: str, kind: Kind, address: str) -> str:
    """Return the URL of the page of an entity."""
    if kind == "project":
        return project_link(address, "/")
    if kind == "resource":
        return project_link(project, "/resources/view", uri=address)
    return project_link(project, f"/{kind}s/{address}")


def diff_change(change: Change, old: bytes | None, new: bytes | None) -> list[Difference]:
    """Return the diffs of a change by field. `old` and `new` are the contents of a resource.

    There are none for a change whose content was purged.
    """
    before, after = change.before, change.after
    if isinstance(before, Purged) or isinstance(after, Purged):
        return []
    if isinstance(before, Prompt) or isinstance(after, Prompt):
        assert isinstance(before, Prompt | None)
        assert isinstance(after, Prompt | None)
        return differences(before, after)
    fields = _FIELD_TITLES[ENTITY_TYPES[change.kind].struct]
    texts = (
        (title, _field_text(before, field), _field_text(after, field)) for field, title in fields.items()
    )
    return [
        *_diff_texts(texts),
        *_diff_texts([("Content", _content_text(before, old), _content_text(after, new))]),
    ]


def _diff_texts(texts: Iterable[tuple[str, str, str]]) -> Iterator[Difference]:
    return (Difference(title, side_by_side(old, new)) for title, old, new in texts if old != new)


def _field_text(entity: Entity | None, field: str) -> str:
    value: Any = None if entity is None else getattr(entity, field)
    if field == "completed_at":
        return "" if value is None else iso(value)
    return "" if value is None else str(value)


def _content_text(state: Entity | None, content: bytes | None) -> str:
    """Return the content of a resource as text for a diff."""
    if not isinstance(state, Resource) or content is None:
        return ""
    if state.is_text:
        return content.decode("utf-8", "replace")
    return f"{state.size} bytes with the SHA-256 {state.sha256}"


def undo_effects(changes: Sequence[Change]) -> list[tuple[Change, str]]:
    """Return what an undo of these changes, newest first, does to each entity."""
    first = {(change.kind, change.entity): change for change in changes}
    return [(change, _undo_effect(change)) for change in first.values()]


def _undo_effect(change: Change) -> str:
    if change.before is None:
        return "Delete"
    return "Restore" if change.after is None else "Revert"
