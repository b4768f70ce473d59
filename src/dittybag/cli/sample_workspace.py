"""The sample workspace of the demo: a project `auth-module` with prompts, resources and tasks."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from dittybag.domain.changes import Interface
from dittybag.domain.claims import MAX_LEASE
from dittybag.domain.prompts import Argument
from dittybag.services.caller import Caller
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.task_queue import ClaimRequest
from dittybag.services.workspace import Workspace

PROJECT: Final = "auth-module"
_PERSON: Final = "ann via web"
_AGENT: Final = "claude-code"

_PROMPTS: Final = (
    {
        "name": "code-review",
        "description": "Review authentication code for security issues",
        "content": "Please review the authentication code in this project for security issues. Focus "
        "on:\n- Input validation\n- SQL injection risks\n- Authentication bypass vulnerabilities\n"
        "- Password storage",
    },
    {
        "name": "refactor-guide",
        "description": "Guide for refactoring auth module",
        "content": "Refactor the auth module step by step: identify the seams, write the missing tests, "
        "move one responsibility at a time, and keep every commit green.",
    },
    {
        "title": "Threat Model",
        "tags": ["security", "design"],
        "content": "List who could attack the login, what they want and what stops them. End with the three "
        "gaps that matter most.",
    },
    {
        "title": "Commit Message",
        "tags": ["git", "writing"],
        "content": "Write a commit message: a subject of at most 60 characters that says what changed for "
        "the reader, then why.",
    },
)
_EXPLAIN: Final = {
    "name": "explain-error",
    "description": "Explain an error message to someone who has never seen it",
    "content": "Explain this {{ language }} error in plain words, then name the likeliest "
    "fix:\n\n{{ error }}",
    "arguments": [
        Argument(name="error", description="The error message", required=True),
        Argument(name="language", description="The language of the program", choices=("Python", "SQL", "Go")),
    ],
}
_RESOURCES: Final = (
    {
        "name": "api-docs",
        "title": "API Documentation",
        "uri": "file:///docs/api.md",
        "mime_type": "text/markdown",
        "description": "REST API documentation",
        "content": "# API Documentation\n\n## Authentication\n\n`POST /login` takes a name and a password "
        "and returns a token that is valid for one hour.\n",
    },
    {
        "name": "schema",
        "title": "Database Schema",
        "uri": "file:///schema.sql",
        "mime_type": "application/sql",
        "description": "SQLite database schema",
        "content": "CREATE TABLE users (\n    id INTEGER PRIMARY KEY,\n    name TEXT NOT NULL UNIQUE,\n"
        "    password_hash TEXT NOT NULL\n);\n",
    },
    {
        "name": "logo",
        "uri": "file:///logo.png",
        "mime_type": "image/png",
        "description": "A green square",
        "content": "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGPQ6w7HihiGlgQAiA5EAZSj"
        "A9sAAAAASUVORK5CYII=",
    },
)
_TASKS: Final[tuple[dict[str, Any], ...]] = (
    {"title": "Hash passwords with argon2", "project": PROJECT, "priority": 5, "energy": "deep"},
    {"title": "Document the login endpoint", "project": PROJECT, "priority": 3, "time_estimate": "30min"},
    {
        "title": "Ask about password rules",
        "project": None,
        "priority": 2,
        "energy": "light",
        "notes": "Who decides?",
    },
)

#: What an agent adds to the project.
_REPORTS: Final = (
    {
        "name": "login-times",
        "title": "Login times",
        "uri": "file:///reports/login-times.csv",
        "mime_type": "text/csv",
        "description": "How long logins took last week",
        "content": "day,logins,median ms\nMonday,412,38\nTuesday,398,41\nWednesday,455,37\nThursday,430,39\n",
    },
    {
        "name": "settings",
        "uri": "file:///settings.json",
        "mime_type": "application/json",
        "description": "Login settings",
        "content": '{"login": {"attempts": 5, "lockout": {"minutes": 15, "notify": ["ann"]}}, "mfa": true}\n',
    },
    {
        "name": "audit-notes",
        "uri": "file:///reports/audit.md",
        "mime_type": "text/markdown",
        "description": "What the audit of the login found",
        "content": "# Audit of the login\n\n- Failed logins are not logged.\n- Sessions end after a week.\n",
    },
)
_PINS: Final = ("code-review", "api-docs", "explain-error")

#: A prompt library, as in the repository of a team.
_LIBRARY: Final = {
    "twig.toml": """\
[prompts.commit]
description = "Write a commit message"

[[prompts.commit.arguments]]
name = "diff"
description = "The diff to describe"
required = true

[[prompts.commit.arguments]]
name = "ticket"
""",
    "prompts/commit.md": """\
Write a commit message for this change, in the imperative, at most 72 characters.
{%- if ticket %} Begin with {{ ticket }}.{% endif %}

