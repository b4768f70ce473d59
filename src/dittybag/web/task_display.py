"""Tasks as pages show them: what is asked for in an address, and words for what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.changes import Change
from dittybag.domain.due_dates import local_due_day, format_due, is_overdue
from dittybag.domain.tasks import ENERGIES, PRIORITIES, Task, TaskFilter, TaskGrouping, TaskListing, TaskOrder
from dittybag.domain.text import QUERY_LENGTH
from dittybag.web.browser_requests import Request

PRIORITY_NAMES: Final = {5: "Critical", 4: "High", 3: "Normal", 2: "Low", 1: "Someday"}
ENERGY_NAMES: Final = {"deep": "Deep", "medium": "Medium", "light": "Light"}
#: What stands in an address for those that belong to no project.
NO_PROJECT: Final = "(none)"

KEYS: Final[tuple[TaskGrouping, ...]] = ("priority", "project", "energy")
VIEWS: Final = ("board", "list", "stats")
ORDERS: Final[dict[str, TaskOrder]] = {"priority": "priority", "due": "due", "newest": "newest"}
DUE: Final = {"overdue": "Overdue", "today": "Due today", "week": "Due within a week"}
_WEEK_DAYS: Final = 7
#: So far ahead, and behind, days are counted.
_COUNTED_DAYS: Final = 60


def now() -> datetime:
    """The time here."""
    return datetime.now().astimezone()


class Filters(Struct, frozen=True):
    """What is asked for, as fields of a form have it; an empty text for anything."""

    project: str = ""
    priority: str = ""
    energy: str = ""
    due: str = ""
    text: str = ""

    @property
    def given(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.__struct_fields__ if getattr(self, name)}


def filters_of(query: Mapping[str, str]) -> Filters:
    """The filters of an address; what makes no sense is as good as nothing."""
    priority, energy, due = (query.get(name, "") for name in ("priority", "energy", "due"))
    return Filters(
        project=query.get("project", "").strip()[:QUERY_LENGTH],
        priority=priority if priority in {str(number) for number in PRIORITY_NAMES} else "",
        energy=energy if energy in ENERGIES else "",
        due=due if due in DUE else "",
        text=query.get("text", "").strip(),
    )


def choice_of(filters: Filters, here: datetime, *, completed: bool) -> TaskFilter:
    """Which tasks are meant."""
    today = here.date()
    days = {"today": today, "week": today + timedelta(_WEEK_DAYS - 1)}
    last = days.get(filters.due)
    project: str | None = filters.project or None
    return TaskFilter(
        completed=completed,
        project="" if project == NO_PROJECT else project,
        priority=int(filters.priority) if filters.priority else None,
        energy=filters.energy or None,
        due_from=None if last is None else today.isoformat(),
        due_by=None if last is None else last.isoformat(),
        overdue_at=(_minute(here), _minute(here.astimezone(UTC))) if filters.due == "overdue" else None,
        text=filters.text,
    )


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M}"


class Due(Struct, frozen=True):
    """When something is due, in words."""

    words: str
    #: As it is stored.
    exact: str
    #: The day alone, for machines.
    day: str
    is_overdue: bool
    is_today: bool


def due_of(task: Task | TaskListing, here: datetime) -> Due | None:
    """When a task is due, if it is due at all; what is done is never overdue."""
    if task.due_date is None:
        return None
    return due_in_words(task.due_date, here, is_open=not task.completed)


def due_in_words(due: str, here: datetime, *, is_open: bool = True) -> Due:
    """A due date, as far away as it is."""
    day = local_due_day(due)
    distance = (date.fromisoformat(day) - here.date()).days
    words = format_due(due, here)
    if -_COUNTED_DAYS < distance < -1:
        words = f"{-distance} days ago"
    elif _WEEK_DAYS <= distance < _COUNTED_DAYS:
        words = f"in {distance} days"
    return Due(
        words=words,
        exact=due,
        day=day,
        is_overdue=is_open and is_overdue(due, here),
        is_today=is_open and distance == 0,
    )


class Card(Struct, frozen=True):
    """A task on a board or in a list."""

    task: TaskListing
    due: Due | None


class Column(Struct, frozen=True):
    """A column of a board: what its tasks share, and how many there are."""

    #: For forms.
    value: str
    title: str
    total: int
    cards: list[Card]
    #: The list of all of them.
    address: str

    @property
    def more(self) -> int:
        return self.total - len(self.cards)


def column_title(by: TaskGrouping, key: int | str) -> str:
    """What a column is called."""
    if by == "priority":
        return f"{key} · {PRIORITY_NAMES[int(key)]}"
    if by == "energy":
        return ENERGY_NAMES[str(key)]
    return str(key) or "No project"


def column_filter(by: TaskGrouping, key: int | str) -> dict[str, str]:
    """What an address says about the tasks of a column."""
    return {by: str(key) or NO_PROJECT}


def happened(change: Change) -> str:
    """What was done to a task, in words."""
    before, after = change.before, change.after
    task = after if after is not None else before
    assert isinstance(task, Task)
    name = f"‘{task.title}’"
    if change.action == "restore":
        return f"{name} is gone again" if after is None else f"{name} is as it was before"
    if before is None:
        return f"Added {name}"
    if after is None:
        return f"Deleted {name}"
    assert isinstance(before, Task)
    if task.completed != before.completed:
        return f"{'Completed' if task.completed else 'Reopened'} {name}"
    return _changed(before, task, name)


def _changed(before: Task, task: Task, name: str) -> str:
    news: dict[str, Any] = {
        field: getattr(task, field)
        for field in ("title", "project", "priority", "energy", "time_estimate", "notes", "due_date")
        if getattr(task, field) != getattr(before, field)
    }
    match list(news.items()):
        case [("priority", value)]:
            return f"{name} has priority {value} now"
        case [("energy", value)]:
            return f"{name} takes {value} energy now"
        case [("project", value)]:
            return f"{name} belongs to {value or 'no project'} now"
    return f"Saved {name}"


def task_number(request: Request) -> int:
    """The number in the address; one that no task has, if it is none."""
    text = request.parameters["id"]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def priorities() -> list[tuple[int, str]]:
    """All of them with their names, the highest first."""
    return [(number, PRIORITY_NAMES[number]) for number in range(PRIORITIES[1], PRIORITIES[0] - 1, -1)]
