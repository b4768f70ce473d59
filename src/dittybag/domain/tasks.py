"""Tasks, their fields and their validation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from dittybag.domain.errors import Check, Problem, clip, field_problems
from dittybag.domain.text import body_problem, line_problem, one_line

TITLE_LENGTH: Final = 500
PROJECT_LENGTH: Final = 100
TIME_ESTIMATE_LENGTH: Final = 50
NOTES_BYTES: Final = 1024 * 1024
PRIORITIES: Final = (1, 5)
ENERGIES: Final = ("light", "medium", "deep")
DEFAULT_PRIORITY: Final = 3
DEFAULT_ENERGY: Final = "medium"
DEFAULT_TIME_ESTIMATE: Final = "1hr"

#: What has become of a task. `dropped`: it will not be done.
TaskStatus = Literal["todo", "doing", "review", "done", "dropped"]
STATUSES: Final[tuple[TaskStatus, ...]] = ("todo", "doing", "review", "done", "dropped")
DEFAULT_STATUS: Final = "todo"
#: In these, a task no longer blocks others.
ENDED: Final[frozenset[TaskStatus]] = frozenset(("done", "dropped"))

ASSIGNEE_LENGTH: Final = 200
LABEL_LENGTH: Final = 50
MAX_LABELS: Final = 20
LINK_LENGTH: Final = 2_000
MAX_LINKS: Final = 50
MAX_BLOCKERS: Final = 100
COMMENT_LENGTH: Final = 10_000
MAX_COMMENTS: Final = 200

_TEXT_DEFAULTS: Final = (
    ("energy", DEFAULT_ENERGY),
    ("time_estimate", DEFAULT_TIME_ESTIMATE),
    ("status", DEFAULT_STATUS),
)

#: The name in filters and statistics for tasks without a project.
NO_PROJECT: Final = "(no project)"

#: The owner of tasks where authentication is off.
DEFAULT_USER: Final = "dev-user"

#: Compiled on first use, which takes a millisecond.
_DATE: Final = (
    r"(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
    r"(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?"
)


class Comment(Struct, frozen=True):
    """A comment on a task."""

    #: Microseconds since 1970.
    at: int
    author: str
    text: str


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task of a user, or of a project."""

    #: Increasing; 0 until the task is stored.
    id: int
    #: Who created it. Without a `project_id`, nobody else can see it.
    user: str
    title: str
    #: The name of the project that it belongs to, or any text.
    project: str | None = None
    priority: int = DEFAULT_PRIORITY
    energy: str = DEFAULT_ENERGY
    time_estimate: str = DEFAULT_TIME_ESTIMATE
    notes: str | None = None
    due_date: str | None = None
    completed_at: int | None = None
    created_at: int
    updated_at: int
    version: int = 1
    status: TaskStatus = DEFAULT_STATUS
    #: The project that it belongs to, whose members share it; `None` if it is its user's alone.
    project_id: int | None = None
    #: The tasks that must be done or dropped before this one.
    blocked_by: tuple[int, ...] = ()
    #: The task that this one is a part of.
    parent: int | None = None
    #: A user, or what an agent calls itself.
    assignee: str | None = None
    labels: tuple[str, ...] = ()
    #: Names of prompts, URIs of resources, and URLs.
    links: tuple[str, ...] = ()
    #: Oldest first.
    comments: tuple[Comment, ...] = ()

    def __post_init__(self) -> None:
        # A task is completed if and only if it is done. Older states have no status.
        if (self.status == "done") != self.completed:
            force_setattr(self, "status", "done" if self.completed else DEFAULT_STATUS)
        # Encoding omits a default only if it is the same object. An empty text counts as absent.
        for name, default in _TEXT_DEFAULTS:
            if getattr(self, name) in ("", default):
                force_setattr(self, name, default)

    @property
    def completed(self) -> bool:
        return self.completed_at is not None

    @property
    def label(self) -> str:
        """The title on one line for people; the number if it is blank."""
        return one_line(self.title, TITLE_LENGTH) or f"task {self.id}"

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do, so that it blocks no other task."""
        return self.status in ENDED


class TaskGroup(Struct, frozen=True):
    """The number of tasks of a project with a priority, and how many of them are completed."""

    project: str | None
    priority: int
    total: int
    completed: int


#: The columns of the board by status: the statuses of their tasks, and whether they wait for others.
BOARD_COLUMNS: Final[Mapping[str, tuple[tuple[TaskStatus, ...], bool | None]]] = {
    "ready": (("todo",), False),
    "doing": (("doing",), None),
    "blocked": (("todo",), True),
    "review": (("review",), None),
    "done": (("done",), None),
}
#: The field that defines the columns of a board.
TaskGrouping = Literal["priority", "project", "energy"]
#: Highest priority first, earliest due date first, newest first, or most recently completed first.
TaskOrder = Literal["priority", "due", "newest", "done"]


class TaskFilter(Struct, frozen=True, kw_only=True):
    """A filter for tasks: all given conditions must match."""

    completed: bool = False
    #: With one of these statuses, instead of `completed`.
    statuses: tuple[TaskStatus, ...] = ()
    #: Whether it waits for other tasks.
    waiting: bool | None = None
    assignee: str | None = None
    label: str | None = None
    #: Only parts of this task.
    parent: int | None = None
    #: Empty for tasks without a project.
    project: str | None = None
    priority: int | None = None
    energy: str | None = None
    #: The first and the last due day, in ISO 8601.
    due_from: str | None = None
    due_by: str | None = None
    #: Only tasks that are overdue at this minute, given as local time and as UTC, as in 2026-03-01T17:00.
    overdue_at: tuple[str, str] | None = None
    #: Text in title or notes, ignoring case.
    text: str = ""


class TaskListing(Struct, frozen=True):
    """A task as shown in lists."""

    id: int
    title: str
    project: str | None
    priority: int
    energy: str
    time_estimate: str
    due_date: str | None
    completed_at: int | None
    version: int
    #: The first characters of the notes.
    notes: str
    status: TaskStatus = DEFAULT_STATUS
    assignee: str | None = None
    labels: tuple[str, ...] = ()
    parent: int | None = None
    #: Whether it belongs to a project, whose members share it.
    shared: bool = False
    #: The number of open tasks that it waits for.
    waits_for: int = 0
    #: Who holds it and until when, in microseconds since 1970. The claim may have lapsed.
    holder: str | None = None
    held_until: int | None = None
    #: How the holder claimed it: in the web UI, by a command, or by a tool of an MCP server.
    claimed_via: Literal["web", "cli", "mcp"] | None = None
    #: The project that it belongs to.
    project_id: int | None = None
    #: The number of its parts, and of those that are neither done nor dropped.
    parts: int = 0
    open_parts: int = 0
    #: The number of its comments.
    comments: int = 0

    @property
    def label(self) -> str:
        """The title on one line for people; the number if it is blank."""
        return one_line(self.title, TITLE_LENGTH) or f"task {self.id}"

    @property
    def completed(self) -> bool:
        return self.completed_at is not None

    @property
    def ended(self) -> bool:
        return self.status in ENDED


#: Maximum number of characters of the notes in a listing.
LISTED_NOTES: Final = 160


class TaskColumn(Struct, frozen=True):
    """A column of a board: the number of its tasks and the first of them."""

    #: The priority, project or energy of the tasks; an empty string for no project.
    key: int | str
    total: int
    tasks: list[TaskListing]


def problems(**fields: Any) -> list[Problem]:
    """Return all problems with the given fields. An empty due date is valid."""
    return field_problems(_CHECKS, fields)


def _text(
    label: str, min_length: int, max_length: int, problem: Callable[[str, str], str | None] = body_problem
) -> Check:
    """Return a check for a text of any characters but NUL, unless `problem` allows fewer."""

    def check(text: str) -> str | None:
        if not min_length <= len(text) <= max_length:
            if min_length:
                return f"{label} must be between {min_length} and {max_length} characters"
            return f"{label} must be at most {max_length} characters"
        return problem(label, text)

    return check


def _notes_problem(notes: str) -> str | None:
    if (size := len(notes.encode())) > NOTES_BYTES:
        return f"Notes must be at most {NOTES_BYTES} bytes, but have {size}"
    return body_problem("Notes", notes)


def _priority_problem(priority: int) -> str | None:
    low, high = PRIORITIES
    return None if low <= priority <= high else f"Priority must be between {low} and {high}"


def _energy_problem(energy: str) -> str | None:
    return None if energy in ENERGIES else f"Energy must be one of {', '.join(ENERGIES)}"


def _due_date_problem(due_date: str) -> str | None:
    if not due_date or _is_date(due_date):
        return None
    return "due_date must be an ISO 8601 date or date-time, as in 2026-03-01 or 2026-03-01T17:00:00Z"


def _status_problem(status: str) -> str | None:
    return None if status in STATUSES else f"status must be one of {', '.join(STATUSES)}"


def _lines(label: str, plural: str, max_count: int, max_length: int) -> Check:
    """Return a check for a list of lines."""

    def problem(texts: Sequence[str]) -> str | None:
        if len(texts) > max_count:
            return f"At most {max_count} {plural} are allowed, not {len(texts)}"
        for text in texts:
            if not 1 <= len(text) <= max_length:
                return f"{label} '{clip(text, 60)}' must be between 1 and {max_length} characters"
            if (found := line_problem(label, text)) is not None:
                return found
        return None

    return problem


def _blockers_problem(blocked_by: Sequence[int]) -> str | None:
    if len(blocked_by) > MAX_BLOCKERS:
        return f"A task can be blocked by at most {MAX_BLOCKERS} others, not {len(blocked_by)}"
    return None


def _comments_problem(comments: Sequence[Comment]) -> str | None:
    if len(comments) > MAX_COMMENTS:
        return f"A task can have at most {MAX_COMMENTS} comments"
    for comment in comments:
        if (found := comment_problem(comment.text)) is not None:
            return found
    return None


def comment_problem(text: str) -> str | None:
    """Return what is wrong with the text of a comment."""
    if not 1 <= len(text) <= COMMENT_LENGTH:
        return f"A comment must be between 1 and {COMMENT_LENGTH} characters"
    return body_problem("Comment", text)


_CHECKS: Final[Mapping[str, Check]] = {
    "title": _text("Title", 1, TITLE_LENGTH),
    "project": _text("Project", 0, PROJECT_LENGTH),
    "priority": _priority_problem,
    "energy": _energy_problem,
    "time_estimate": _text("time_estimate", 0, TIME_ESTIMATE_LENGTH),
    "notes": _notes_problem,
    "due_date": _due_date_problem,
    "status": _status_problem,
    "blocked_by": _blockers_problem,
    "assignee": _text("Assignee", 0, ASSIGNEE_LENGTH, line_problem),
    "labels": _lines("Label", "labels", MAX_LABELS, LABEL_LENGTH),
    "links": _lines("Link", "links", MAX_LINKS, LINK_LENGTH),
    "comments": _comments_problem,
}


def _is_date(text: str) -> bool:
    if not text.isascii() or not re.fullmatch(_DATE, text):
        return False
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    if month == 2:
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return day <= (29 if leap else 28)
    return day <= (30 if month in (4, 6, 9, 11) else 31)
