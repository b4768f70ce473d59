"""Projects: scopes within a workspace."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.domain.errors import checked
from dittybag.domain.text import line_problem

NAME_LENGTH: Final = 100

#: Always exists.
DEFAULT_PROJECT: Final = "default"
#: Given as the name of a project, it means the project of the folder. No project has this name.
AUTOMATIC: Final = "auto"
#: The id of a project that does not exist yet.
NEW_PROJECT: Final = 0


class Project(Struct, frozen=True, kw_only=True):
    """A scope for prompts and resources."""

    id: int
    name: str
    created_at: int
    updated_at: int
    version: int = 1
    #: What its context packs always have, in this order, see `dittybag.domain.pins`.
    pins: tuple[str, ...] = ()


class ProjectSize(Struct, frozen=True, kw_only=True):
    """A project with the number of its entities."""

    project: Project
    prompts: int
    resources: int
    tasks: int


class ProjectKey(Struct, frozen=True):
    """Identifies a project in whatever database is at hand: another database uses the same ids."""

    id: int
    created_at: int


def checked_new_name(name: str) -> str:
    """Return `name`. Raises `Invalid` if no new project can have it."""
    if name == AUTOMATIC:
        problem = (
            f"Project name must not be '{AUTOMATIC}': --project {AUTOMATIC} selects the folder's project"
        )
        return checked("name", name, problem)
    return checked_name(name)


def checked_name(name: str) -> str:
    """Return `name`. Raises `Invalid` if it is not a valid project name."""
    problem = line_problem("Project name", name)
    if not name.strip() or len(name) > NAME_LENGTH:
        problem = f"Project name must be 1-{NAME_LENGTH} characters"
    elif name != name.strip():
        problem = "Project name must not start or end with a space"
    return checked("name", name, problem)
