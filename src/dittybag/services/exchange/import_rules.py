"""Validation of imported entities, by the same rules as in the tools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from dittybag.domain.entities import Entity
from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.projects import Project, checked_name
from dittybag.domain.prompts import Prompt, size_problem
from dittybag.domain.prompts import problems as prompt_field_problems
from dittybag.domain.resources import CONTENT_BYTES, Resource, is_text
from dittybag.domain.resources import problems as resource_field_problems
from dittybag.domain.tasks import Task
from dittybag.domain.tasks import problems as task_field_problems
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


def project_problems(project: Project) -> Iterator[Problem]:
    try:
        checked_name(project.name)
    except Invalid as error:
        yield from error.problems
    if not -NUMBER_LIMIT < project.id < NUMBER_LIMIT:
        yield Problem("id", "id is out of range")
    yield from _number_problems(project)


def prompt_problems(prompt: Prompt) -> Iterator[Problem]:
    if not prompt.name and not prompt.title:
        yield Problem("name", "a name or a title is required")
    yield from prompt_field_problems(
        name=prompt.name or None,
        title=prompt.title or None,
        content=prompt.content,
        description=prompt.description,
        tags=prompt.tags,
        arguments=prompt.arguments,
    )
    yield from _number_problems(prompt)


def resource_problems(resource: Resource, content: ContentFacts) -> Iterator[Problem]:
    yield from resource_field_problems(
        name=resource.name,
        uri=resource.uri,
        mime_type=resource.mime_type,
        title=resource.title,
        description=resource.description,
    )
    if problem := size_problem(content.size, CONTENT_BYTES):
        yield Problem("content", problem)
    if is_text(resource.mime_type) and not content.text:
        yield Problem(
            "content", f"Content must be UTF-8 text without NUL for the MIME type {resource.mime_type}"
        )
    yield from _number_problems(resource)


def task_problems(task: Task) -> Iterator[Problem]:
    yield from task_field_problems(
        title=task.title,
        project=task.project,
        priority=task.priority,
        energy=task.energy,
        time_estimate=task.time_estimate,
        notes=task.notes,
        due_date=task.due_date,
    )
    if not 1 <= len(task.user) <= _USER_LENGTH or line_problem("User", task.user):
        yield Problem("user", f"user must be 1-{_USER_LENGTH} characters on one line")
    if not 0 <= task.id < NUMBER_LIMIT:
        yield Problem("id", "id is out of range")
    yield from _number_problems(task)


def _number_problems(entity: Entity) -> Iterator[Problem]:
    for field in ("created_at", "updated_at", "completed_at", "number"):
        value = getattr(entity, field, None)
        if value is not None and not 0 <= value < 32 * NUMBER_LIMIT:
            yield Problem(field, f"{field} is out of range")
    if not 1 <= entity.version < NUMBER_LIMIT:
        yield Problem("version", "version is out of range")
    if isinstance(entity, Prompt | Resource) and entity.id and not _ID.fullmatch(entity.id):
        yield Problem("id", "id must be a lower-case UUID")
