"""A source whose entities are validated as they are read."""

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
from dittybag.services.exchange.exchange_types import (
    ImportSource,
    ProgressCallback,
    ProgressCounter,
    SourceEntry,
)
from dittybag.services.exchange.import_rules import (
    content_facts,
    project_problems,
    prompt_problems,
    resource_problems,
    task_problems,
)

T = TypeVar("T")

#: Maximum number of problems that are reported in full.
_MAX_PROBLEMS: Final = 20


class ValidatedSource:
    """Yields the valid entities of a source, and collects all problems."""

    def __init__(self, source: ImportSource, on_progress: ProgressCallback | None) -> None:
        self.is_export = source.is_export
        self.has_history = source.has_history
        self._source = source
        self._progress = ProgressCounter(on_progress)
        self._problems: list[Problem] = []
        self._more_problems = 0
        #: The projects, each with its location in the source.
        self.projects: list[tuple[str, Project]] = [
            (location, project)
            for location, project in self._each(source.projects())
            if not self._has_problems(location, project_problems(project))
        ]

    def prompts(self) -> Iterator[tuple[str, Prompt]]:
        for location, given in self._each(self._source.prompts(), "prompts"):
            prompt = replace(given, tags=normalise_tags(given.tags), description=given.description or None)
            if not self._has_problems(location, prompt_problems(prompt)):
                yield location, prompt

    def resources(self) -> Iterator[tuple[str, Resource, bytes]]:
        for location, (given, content) in self._each(self._source.resources(), "resources"):
            resource = replace(
                given,
                title=given.title or None,
                description=given.description or None,
                sha256=sha256(content).hexdigest(),
                size=len(content),
            )
            if not self._has_problems(location, resource_problems(resource, content_facts(content))):
                yield location, resource, content

    def tasks(self) -> Iterator[tuple[str, Task]]:
        for location, given in self._each(self._source.tasks(), "tasks"):
            texts = {field: getattr(given, field) or None for field in ("project", "notes", "due_date")}
            task = replace(given, **texts)
            if not self._has_problems(location, task_problems(task)):
                yield location, task

    def changes(self) -> Iterator[tuple[str, Change]]:
        return self._each(self._source.changes(), "changes")

    def contents(self) -> Iterator[tuple[str, bytes]]:
        return self._each(self._source.contents())

    def _each(self, entries: Iterable[SourceEntry[T]], section: str | None = None) -> Iterator[tuple[str, T]]:
        if section is not None:
            self._progress.begin(section)
        for location, item in entries:
            if isinstance(item, Problem):
                self.add_problem(location, item.message)
                continue
            if section is not None:
                self._progress.step(section)
            yield location, item

    def _has_problems(self, location: str, problems: Iterable[Problem]) -> bool:
        """Record the problems of an entity. Returns whether it has any."""
        found = list(problems)
        for problem in found:
            self.add_problem(location, problem.message)
        return bool(found)

    def add_problem(self, location: str, message: str) -> None:
        """Record a problem at a location in the source."""
        if len(self._problems) < _MAX_PROBLEMS:
            self._problems.append(Problem(location, f"{location}: {message}"))
        else:
            self._more_problems += 1

    @property
    def is_valid(self) -> bool:
        """Whether no problem was found so far. After a problem, the rest is only validated."""
        return not self._problems

    def require_valid(self) -> None:
        """Raise `Invalid` if any problem was found."""
        if self._more_problems:
            self._problems.append(Problem("", f"and {self._more_problems} more"))
        if self._problems:
            raise Invalid(self._problems)