{{ diff }}
""",
}


def write_library(home: Path) -> None:
    """Write the sample library to a data folder."""
    for name, text in _LIBRARY.items():
        file = home / "libraries" / "team" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


async def fill_sample(
    workspace: Workspace, actor: str = "demo", interface: Interface | None = None
) -> dict[str, int]:
    """Fill an empty workspace with the sample data. Returns the ids of the tasks by title."""
    project = await workspace.projects.create(PROJECT, actor=actor)
    caller = Caller(project.id, actor, interface=interface)
    # The store commits those together that it gets at once, in their order.
    await asyncio.gather(*(workspace.prompts.create(caller, **prompt) for prompt in (*_PROMPTS, _EXPLAIN)))
    await asyncio.gather(*(workspace.resources.create(caller, **resource) for resource in _RESOURCES))
    tasks = await asyncio.gather(*(workspace.tasks.create(caller, **task) for task in _TASKS))
    return {task.title: task.id for task in tasks}


async def fill_demo(workspace: Workspace) -> None:
    """Fill an empty workspace with the sample data, and with the work of a person and an agent on it."""
    ids = await fill_sample(workspace, _PERSON, "web")
    project = (await workspace.projects.find(PROJECT)).id
    person = Caller(project, _PERSON, interface="web")
    agent = Caller(project, _AGENT, interface="mcp")
    for name in _PINS:
        await workspace.pins.add(person, name, None)
    tasks = _SampleTasks(workspace, ids)
    await tasks.plan_release(person)
    await _review_content(workspace, agent)
    await tasks.work(agent)
    await tasks.answer(person)


async def _review_content(workspace: Workspace, agent: Caller) -> None:
    review = f"{_PROMPTS[0]['content']}\n- Session fixation"
    for name, change in (
        ("code-review", PromptChange(content=review)),
        ("refactor-guide", PromptChange(tags=["refactoring"])),
        ("threat-model", PromptChange(description="Who could attack the login, and what stops them")),
        ("explain-error", PromptChange(tags=["debugging"])),
    ):
        await workspace.prompts.update(agent, PromptAddress(name=name), change)
    for report in _REPORTS:
        await workspace.resources.create(agent, **report)


class _SampleTasks:
    """Adds tasks and works on them. Due dates are relative to today."""

    def __init__(self, workspace: Workspace, ids: dict[str, int]) -> None:
        self._tasks = workspace.tasks
        self._queue = workspace.task_queue
        self._ids = ids

    async def plan_release(self, person: Caller) -> None:
        """Plan a release, of which some tasks are overdue or due soon."""
        release = await self._add(person, "Release the login", priority=4, labels=("release",))
        limit = await self._add(person, "Add a rate limit to the login", parent=release)
        await self._update(
            person,
            "Hash passwords with argon2",
            parent=release,
            labels=("security",),
            links=("code-review",),
            due_date=_due(1),
        )
        hashing = self._ids["Hash passwords with argon2"]
        tests: dict[str, Any] = {"labels": ("tests",), "blocked_by": (hashing, limit)}
        await self._add(
            person, "Cover the login with tests", priority=4, parent=release, due_date=_due(3), **tests
        )
        await self._update(
            person, "Document the login endpoint", parent=release, labels=("docs",), due_date=_due(0)
        )
        await self._add(person, "Rotate the signing key", priority=5, labels=("keys",), due_date=_due(-2))
        await self._add(
            person, "Answer the auditors", priority=4, assignee="ann", due_date=_due(-1, "T17:00")
        )
        await self._add(
            person, "Announce the new login", assignee="ann", blocked_by=(release,), due_date=_due(5)
        )

    async def work(self, agent: Caller) -> None:
        """Finish a task, hand one in for review, claim one, and add what was found."""
        limit = self._ids["Add a rate limit to the login"]
        await self._queue.finish(agent, limit, comment="Five attempts in 15 minutes")
        model = await self._add(
            agent,
            "Review the threat model",
            parent=self._ids["Release the login"],
            labels=("security",),
            links=("threat-model",),
            due_date=_due(0),
        )
        await self._queue.finish(agent, model, status="review", comment="Session fixation was missing")
        await self._add(agent, "Log failed logins", labels=("security",), due_date=_due(2))
        await self._update(agent, "Rotate the signing key", comment="The old key is used by two services")
        hashing = self._ids["Hash passwords with argon2"]
        await self._queue.claim(agent, hashing, ClaimRequest(lease_seconds=MAX_LEASE))

    async def answer(self, person: Caller) -> None:
        """Answer the agent, and make one task wait for another."""
        await self._update(person, "Rotate the signing key", comment="Then both need the new one first")
        tests = self._ids["Cover the login with tests"]
        await self._update(person, "Document the login endpoint", blocked_by=(tests,))

    async def _add(self, caller: Caller, title: str, **fields: Any) -> int:
        task = await self._tasks.create(caller, title=title, **fields)
        self._ids[title] = task.id
        return task.id

    async def _update(self, caller: Caller, title: str, **fields: Any) -> None:
        await self._tasks.update(caller, self._ids[title], **fields)


def _due(days: int, at: str = "") -> str:
    return f"{datetime.now().astimezone().date() + timedelta(days)}{at}"
