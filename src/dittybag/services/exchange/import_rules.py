"""Rules: what things from outside must be like. None gets in that the tools would refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from dittybag.domain.changes import Entity
from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.projects import Project, checked_name
from dittybag.domain.prompts import Prompt, size_problem
from dittybag.domain.prompts import problems as of_prompt
from dittybag.domain.resources import CONTENT_BYTES, Resource, is_text
from dittybag.domain.resources import problems as of_resource
from dittybag.domain.tasks import Task
from dittybag.domain.tasks import problems as of_task
from dittybag.domain.text import body_problem, line_problem

#: Numbers beyond this are nobody's, and times beyond 32 times this.
FAR: Final = 2**53
_USER_LENGTH: Final = 255
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class ContentFacts(Struct, frozen=True):
    """As much of a content as its resources need to be checked."""

    size: int
    #: Whether it can be that of a text.
    text: bool


def facts(content: bytes) -> ContentFacts:
    try:
        return ContentFacts(len(content), body_problem("Content", content.decode()) is None)
    except UnicodeDecodeError:
        return ContentFacts(len(content), text=False)


def project_problems(project: Project) -> Iterator[Problem]:
    try:
        checked_name(project.name)
    except Invalid as error:
        yield from error.problems
    if not -FAR < project.id < FAR:
        yield Problem("id", "id is out of range")
    yield from _number_problems(project)


def prompt_problems(prompt: Prompt) -> Iterator[Problem]:
    if not prompt.name and not prompt.title:
        yield Problem("name", "there must be a name or a title")
    yield from of_prompt(
        name=prompt.name or None,
        title=prompt.title or None,
        content=prompt.content,
        description=prompt.description,
        tags=prompt.tags,
        arguments=prompt.arguments,
    )
    yield from _number_problems(prompt)


def resource_problems(resource: Resource, content: ContentFacts) -> Iterator[Problem]:
    yield from of_resource(
        name=resource.name,
        uri=resource.uri,
        mime_type=resource.mime_type,
        title=resource.title,
        description=resource.description,
    )
    if problem := size_problem(content.size, CONTENT_BYTES):
        yield Problem("content", problem)
    if is_text(resource.mime_type) and not content.text:
        yield Problem("content", f"Content must be text, because {resource.mime_type} is a type of text")
    yield from _number_problems(resource)


def task_problems(task: Task) -> Iterator[Problem]:
    yield from of_task(
        title=task.title,
        project=task.project,
        priority=task.priority,
        energy=task.energy,
        time_estimate=task.time_estimate,
        notes=task.notes,
        due_date=task.due_date,
    )
    if not 1 <= len(task.user) <= _USER_LENGTH or line_problem("User", task.user):
        yield Problem("user", f"User must be a line of 1-{_USER_LENGTH} characters")
    if not 0 <= task.id < FAR:
        yield Problem("id", "id is out of range")
    yield from _number_problems(task)


def _number_problems(thing: Entity) -> Iterator[Problem]:
    for field in ("created_at", "updated_at", "completed_at", "number"):
        value = getattr(thing, field, None)
        if value is not None and not 0 <= value < 32 * FAR:
            yield Problem(field, f"{field} is out of range")
    if not 1 <= thing.version < FAR:
        yield Problem("version", "version is out of range")
    if isinstance(thing, Prompt | Resource) and thing.id and not _ID.fullmatch(thing.id):
        yield Problem("id", "id must be a UUID in lower case")
