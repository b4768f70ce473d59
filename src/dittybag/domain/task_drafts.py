"""Drafts of tasks that are created together, with names for the edges between them."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from dittybag.domain.tasks import (
    DEFAULT_ENERGY,
    DEFAULT_PRIORITY,
    DEFAULT_STATUS,
    DEFAULT_TIME_ESTIMATE,
    Comment,
    Task,
    TaskStatus,
)

#: Tasks that one call can add.
MAX_DRAFTS: Final = 200


class TaskDraft(Struct, frozen=True, kw_only=True):
    """A task to create. In `parent` and `blocked_by`, a text is the key of another draft, a number a task."""

    #: The name of this draft in the others; empty if none refers to it.
    key: str = ""
    title: str
    #: The name of its project, `None` for none; `UNSET` for that of the other drafts.
    project: str | UnsetType | None = UNSET
    notes: str | None = None
    priority: int = DEFAULT_PRIORITY
    energy: str = DEFAULT_ENERGY
    time_estimate: str = DEFAULT_TIME_ESTIMATE
    due_date: str | None = None
    status: TaskStatus = DEFAULT_STATUS
    #: For a task that is done: when, in microseconds since 1970; `None` for now.
    completed_at: int | None = None
    #: In microseconds since 1970; `None` for now.
    created_at: int | None = None
    assignee: str | None = None
    labels: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    parent: str | int | None = None
    blocked_by: tuple[str | int, ...] = ()
    #: Where an import has it from, as in `beads:bd-12`; empty if it is not imported. It becomes the last
    #: link, by which a second import knows the task.
    source: str = ""


class TaskImport(Struct, frozen=True):
    """What an import of tasks did, or would do."""

    created: list[Task]
    #: The number of tasks that were imported before.
    known: int
