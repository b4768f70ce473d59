"""The sample workspace of the demo: a project `auth-module` with prompts, resources and tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from dittybag.domain.claims import MAX_LEASE
from dittybag.domain.prompts import Argument
from dittybag.services.caller import Caller
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.task_queue import ClaimRequest
from dittybag.services.workspace import Workspace

PROJECT: Final = "auth-module"

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


async def fill_sample(workspace: Workspace) -> None:
    """Fill an empty workspace with the sample data."""
    project = await workspace.projects.create(PROJECT, actor="demo")
    caller = Caller(project.id, "demo")
    for prompt in (*_PROMPTS, _EXPLAIN):
        await workspace.prompts.create(caller, **prompt)
    for resource in _RESOURCES:
        await workspace.resources.create(caller, **resource)
    for task in _TASKS:
        await workspace.tasks.create(caller, **task)


async def make_changes(workspace: Workspace) -> None:
    """Make changes as several agents and users, so that the sample has a history."""
    project = await workspace.projects.find(PROJECT)
    claude, cursor = (Caller(project.id, actor, interface="mcp") for actor in ("claude-code", "cursor"))
    ann = Caller(project.id, "ann via web", interface="web")
    review = PromptAddress(name="code-review")
    found = await workspace.prompts.get(claude, review)
    await workspace.prompts.update(
        claude,
        review,
        PromptChange(content=f"{found.content}\n- Session fixation", tags=["security", "review"]),
    )
    await workspace.prompts.update(ann, review, PromptChange(title="Security review"))
    await _share_work(workspace, ann, claude, cursor)
    await workspace.resources.create(
        claude,
        name="login-times",
        title="Login times",
        uri="file:///reports/login-times.csv",
        mime_type="text/csv",
        description="How long logins took last week",
        content="day,logins,median ms\nMonday,412,38\nTuesday,398,41\nWednesday,455,37\nThursday,430,39\n",
    )
    await workspace.resources.create(
        cursor,
        name="settings",
        uri="file:///settings.json",
        mime_type="application/json",
        description="Login settings",
        content='{"login": {"attempts": 5, "lockout": {"minutes": 15, "notify": ["ann"]}}, "mfa": true}\n',
    )


async def _share_work(workspace: Workspace, ann: Caller, claude: Caller, cursor: Caller) -> None:
    """Let a user plan a release, and agents work on it."""
    tasks, queue = workspace.tasks, workspace.task_queue
    release = await tasks.create(ann, title="Release the login", priority=4, labels=("release",))
    hashing, documenting = [await _find_id(workspace, ann, task["title"]) for task in _TASKS[:2]]
    limit = await tasks.create(claude, title="Add a rate limit to the login", parent=release.id)
    await queue.finish(ann, limit.id, comment="Five attempts in 15 minutes")
    tests = await tasks.create(
        cursor,
        title="Cover the login with tests",
        priority=4,
        energy="deep",
        parent=release.id,
        blocked_by=(hashing, limit.id),
        labels=("tests",),
    )
    await tasks.update(ann, hashing, parent=release.id, labels=("security",), links=("code-review",))
    await tasks.update(ann, documenting, parent=release.id, blocked_by=(tests.id,), labels=("docs",))
    threats = await tasks.create(
        ann,
        title="Review the threat model",
        parent=release.id,
        assignee=cursor.actor,
        labels=("security",),
        links=("threat-model",),
    )
    await queue.finish(cursor, threats.id, status="review", comment="Session fixation was missing")
    await tasks.create(ann, title="Announce the new login", assignee="ann", blocked_by=(release.id,))
    await tasks.create(ann, title="Log failed logins", labels=("security",))
    await queue.claim(claude, hashing, ClaimRequest(lease_seconds=MAX_LEASE))


async def _find_id(workspace: Workspace, caller: Caller, title: str) -> int:
    _, [task] = await workspace.tasks.search(caller, title, notes=False)
    return task.id
