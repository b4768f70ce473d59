"""Display values for tasks: filters, due dates, board columns and messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal

from msgspec import Struct

from dittybag.domain.changes import Change
from dittybag.domain.due_dates import format_due, is_overdue, local_due_day
from dittybag.domain.entities import type_of
from dittybag.domain.tasks import (
    ASSIGNEE_LENGTH,
    DEFAULT_ENERGY,
    DEFAULT_TIME_ESTIMATE,
    ENDED,
    LABEL_LENGTH,
    NO_PROJECT,
    STATUSES,
    Task,
    TaskFilter,
    TaskGrouping,
    TaskListing,
    TaskStatus,
)
from dittybag.domain.text import QUERY_LENGTH
from dittybag.web.browser_requests import WebRequest

PRIORITY_NAMES: Final = {5: "Critical", 4: "High", 3: "Normal", 2: "Low", 1: "Someday"}
PRIORITY_TITLES: Final = {number: f"{number} · {name}" for number, name in PRIORITY_NAMES.items()}
ENERGY_NAMES: Final = {"deep": "Deep", "medium": "Medium", "light": "Light"}
STATUS_NAMES: Final[Mapping[TaskStatus, str]] = {
    "todo": "To do",
    "doing": "Doing",
    "review": "Review",
    "done": "Done",
    "dropped": "Dropped",
}

#: What defines the columns of a board.
BoardGrouping = Literal["status"] | TaskGrouping
KEYS: Final[tuple[BoardGrouping, ...]] = ("status", "priority", "project")
#: The columns of the board by status, each with the status that a task gets there. No task can be moved to
#: the blocked ones: other tasks block it.
STATUS_COLUMNS: Final[Mapping[str, tuple[str, TaskStatus | None]]] = {
    "ready": ("Ready", "todo"),
    "doing": ("Doing", "doing"),
    "blocked": ("Blocked", None),
    "review": ("Review", "review"),
    "done": ("Done", "done"),
}
DUE_FILTERS: Final = {"overdue": "Overdue", "today": "Due today", "week": "Due within a week"}
_WEEK_DAYS: Final = 7
#: Due dates further away are shown as dates.
_MAX_COUNTED_DAYS: Final = 60


def local_now() -> datetime:
    """Return the current time in the local time zone."""
    return datetime.now().astimezone()


def local_time(at: int) -> datetime:
    """Return a stored time, in microseconds since 1970, in the local time zone."""
    return datetime.fromtimestamp(at / 1_000_000, UTC).astimezone()


def read_filters(request: WebRequest) -> dict[str, str]:
    """Read the filters from the query; an empty string means any. Raises `Invalid`."""
    return {
        "project": request.query.get("project", "").strip()[:QUERY_LENGTH],
        "label": request.query.get("label", "").strip()[:LABEL_LENGTH],
        "assignee": request.query.get("assignee", "").strip()[:ASSIGNEE_LENGTH],
        "priority": request.chosen("priority", map(str, PRIORITY_NAMES), ""),
        "due": request.chosen("due", DUE_FILTERS, ""),
        "text": request.query.get("text", "").strip(),
    }


def read_status(request: WebRequest) -> TaskStatus | None:
    """Read the status that listed tasks have; `None` for tasks that are neither done nor dropped."""
    return request.chosen("status", STATUSES, None)


def describe_filters(filters: Mapping[str, str], status: TaskStatus | None) -> list[tuple[str, str, str]]:
    """Return each filter as a query parameter, its label and its value for display."""
    titles: dict[str, Mapping[str, str]] = {
        "priority": {str(number): title for number, title in PRIORITY_TITLES.items()},
        "due": DUE_FILTERS,
    }
    shown = {
        name: titles[name].get(value, "") if name in titles else value for name, value in filters.items()
    }
    return [
        ("status", "Status", "" if status is None else STATUS_NAMES[status]),
        *((name, name.capitalize(), value) for name, value in shown.items()),
    ]


def to_task_filter(filters: Mapping[str, str], now: datetime, status: TaskStatus | None) -> TaskFilter:
    """Convert the filters to a query for tasks."""
    today, due = now.date(), filters["due"]
    last = {"today": today, "week": today + timedelta(_WEEK_DAYS - 1)}.get(due)
    project = filters["project"] or None
    return TaskFilter(
        completed=status == "done",
        statuses=() if status in (None, "done") else (status,),
        project="" if project == NO_PROJECT else project,
        label=filters["label"] or None,
        assignee=filters["assignee"] or None,
        priority=int(filters["priority"]) if filters["priority"] else None,
        due_from=None if last is None else today.isoformat(),
        due_by=None if last is None else last.isoformat(),
        overdue_at=(_minute(now), _minute(now.astimezone(UTC))) if due == "overdue" else None,
        text=filters["text"],
    )


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M}"


class DueDisplay(Struct, frozen=True):
    """A due date for display."""

    label: str
    #: As stored.
    exact: str
    #: The date in ISO 8601, for the attribute `datetime`.
    day: str
    is_overdue: bool
    is_today: bool


def due_of(task: Task | TaskListing, now: datetime) -> DueDisplay | None:
    """Return the due date of a task, or None; a completed task is never overdue."""
    if task.due_date is None:
        return None
    return describe_due(task.due_date, now, is_open=task.status not in ENDED)


def describe_due(due: str, now: datetime, *, is_open: bool = True) -> DueDisplay:
    """Describe a due date relative to now."""
    day = local_due_day(due)
    distance = (date.fromisoformat(day) - now.date()).days
    label = format_due(due, now)
    if -_MAX_COUNTED_DAYS < distance < -1:
        label = f"{-distance} days ago"
    elif _WEEK_DAYS <= distance < _MAX_COUNTED_DAYS:
        label = f"in {distance} days"
    return DueDisplay(
        label=label,
        exact=due,
        day=day,
        is_overdue=is_open and is_overdue(due, now),
        is_today=is_open and distance == 0,
    )


def effort_of(task: Task | TaskListing) -> list[str]:
    """Return the energy and the time estimate of a task, if somebody set them."""
    return [
        *([task.energy] if task.energy != DEFAULT_ENERGY else []),
        *([task.time_estimate] if task.time_estimate != DEFAULT_TIME_ESTIMATE else []),
    ]


def task_facts(task: Task) -> list[str]:
    """Return the status, the project, the assignee and the labels of a task in words."""
    return [
        STATUS_NAMES[task.status],
        *([task.project] if task.project else []),
        *([f"assigned to {task.assignee}"] if task.assignee else []),
        *task.labels,
    ]


def column_title(by: BoardGrouping, key: int | str | None) -> str:
    """Return the title of a status column, priority or project."""
    if by == "status":
        return STATUS_COLUMNS[str(key)][0]
    if by == "priority":
        return PRIORITY_TITLES[int(key or 0)]
    return str(key or "No project")


def suggestions(tasks: Iterable[TaskListing]) -> tuple[list[str], list[str]]:
    """Return the labels and the assignees of tasks, to choose a filter from."""
    found = list(tasks)
    labels = {label for task in found for label in task.labels}
    return sorted(labels), sorted({task.assignee for task in found if task.assignee})


def describe_change(change: Change) -> str:
    """Describe the latest change of a task, as in `Completed ‘Call bank’`."""
    before, after = change.before, change.after
    name = f"‘{change.label}’"
    if change.verb != "changed":
        # A restored version is also called restored.
        verb = {"created": "Added", "reverted": "Restored"}.get(change.verb, change.verb.capitalize())
        return f"{verb} {name}"
    if isinstance(before, Task) and isinstance(after, Task):
        match [field.name for field in type_of(after).changed_fields(before, after)]:
            case ["priority"]:
                return f"{name} now has priority {after.priority}"
            case ["energy"]:
                return f"{name} now has {after.energy} energy"
            case ["project"]:
                return f"{name} now belongs to {after.project or 'no project'}"
            case ["status"]:
                return f"{name} is now {_STATUS_PHRASES[after.status]}"
            case ["status", "assignee"] if after.status == "todo" and not after.assignee:
                return f"{name} is to do again, and nobody holds it"
            case ["status", "assignee"] if after.status == "doing":
                return f"{name} is in progress now, for {after.assignee}"
            case ["comments"]:
                return f"Commented on {name}"
    return f"Saved {name}"


_STATUS_PHRASES: Final[Mapping[TaskStatus, str]] = {
    "todo": "to do",
    "doing": "in progress",
    "review": "in review",
    "done": "done",
    "dropped": "dropped",
}


def summarise_change(change: Change) -> str:
    """Say in a few words what an update of a task changed for its team, as in `to do → doing, for cursor`."""
    before, after = change.before, change.after
    if not isinstance(before, Task) or not isinstance(after, Task):
        return ""
    parts = []
    if before.status != after.status:
        parts.append(f"{STATUS_NAMES[before.status].lower()} → {STATUS_NAMES[after.status].lower()}")
    if before.assignee != after.assignee:
        parts.append(f"assigned to {after.assignee}" if after.assignee else "assigned to nobody")
    if before.project != after.project:
        parts.append(f"moved to {after.project}" if after.project else "taken out of its project")
    return ", ".join(parts)
