"""Display values for changes: rows, batches and days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from itertools import groupby
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from dittybag.domain.changes import Action, BatchCount, Change
from dittybag.domain.display import format_count
from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.errors import clip
from dittybag.services.change_batches import BatchEntry, BatchPage
from dittybag.services.project_overview import is_person
from dittybag.web.actor_marks import ActorMark, ActorMarks
from dittybag.web.browser_requests import WebRequest, project_link
from dittybag.web.task_display import local_now, local_time, summarise_change

#: Longer names are cut in lists.
_MAX_LABEL_LENGTH: Final = 120

#: What several changes with an action did. An undo deletes, restores or reverts.
VERBS: Final[Mapping[Action, str]] = {
    "create": "created",
    "update": "changed",
    "delete": "deleted",
    "restore": "reverted",
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
    #: Tasks only: what changed for those who work on it, as in `to do → doing, assigned to cursor`.
    summary: str


class BatchRow(Struct, frozen=True, kw_only=True):
    """A batch of changes in a list: one line, however many changes it has."""

    #: One of the changes.
    change: ChangeRow
    total: int
    #: What several changes did, as in `created 1,000 prompts`; empty for one.
    summary: str
    mark: ActorMark
    #: The time of the day, in the time zone of this machine.
    clock: str


class DayRows(Struct, frozen=True):
    """The batches of a day, newest first."""

    #: In ISO 8601.
    day: str
    title: str
    rows: list[BatchRow]


def group_by_day(request: WebRequest, page: BatchPage, marks: ActorMarks) -> list[DayRows]:
    """Return the batches of a page as rows, grouped by the day of this machine."""
    today = local_now().date()
    days = groupby(page.entries, lambda entry: local_time(entry.change.at).date())
    return [
        DayRows(
            day.isoformat(),
            _day_title(day, today),
            [_format_batch(request, entry, page.addresses, marks) for entry in entries],
        )
        for day, entries in days
    ]


def _format_batch(
    request: WebRequest, entry: BatchEntry, addresses: Mapping[tuple[Kind, str], str], marks: ActorMarks
) -> BatchRow:
    return BatchRow(
        change=format_row(request, entry.change, addresses),
        total=entry.total,
        summary=describe_counts(entry.counts) if entry.total > 1 else "",
        mark=marks.of(entry.change.actor),
        clock=f"{local_time(entry.change.at):%H:%M}",
    )


def describe_counts(counts: Iterable[BatchCount]) -> str:
    """Say what several changes did, as in `created 1,000 prompts and 2 tasks, deleted 1 resource`."""
    totals: dict[Action, dict[Kind, int]] = {}
    for item in counts:
        kinds = totals.setdefault(item.action, {})
        kinds[item.kind] = kinds.get(item.kind, 0) + item.count
    return ", ".join(
        f"{verb} {_list_kinds(totals[action])}" for action, verb in VERBS.items() if action in totals
    )


def _list_kinds(counts: Mapping[Kind, int]) -> str:
    """Return counts as in `1 prompt, 2 resources and 3 tasks`."""
    return join_words(format_count(counts[kind], kind) for kind in ENTITY_TYPES if kind in counts)


def join_words(words: Iterable[str]) -> str:
    """Join words as in `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _day_title(day: date, today: date) -> str:
    distance = (today - day).days
    if distance in (0, 1):
        return ("Today", "Yesterday")[distance]
    return f"{day:%A} {day.day} {day:%B}" + (f" {day.year}" if day.year != today.year else "")


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
