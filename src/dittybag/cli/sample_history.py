"""The history of the sample workspace: four weeks of work by people and agents."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterable
from datetime import datetime, time, timedelta
from typing import Any, Final

from dittybag.assembly.workspace_session import with_workspace
from dittybag.cli.sample_workspace import PROJECT, fill_sample
from dittybag.config import Settings
from dittybag.domain.claims import MAX_LEASE
from dittybag.services.caller import Caller
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.task_queue import ClaimRequest
from dittybag.services.workspace import Workspace

#: The project was created this many days ago.
_DAYS: Final = 27
_FIRST_HOUR: Final = 9
#: The time between two changes of a day, and of today, in microseconds.
_STEP: Final = 37 * 60 * 1_000_000
_STEP_TODAY: Final = 7 * 60 * 1_000_000
_MINUTE: Final = 60 * 1_000_000

_PEOPLE: Final = ("ann", "ben")
_CLAUDE, _CURSOR, _CODEX = _AGENTS = ("claude-code", "cursor", "codex")

#: Tasks that are done: the title, who added it and how many days ago, who finished it and how many days ago.
_FINISHED: Final = (
    ("Create the login page", "ann", 26, _CLAUDE, 25),
    ("Choose a password hash", "ben", 26, "ann", 24),
    ("Add a migration for users", "ann", 25, _CURSOR, 24),
    ("Return 401 for unknown users", _CLAUDE, 24, _CLAUDE, 22),
    ("Write down the threat model", "ben", 23, "ben", 21),
    ("Add a logout button", "ann", 22, _CURSOR, 21),
    ("Trim names before they are compared", _CURSOR, 21, _CODEX, 20),
    ("Set cookies with SameSite", _CODEX, 20, _CODEX, 18),
    ("Explain error messages to new users", "ann", 19, "ann", 17),
    ("Remove the old login form", "ben", 18, _CLAUDE, 17),
    ("Store the time of the last login", _CLAUDE, 17, _CLAUDE, 15),
    ("Test logins with long passwords", _CURSOR, 16, _CURSOR, 14),
    ("Test logins with emoji in names", _CURSOR, 16, _CURSOR, 14),
    ("Ask for a second factor", "ann", 15, _CODEX, 13),
    ("Log who signed in", "ben", 13, _CODEX, 11),
    ("Show the last login on the account page", "ann", 12, _CLAUDE, 10),
    ("Rename sessions to web sessions", _CLAUDE, 10, _CLAUDE, 8),
    ("Add a rate limit to the login", _CLAUDE, 8, "ann", 7),
    ("Translate the login page", "ben", 7, "ben", 6),
    ("Warn about weak passwords", "ann", 6, _CODEX, 4),
    ("Fix the redirect after the login", _CURSOR, 4, _CURSOR, 3),
    ("Shorten the session to a week", "ben", 3, _CLAUDE, 2),
    ("Measure how long logins take", _CODEX, 2, _CODEX, 1),
    ("Sort sessions by their last use", "ann", 1, _CURSOR, 0),
)
#: Changes of prompts: how many days ago, by whom, the name of the prompt, and its changed fields.
_EDITS: Final[tuple[tuple[int, str, str, dict[str, Any]], ...]] = (
    (24, "ann", "commit-message", {"description": "For every repository of the team"}),
    (20, _CLAUDE, "refactor-guide", {"tags": ["refactoring"]}),
    (16, "ben", "threat-model", {"description": "Who could attack the login, and what stops them"}),
    (12, _CURSOR, "explain-error", {"tags": ["debugging"]}),
    (9, _CLAUDE, "code-review", {"tags": ["security", "review"]}),
    (5, "ann", "code-review", {"title": "Security review"}),
    (
        0,
        _CLAUDE,
        "code-review",
        {
            "content": "Please review the authentication code in this project for security issues. Focus "
            "on:\n- Input validation\n- SQL injection risks\n- Authentication bypass vulnerabilities\n"
            "- Password storage\n- Session fixation"
        },
    ),
    (0, "ann", "threat-model", {"tags": ["security"]}),
    (0, _CODEX, "refactor-guide", {"description": "Guide for refactoring the auth module, step by step"}),
)
#: Further resources: how many days ago, by whom, and the fields.
_REPORTS: Final = (
    (
        6,
        _CLAUDE,
        {
            "name": "login-times",
            "title": "Login times",
            "uri": "file:///reports/login-times.csv",
            "mime_type": "text/csv",
            "description": "How long logins took last week",
            "content": "day,logins,median ms\nMonday,412,38\nTuesday,398,41\n"
            "Wednesday,455,37\nThursday,430,39\n",
        },
    ),
    (
        3,
        _CURSOR,
        {
            "name": "settings",
            "uri": "file:///settings.json",
            "mime_type": "application/json",
            "description": "Login settings",
            "content": '{"login": {"attempts": 5, "lockout": {"minutes": 15, "notify": ["ann"]}}, '
            '"mfa": true}\n',
        },
    ),
    (
        0,
        _CODEX,
        {
            "name": "audit-notes",
            "uri": "file:///reports/audit.md",
            "mime_type": "text/markdown",
            "description": "What the audit of the login found",
            "content": "# Audit of the login\n\n- Failed logins are not logged.\n"
            "- Sessions end after a week.\n",
        },
    ),
)


class SampleClock:
    """A clock that returns planned times, one after the other, and then stays at the last one."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._planned: deque[int] = deque()
        self._last = _microseconds(now)

    def __call__(self) -> int:
        if self._planned:
            self._last = self._planned.popleft()
        return self._last

    def plan(self, times: Iterable[int]) -> None:
        """Return these times next."""
        self._planned = deque(times)

    def morning(self, days_ago: int) -> int:
        """Return when the work of a day begins. Today, it began an hour ago."""
        day = self.now.date() - timedelta(days_ago)
        start = datetime.combine(day, time(_FIRST_HOUR)).astimezone()
        return _microseconds(start if days_ago else self.now - timedelta(hours=1))


