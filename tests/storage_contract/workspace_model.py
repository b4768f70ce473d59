"""A model of a workspace: dicts with the rules of the domain in their simplest form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Action
from dittybag.domain.entities import Entity, Kind, key_of, kind_of, project_of
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
from tests.storage_contract.log_consistency import EntitiesByKey


class ModelChange(Struct, frozen=True):
    """An entry of the log without the fields that only a store knows."""

    batch: int
    action: Action
    kind: Kind
    entity: str
    before: Entity | None
    after: Entity | None


class WorkspaceModel:
    """The entities of a workspace and its log."""

    def __init__(self) -> None:
        self.entities: EntitiesByKey = {}
        self.changes: list[ModelChange] = []
        self._batch = 0

    @contextmanager
    def use_case(self) -> Iterator[None]:
        """Group writes into one batch, and roll them back after an error."""
        entities, changes = dict(self.entities), list(self.changes)
        self._batch += 1
        try:
            yield
        except DittybagError:
            self.entities, self.changes = entities, changes
            raise

    def write(self, action: Action, before: Entity | None, after: Entity | None) -> None:
        entity = after if after is not None else before
        assert entity is not None
        key = (kind_of(entity), key_of(entity))
        assert self.entities.pop(key, None) == before
        if after is not None:
            self.entities[key] = after
        self.changes.append(ModelChange(self._batch, action, *key, before, after))

    def all(self, kind: Kind, project: int | None = None) -> list[Any]:
        """Return all entities of a kind in creation order."""
        found = [
            entity
            for (each, _), entity in self.entities.items()
            if each == kind and (project is None or project_of(entity) == project)
        ]
        return sorted(found, key=lambda entity: getattr(entity, "number", entity.id))

    def require_project(self, project: int) -> Project:
        found = self.entities.get(("project", str(project)))
        if not isinstance(found, Project):
            raise ProjectGone
        return found

    def require_unique(self, entity: Entity) -> None:
        """Raise a conflict if another entity has the name, title or URI."""
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

    def delete_contents(self, project: Project) -> None:
        """Delete the contents of a project, as before its deletion."""
        if project.name == DEFAULT_PROJECT:
            raise ProjectProtected(project.name)
        kinds: list[Kind] = ["prompt", "resource", "task"]
        for kind in kinds:
            for entity in self.all(kind, project.id):
                self.write("delete", entity, None)

    def restore_to(self, kind: Kind, key: str, wanted: Entity | None) -> None:
        """Restore an entity to a former state."""
        current = self.entities.get((kind, key))
        if wanted is None:
            if isinstance(current, Project):
                self.delete_contents(current)
            if current is not None:
                self.write("restore", current, None)
            return
        last = next(
            change for change in reversed(self.changes) if (change.kind, change.entity) == (kind, key)
        )
        version = (last.after or last.before).version + 1  # type: ignore[union-attr]
        restored = replace(wanted, version=version)
        if isinstance(restored, Task) and restored.project_id is not None:
            # The project may have been renamed since then.
            restored = replace(restored, project=self.require_project(restored.project_id).name)
        if current is None or replace(current, version=version) != restored:
            self.require_unique(restored)
            self.write("restore", current, restored)

    def undo(self, index: int) -> None:
        batch = [change for change in self.changes if change.batch == self.changes[index].batch]
        with self.use_case():
            for change in reversed(batch):
                self.restore_to(change.kind, change.entity, change.before)

    def restore(self, index: int) -> None:
        change = self.changes[index]
        with self.use_case():
            self.restore_to(change.kind, change.entity, change.after)
