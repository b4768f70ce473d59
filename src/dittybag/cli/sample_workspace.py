"""The sample workspace of the demo: a project `auth-module` with prompts, resources and tasks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from dittybag.domain.changes import Interface
from dittybag.domain.prompts import Argument
from dittybag.services.caller import Caller
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
