"""The graph of tasks: which one waits for which, and which is a part of which."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from dittybag.domain.queries import OWN_TASKS, TaskView
from dittybag.domain.tasks import ENDED, TaskStatus

#: A graph has at most this many tasks.
MAX_GRAPH: Final = 10_000

#: What can be done with a task now. `ready`: by its assignee, or by anybody if it has none.
TaskState = Literal["ready", "blocked", "doing", "review", "done", "dropped"]


class GraphTask(Struct, frozen=True, kw_only=True):
    """A task as shown in a graph."""

    id: int
    title: str
    status: TaskStatus
    priority: int
    project: str | None = None
    due_date: str | None = None
    assignee: str | None = None
    #: Also tasks that are not in the graph, or no longer exist.
    blocked_by: tuple[int, ...] = ()
    parent: int | None = None
    #: The number of open tasks that it waits for, its parts included.
    waits_for: int = 0
    #: Who has claimed it, and when that lapses or has lapsed, in microseconds since 1970.
    holder: str | None = None
    held_until: int | None = None

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    def state(self, now: int) -> TaskState:
        """Return what can be done with it at a time, in microseconds since 1970."""
        if self.status == "todo":
            return "blocked" if self.waits_for else "ready"
        if self.status == "doing" and self.held_until is not None and self.held_until <= now:
            return "ready"
        return self.status

    def describe_state(self, now: int) -> str:
        """Return the state in words, as in `waits for 2`."""
        state = self.state(now)
        return f"waits for {self.waits_for}" if state == "blocked" else state

    def worker(self, now: int) -> str | None:
        """Return who holds it, or else who is to do it."""
        is_held = self.held_until is not None and self.held_until > now
        return self.holder if self.holder and is_held else self.assignee


class TaskGraph(Struct, frozen=True):
    """Tasks with the edges between them, by id."""

    tasks: dict[int, GraphTask]
    #: The number of tasks that were left out because there are too many.
    left_out: int = 0


class GraphQuery(Struct, frozen=True, kw_only=True):
    """Selects the tasks of a graph, those with the highest priority first."""

    user: str
    view: TaskView = OWN_TASKS
    #: The name of a project; empty for tasks without one.
    project: str | None = None
    #: Whether done and dropped tasks are included.
    ended: bool = False
    #: Whether only tasks that wait for others are included.
    waiting: bool = False
    #: Only these tasks.
    ids: tuple[int, ...] | None = None
    limit: int = MAX_GRAPH
