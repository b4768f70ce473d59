"""Reading a source: what is in order, and a list of what is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final, TypeVar

from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt, normalise_tags
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.services.exchange.exchange_types import Found, Progress, Source, Tell
from dittybag.services.exchange.import_rules import (
    facts,
    project_problems,
    prompt_problems,
    resource_problems,
    task_problems,
)

T = TypeVar("T")

#: So many problems are named.
_MAX_NAMED: Final = 20


class Reading:
    """A source whose problems are gathered, so that all of them can be told."""

    def __init__(self, source: Source, tell: Tell | None) -> None:
        self.own = source.own
        self.has_history = source.has_history
        self._source = source
        self._progress = Progress(tell)
        self._problems: list[Problem] = []
        self._more_problems = 0
        #: With where each stands.
        self.projects: list[tuple[str, Project]] = [
            (place, project)
            for place, project in self._each(source.projects())
            if not self._wrong(place, project_problems(project))
        ]

    def prompts(self) -> Iterator[tuple[str, Prompt]]:
        for place, given in self._each(self._source.prompts(), "prompts"):
            prompt = replace(given, tags=normalise_tags(given.tags), description=given.description or None)
            if not self._wrong(place, prompt_problems(prompt)):
                yield place, prompt

    def resources(self) -> Iterator[tuple[str, Resource, bytes]]:
        for place, (given, content) in self._each(self._source.resources(), "resources"):
            resource = replace(
                given,
                title=given.title or None,
                description=given.description or None,
                sha256=sha256(content).hexdigest(),
                size=len(content),
            )
            if not self._wrong(place, resource_problems(resource, facts(content))):
                yield place, resource, content

    def tasks(self) -> Iterator[tuple[str, Task]]:
        for place, given in self._each(self._source.tasks(), "tasks"):
            texts = {field: getattr(given, field) or None for field in ("project", "notes", "due_date")}
            task = replace(given, **texts)
            if not self._wrong(place, task_problems(task)):
                yield place, task

    def changes(self) -> Iterator[tuple[str, Change]]:
        return self._each(self._source.changes(), "changes")

    def contents(self) -> Iterator[tuple[str, bytes]]:
        return self._each(self._source.contents())

    def _each(self, items: Iterable[Found[T]], what: str | None = None) -> Iterator[tuple[str, T]]:
        if what is not None:
            self._progress.begin(what)
        for place, item in items:
            if isinstance(item, Problem):
                self.problem(place, item.message)
                continue
            if what is not None:
                self._progress.step(what)
            yield place, item

    def _wrong(self, place: str, problems: Iterable[Problem]) -> bool:
        found = list(problems)
        for problem in found:
            self.problem(place, problem.message)
        return bool(found)

    def problem(self, place: str, message: str) -> None:
        """Something is wrong there."""
        if len(self._problems) < _MAX_NAMED:
            self._problems.append(Problem(place, f"{place}: {message}"))
        else:
            self._more_problems += 1

    @property
    def sound(self) -> bool:
        """Whether nothing has been wrong so far. If something was, the rest is only looked at."""
        return not self._problems

    def require_sound(self) -> None:
        """Raises `Invalid` if anything was wrong."""
        if self._more_problems:
            self._problems.append(Problem("", f"and {self._more_problems} more"))
        if self._problems:
            raise Invalid(self._problems)
