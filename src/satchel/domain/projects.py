"""Projects: scopes inside a workspace."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from satchel.domain.errors import Invalid, Problem
from satchel.domain.names import PROJECT_LENGTH
from satchel.domain.text import line_problem

#: Always there.
DEFAULT_PROJECT: Final = "default"


class Project(Struct, frozen=True, kw_only=True):
    """A scope for prompts and resources."""

    id: int
    name: str
    created_at: int
    updated_at: int
    version: int = 1


class ProjectSize(Struct, frozen=True, kw_only=True):
    """A project, and how much is in it."""

    project: Project
    prompts: int
    resources: int
    tasks: int


def checked_name(name: str) -> str:
    """Raises `Invalid` unless `name` may be that of a project."""
    problem = line_problem("Project name", name)
    if not name.strip() or len(name) > PROJECT_LENGTH:
        problem = f"Project name must be 1-{PROJECT_LENGTH} characters"
    elif name != name.strip():
        problem = "Project name must not begin or end with a blank"
    if problem:
        raise Invalid([Problem("name", problem)])
    return name
