"""Validation of imported entities, by the same rules as in the tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from dittybag.domain import prompts, resources, tasks
from dittybag.domain.entities import Entity, Kind, type_of
from dittybag.domain.errors import Invalid, Problem, checked
from dittybag.domain.pins import pins_problem
from dittybag.domain.projects import Project, checked_name
from dittybag.domain.prompts import Prompt, size_problem
from dittybag.domain.resources import CONTENT_BYTES, Resource
from dittybag.domain.tasks import Task
from dittybag.domain.text import body_problem, line_problem

#: Numbers and times must be smaller than these.
NUMBER_LIMIT: Final = 2**53
TIME_LIMIT: Final = 32 * NUMBER_LIMIT
_USER_LENGTH: Final = 255
_AUTHOR_LENGTH: Final = 10_000
UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def entity_problems(entity: Entity, content: bytes = b"") -> Iterator[str]:
    """Yield all problems with an entity. `content`: of a resource.

    Of the name and the title of a prompt, one may be empty: it is then derived from the other.
    """
    described = type_of(entity)
    values = {
        field.name: getattr(entity, field.name)
        for field in described.edited
        if field.format not in ("content", "time")
    }
    if isinstance(entity, Prompt):
        if not entity.name and not entity.title:
            yield "a name or a title is required"
        values |= {"name": entity.name or None, "title": entity.title or None}
    for problem in _FIELD_PROBLEMS[described.kind](**values):
        yield problem.message
    if isinstance(entity, Resource):
        if too_large := size_problem(len(content), CONTENT_BYTES):
            yield too_large
        if entity.is_text and not _is_text(content):
            yield f"Content must be UTF-8 text without NUL for the MIME type {entity.mime_type}"
    if isinstance(entity, Task):
        yield from _task_problems(entity)
    yield from _number_problems(entity)


def _is_text(content: bytes) -> bool:
    try:
        return body_problem("Content", content.decode()) is None
    except UnicodeDecodeError:
        return False


def _task_problems(task: Task) -> Iterator[str]:
    if not 1 <= len(task.user) <= _USER_LENGTH or line_problem("User", task.user):
        yield f"user must be 1-{_USER_LENGTH} characters on one line"
    if not all(
        len(comment.author) <= _AUTHOR_LENGTH and body_problem("", comment.author) is None
        for comment in task.comments
    ):
        yield f"the author of a comment must be at most {_AUTHOR_LENGTH} characters without NUL"
    if not all(0 <= comment.at < TIME_LIMIT for comment in task.comments):
        yield "the time of a comment is out of range"
    # The temporary id of a project in a source is negative.
    if not -NUMBER_LIMIT < (task.project_id or 0) < NUMBER_LIMIT:
        yield "project_id is out of range"
    edges = task.blocked_by if task.parent is None else (*task.blocked_by, task.parent)
    if not all(0 < number < NUMBER_LIMIT for number in edges):
        yield "blocked_by and parent must be ids of tasks"
    if task.id in edges:
        yield "a task cannot be blocked by itself, or be a part of itself"


def _number_problems(entity: Entity) -> Iterator[str]:
    if isinstance(entity, Prompt | Resource):
        if entity.id and not UUID.fullmatch(entity.id):
            yield "id must be a lower-case UUID"
    # The temporary id of a project in a source is negative.
    elif not (-NUMBER_LIMIT if isinstance(entity, Project) else -1) < entity.id < NUMBER_LIMIT:
        yield "id is out of range"
    for field in ("created_at", "updated_at", "completed_at"):
        if not 0 <= (getattr(entity, field, None) or 0) < TIME_LIMIT:
            yield f"{field} is out of range"


def _project_problems(name: str, pins: tuple[str, ...]) -> Sequence[Problem]:
    try:
        checked_name(name)
        checked("pins", pins, pins_problem(pins))
    except Invalid as error:
        return error.problems
    return ()


#: The rules for the edited fields of each kind.
_FIELD_PROBLEMS: Final[Mapping[Kind, Callable[..., Iterable[Problem]]]] = {
    "project": _project_problems,
    "prompt": prompts.problems,
    "resource": resources.problems,
    "task": tasks.problems,
}