def _microseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000)


def fill_demo(settings: Settings) -> None:
    """Fill an empty workspace with the sample data and its history."""
    clock = SampleClock(datetime.now().astimezone())
    with_workspace(settings, lambda workspace: _SampleHistory(workspace, clock).fill(), clock=clock)


class _SampleHistory:
    """Makes the changes of people and agents.

    All of them are passed to the store at once, so that it commits many together. It executes them in order,
    so the ids of new tasks are known in advance.
    """

    def __init__(self, workspace: Workspace, clock: SampleClock) -> None:
        self._workspace = workspace
        self._clock = clock
        self._project = 0
        #: The ids of tasks by title.
        self._ids: dict[str, int] = {}
        #: Changes to make, and their times.
        self._changes: list[tuple[int, Awaitable[Any]]] = []
        self._day = _DAYS

    async def fill(self) -> None:
        workspace, clock = self._workspace, self._clock
        clock.plan([clock.morning(_DAYS)])
        self._ids = await fill_sample(workspace, "ann via web", "web")
        self._project = (await workspace.projects.find(PROJECT)).id
        special = {5: self._plan_release, 2: self._add_due_tasks, 1: self._review}
        for self._day in range(_DAYS - 1, -1, -1):
            self._plan_day()
            special.get(self._day, lambda: None)()
        clock.plan(at for at, _ in self._changes)
        await asyncio.gather(*(change for _, change in self._changes))
        clock.plan([_microseconds(clock.now)])
        hashing = self._ids["Hash passwords with argon2"]
        await workspace.task_queue.claim(
            self._caller(_CLAUDE), hashing, ClaimRequest(lease_seconds=MAX_LEASE)
        )

    def _caller(self, actor: str) -> Caller:
        is_person = actor in _PEOPLE
        name = f"{actor} via web" if is_person else actor
        return Caller(self._project, name, interface="web" if is_person else "mcp")

    def _due(self, days: int, at: str = "") -> str:
        return f"{self._clock.now.date() + timedelta(days)}{at}"

    def _make(self, change: Awaitable[Any]) -> None:
        """Plan a change for the current day."""
        start = self._clock.morning(self._day)
        last = self._changes[-1][0] if self._changes else 0
        self._changes.append((max(start, last + (_STEP if self._day else _STEP_TODAY)), change))

    def _plan_day(self) -> None:
        workspace, today = self._workspace, self._day
        for title, actor, day, _, _ in _FINISHED:
            if day == today:
                self._add(actor, title)
        for title, _, _, actor, day in _FINISHED:
            if day == today:
                self._make(workspace.task_queue.finish(self._caller(actor), self._ids[title]))
        for day, actor, name, fields in _EDITS:
            if day == today:
                address, change = PromptAddress(name=name), PromptChange(**fields)
                self._make(workspace.prompts.update(self._caller(actor), address, change))
        for day, actor, values in _REPORTS:
            if day == today:
                self._make(workspace.resources.create(self._caller(actor), **values))

    def _add(self, actor: str, title: str, **fields: Any) -> int:
        """Plan a new task. Returns its id."""
        self._make(self._workspace.tasks.create(self._caller(actor), title=title, **fields))
        self._ids[title] = number = max(self._ids.values()) + 1
        return number

    def _update(self, actor: str, number: int, **fields: Any) -> None:
        self._make(self._workspace.tasks.update(self._caller(actor), number, **fields))

    def _plan_release(self) -> None:
        """Let a person plan a release, and an agent add to it."""
        ids = self._ids
        release = self._add("ann", "Release the login", priority=4, labels=("release",))
        hashing, documenting = ids["Hash passwords with argon2"], ids["Document the login endpoint"]
        limit = ids["Add a rate limit to the login"]
        self._update("ann", limit, parent=release, comment="Five attempts in 15 minutes")
        tests = self._add(
            _CURSOR,
            "Cover the login with tests",
            priority=4,
            energy="deep",
            parent=release,
            blocked_by=(hashing, limit),
            labels=("tests",),
            due_date=self._due(3),
        )
        security: dict[str, Any] = {"labels": ("security",), "links": ("code-review",)}
        self._update("ann", hashing, parent=release, due_date=self._due(1), **security)
        docs: dict[str, Any] = {"labels": ("docs",), "blocked_by": (tests,)}
        self._update("ann", documenting, parent=release, due_date=self._due(0), **docs)
        self._add(
            "ann", "Announce the new login", assignee="ann", blocked_by=(release,), due_date=self._due(5)
        )

    def _add_due_tasks(self) -> None:
        """Add tasks that are overdue today, or due soon."""
        self._add("ben", "Rotate the signing key", priority=5, labels=("keys",), due_date=self._due(-2))
        self._add("ann", "Answer the auditors", priority=4, assignee="ben", due_date=self._due(-1, "T17:00"))
        self._add(
            "ann",
            "Review the threat model",
            parent=self._ids["Release the login"],
            assignee=_CURSOR,
            labels=("security",),
            links=("threat-model",),
            due_date=self._due(0),
        )

    def _review(self) -> None:
        """Hand a task in for review, discuss another one, and add what was found."""
        self._make(
            self._workspace.task_queue.finish(
                self._caller(_CURSOR),
                self._ids["Review the threat model"],
                status="review",
                comment="Session fixation was missing",
            )
        )
        key = self._ids["Rotate the signing key"]
        self._update(_CODEX, key, comment="The old key is used by two services")
        self._update("ben", key, comment="Then both need the new one first")
        self._add(_CLAUDE, "Log failed logins", labels=("security",), due_date=self._due(2))
