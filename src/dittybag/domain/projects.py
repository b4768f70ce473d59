"""Projects: scopes within a workspace."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.domain.errors import checked
from dittybag.domain.text import line_problem

NAME_LENGTH: Final = 100

#: Always exists.
DEFAULT_PROJECT: Final = "default"


class Project(Struct, frozen=True, kw_only=True):
    """A scope for prompts and resources."""

    id: int
    name: str
    created_at: int
    updated_at: int
    version: int = 1


class ProjectSize(Struct, frozen=True, kw_only=True):
    """A project with the number of its entities."""

    project: Project
    prompts: int
    resources: int
    tasks: int


def checked_name(name: str) -> str:
    """Return `name`. Raises `Invalid` if it is not a valid project name."""
    problem = line_problem("Project name", name)
    if not name.strip() or len(name) > NAME_LENGTH:
        problem = f"Project name must be 1-{NAME_LENGTH} characters"
    elif name != name.strip():
        problem = "Project name must not start or end with a space"
    return checked("name", name, problem)
