"""Reads the tasks.json of task-master, with or without tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from dittybag.domain.errors import SourceFailed
from dittybag.exchange.draft_collector import DraftCollector, ForeignTask
from dittybag.exchange.task_input import TaskInput

#: The tag of tasks that have none.
_MAIN_TAG: Final = "master"


class _Task(Struct, rename="camel"):
    """A task or a subtask. Subtasks of subtasks do not exist there."""

    id: int | str
    title: str | None = None
    description: str | None = None
    details: str | None = None
    test_strategy: str | None = None
    acceptance_criteria: str | list[str] | None = None
    status: str | None = None
    priority: str | None = None
    dependencies: list[int | float | str] | None = None
    subtasks: list[_Task] | None = None
    assignee: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class _Tag(Struct):
    """The tasks of a tag. Other members of a file have none."""

    tasks: list[_Task] | None = None


def read_task_master(source: TaskInput, into: DraftCollector) -> None:
    """Collect the tasks of a file. Raises `SourceFailed`."""
    tags = _tags(source)
    if not tags:
        raise SourceFailed(source.name, "it has no tasks of task-master")
    source.require_count(sum(1 + len(task.subtasks or ()) for tasks in tags.values() for task in tasks))
    if len(tags) > 1:
        into.note("the tasks of each tag except master have the tag as a label")
    for tag, tasks in tags.items():
        _TagReader(tag, tasks, into).read()


def is_task_master(source: TaskInput) -> bool:
    """Return whether a JSON object has the tasks of task-master."""
    try:
        return bool(_tags(source))
    except SourceFailed:
        return False


def _tags(source: TaskInput) -> Mapping[str, Sequence[_Task]]:
    """Return the tasks of each tag. Raises `SourceFailed`."""
    flat = source.decode(_Tag).tasks
    if flat is not None:
        return {_MAIN_TAG: flat}
    tags = source.decode(dict[str, _Tag])
    return {name: tag.tasks for name, tag in tags.items() if tag.tasks is not None}


class _TagReader:
    """Collects the tasks of a tag."""

    def __init__(self, tag: str, tasks: Sequence[_Task], into: DraftCollector) -> None:
        self._prefix = "" if tag == _MAIN_TAG else f"{tag}:"
        self._labels = () if tag == _MAIN_TAG else (tag,)
        self._tasks = tasks
        self._into = into

    def read(self) -> None:
        for task in self._tasks:
            self._add(task, str(task.id), "", ())
            for part in task.subtasks or ():
                siblings = {str(sibling.id) for sibling in task.subtasks or ()}
                self._add(part, f"{task.id}.{part.id}", str(task.id), siblings, task)
                if part.subtasks:
                    self._into.note("parts of a subtask were left out", f"{task.id}.{part.id}")

    def _add(
        self, task: _Task, id: str, parent: str, siblings: set[str] | tuple[()], whole: _Task | None = None
    ) -> None:
        # A subtask names another one of the same task by its short id.
        blockers = (
            f"{parent}.{name}" if name in siblings else name for name in map(str, task.dependencies or ())
        )
        priority = task.priority or (whole.priority if whole is not None else None)
        self._into.add(
            ForeignTask(
                id=f"{self._prefix}{id}",
                origin="task-master:",
                title=task.title or "",
                notes=_notes(task),
                priority=priority or "",
                status=task.status or "",
                created=task.created_at or "",
                completed=task.updated_at or "",
                assignee=task.assignee or "",
                labels=self._labels,
                parent=f"{self._prefix}{parent}" if parent else "",
                blocked_by=[f"{self._prefix}{blocker}" for blocker in blockers],
            )
        )


def _notes(task: _Task) -> str:
    criteria = task.acceptance_criteria or ""
    listed = criteria if isinstance(criteria, str) else "\n".join(f"- {item}" for item in criteria)
    sections = (
        ("Details", task.details),
        ("Test strategy", task.test_strategy),
        ("Acceptance criteria", listed),
    )
    parts = [task.description or "", *(f"## {title}\n\n{text}" for title, text in sections if text)]
    return "\n\n".join(part.strip() for part in parts if part.strip())
