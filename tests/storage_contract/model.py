"""A model of a workspace: dicts, and the rules of the domain in their plainest form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Action, Entity, Kind, key_of, kind_of, project_of
from dittybag.domain.errors import (
    DittybagError,
    NameTaken,
    ProjectGone,
    ProjectProtected,
    TitleTaken,
    UriTaken,
)
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from tests.storage_contract.ledger import Holdings


class Line(Struct, frozen=True):
    """One row of the log, as far as a model can know it."""

    batch: int
    action: Action
    kind: Kind
    entity: str
    before: Entity | None
    after: Entity | None


class Model:
    """What there is, and how it came about."""

    def __init__(self) -> None:
        self.held: Holdings = {}
        self.lines: list[Line] = []
        self._batch = 0

    @contextmanager
    def use_case(self) -> Iterator[None]:
        """All that is written inside belongs together; after an error none of it has been."""
        held, lines = dict(self.held), list(self.lines)
        self._batch += 1
        try:
            yield
        except DittybagError:
            self.held, self.lines = held, lines
            raise

    def write(self, action: Action, before: Entity | None, after: Entity | None) -> None:
        entity = after if after is not None else before
        assert entity is not None
        key = (kind_of(entity), key_of(entity))
        assert self.held.pop(key, None) == before
        if after is not None:
            self.held[key] = after
        self.lines.append(Line(self._batch, action, *key, before, after))

    def all(self, kind: Kind, project: int | None = None) -> list[Any]:
        """Everything of a kind, in the order of creation."""
        found = [
            entity
            for (each, _), entity in self.held.items()
            if each == kind and (project is None or project_of(entity) == project)
        ]
        return sorted(found, key=lambda entity: getattr(entity, "number", entity.id))

    def require_project(self, project: int) -> Project:
        found = self.held.get(("project", str(project)))
        if not isinstance(found, Project):
            raise ProjectGone
        return found

    def require_room(self, entity: Entity) -> None:
        """Raises what stands in the way of a thing with this name, title or URI."""
        if isinstance(entity, Task):
            return
        kind = kind_of(entity)
        if not isinstance(entity, Project):
            self.require_project(entity.project)
        others = [
            other
            for other in self.all(kind, None if isinstance(entity, Project) else entity.project)
            if other.id != entity.id
        ]
        if any(other.name == entity.name for other in others):
            raise NameTaken(kind, entity.name)
        if isinstance(entity, Prompt) and any(other.title == entity.title for other in others):
            raise TitleTaken(entity.title, "")
        if isinstance(entity, Resource) and any(other.uri == entity.uri for other in others):
            raise UriTaken(entity.uri, "")

    def empty(self, project: Project) -> None:
        """Delete what is in a project, as is done before it is deleted."""
        if project.name == DEFAULT_PROJECT:
            raise ProjectProtected(project.name)
        kinds: list[Kind] = ["prompt", "resource"]
        for kind in kinds:
            for entity in self.all(kind, project.id):
                self.write("delete", entity, None)

    def put(self, kind: Kind, key: str, wanted: Entity | None) -> None:
        """Make a thing again what it once was."""
        current = self.held.get((kind, key))
        if wanted is None:
            if isinstance(current, Project):
                self.empty(current)
            if current is not None:
                self.write("restore", current, None)
            return
        last = next(line for line in reversed(self.lines) if (line.kind, line.entity) == (kind, key))
        version = (last.after or last.before).version + 1  # type: ignore[union-attr]
        restored = replace(wanted, version=version)
        if current is None or replace(current, version=version) != restored:
            self.require_room(restored)
            self.write("restore", current, restored)

    def undo(self, index: int) -> None:
        batch = [line for line in self.lines if line.batch == self.lines[index].batch]
        with self.use_case():
            for line in reversed(batch):
                self.put(line.kind, line.entity, line.before)

    def restore(self, index: int) -> None:
        line = self.lines[index]
        with self.use_case():
            self.put(line.kind, line.entity, line.after)
