"""Validation of imported entities, by the same rules as in the tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from dittybag.domain import prompts, resources, tasks
from dittybag.domain.entities import Entity, Kind, type_of
from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.projects import Project, checked_name
from dittybag.domain.prompts import Prompt, size_problem
from dittybag.domain.resources import CONTENT_BYTES, Resource
from dittybag.domain.tasks import Task
from dittybag.domain.text import body_problem, line_problem

#: Numbers must be smaller than this, and times smaller than 32 times this.
NUMBER_LIMIT: Final = 2**53
_USER_LENGTH: Final = 255
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class ContentFacts(Struct, frozen=True):
    """The properties of a content that are needed to validate its resources."""

    size: int
    #: Whether it is valid for a text resource.
    text: bool


def content_facts(content: bytes) -> ContentFacts:
    """Return the size of a content, and whether it is text."""
    try:
        return ContentFacts(len(content), body_problem("Content", content.decode()) is None)
    except UnicodeDecodeError:
        return ContentFacts(len(content), text=False)


def entity_problems(entity: Entity, content: ContentFacts | None = None) -> Iterator[Problem]:
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
            yield Problem("name", "a name or a title is required")
        values |= {"name": entity.name or None, "title": entity.title or None}
    yield from _FIELD_PROBLEMS[described.kind](**values)
    if isinstance(entity, Resource) and content is not None:
        yield from _content_problems(entity, content)
    if isinstance(entity, Task) and (
        not 1 <= len(entity.user) <= _USER_LENGTH or line_problem("User", entity.user)
    ):
        yield Problem("user", f"user must be 1-{_USER_LENGTH} characters on one line")
    yield from _number_problems(entity)


def _project_problems(name: str) -> Iterator[Problem]:
    try:
        checked_name(name)
    except Invalid as error:
        yield from error.problems


#: The rules for the edited fields of each kind.
_FIELD_PROBLEMS: Final[Mapping[Kind, Callable[..., Iterator[Problem]]]] = {
    "project": _project_problems,
    "prompt": prompts.problems,
    "resource": resources.problems,
    "task": tasks.problems,
}


def _content_problems(resource: Resource, content: ContentFacts) -> Iterator[Problem]:
    if problem := size_problem(content.size, CONTENT_BYTES):
        yield Problem("content", problem)
    if resource.is_text and not content.text:
        yield Problem(
            "content", f"Content must be UTF-8 text without NUL for the MIME type {resource.mime_type}"
        )


def _number_problems(entity: Entity) -> Iterator[Problem]:
    if isinstance(entity, Prompt | Resource):
        if entity.id and not _ID.fullmatch(entity.id):
            yield Problem("id", "id must be a lower-case UUID")
    # The temporary id of a project in a source is negative.
    elif not (-NUMBER_LIMIT if isinstance(entity, Project) else -1) < entity.id < NUMBER_LIMIT:
        yield Problem("id", "id is out of range")
    for field in ("created_at", "updated_at", "completed_at", "number"):
        value = getattr(entity, field, None)
        if value is not None and not 0 <= value < 32 * NUMBER_LIMIT:
            yield Problem(field, f"{field} is out of range")
    if not 1 <= entity.version < NUMBER_LIMIT:
        yield Problem("version", "version is out of range")
