"""A source whose entities are validated as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.projects import Project
from dittybag.domain.prompts import normalise_tags
from dittybag.exchange.import_rules import entity_problems
from dittybag.exchange.import_sources import FileSource, SourceEntry
from dittybag.exchange.progress_counter import ProgressCallback, ProgressCounter

T = TypeVar("T")

#: Maximum number of problems that are reported in full.
_MAX_PROBLEMS: Final = 20
#: Fields that are `None` if the source has an empty text.
_OPTIONAL_FIELDS: Final[Mapping[Kind, tuple[str, ...]]] = {
    kind: tuple(field.name for field in msgspec.structs.fields(described.struct) if field.default is None)
    for kind, described in ENTITY_TYPES.items()
}


class ValidatedSource:
    """Yields the valid entities of a source, and collects all problems."""

    def __init__(self, source: FileSource, on_progress: ProgressCallback | None) -> None:
        self.is_export = source.is_export
        self._source = source
        self._progress = ProgressCounter(on_progress)
        self._progress.totals |= source.totals
        self._problems: list[Problem] = []
        self._more_problems = 0
        self._projects = list(self._read("project"))

    @property
    def projects(self) -> list[Project]:
        return [project for _, project, _ in self._projects]

    def entities(self, kind: Kind) -> Iterator[tuple[str, Any, bytes]]:
        """Yield the location of each valid entity, the entity, and the content of a resource."""
        return iter(self._projects) if kind == "project" else self._read(kind)

    def _read(self, kind: Kind) -> Iterator[tuple[str, Any, bytes]]:
        section = None if kind == "project" else f"{kind}s"
        for location, found in self._each(self._source.entities(kind), section):
            entity = self._normalise(kind, location, found.entity, found.content)
            problems = list(entity_problems(entity, found.content))
            for problem in problems:
                self.add_problem(location, problem)
            if not problems:
                yield location, entity, found.content

    def _normalise(self, kind: Kind, location: str, entity: Any, content: bytes) -> Any:
        values: dict[str, Any] = {
            name: None for name in _OPTIONAL_FIELDS[kind] if getattr(entity, name) == ""
        }
        if kind == "prompt":
            values["tags"] = normalise_tags(entity.tags)
            if found := self._source.found_arguments.get((location, entity.name)):
                values["arguments"] = found
        elif kind == "resource":
            values |= {"sha256": sha256(content).hexdigest(), "size": len(content)}
        return replace(entity, **values)

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

    def add_problem(self, location: str, message: str) -> None:
        """Record a problem at a location in the source."""
        if len(self._problems) < _MAX_PROBLEMS:
            self._problems.append(Problem(location, f"{location}: {message}"))
        else:
            self._more_problems += 1

    def add_note(self, text: str) -> None:
        """Report an adjustment."""
        self._source.add_note(text)

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
