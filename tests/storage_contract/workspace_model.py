"""A model of a workspace: dicts with the rules of the domain in their simplest form.

Of tasks, it knows which wait, which are ready, and who holds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Action, Interface
from dittybag.domain.claims import MICROSECONDS, Claim
from dittybag.domain.entities import Entity, Kind, key_of, kind_of, project_of
from dittybag.domain.errors import (
    ClaimLost,
    DittybagError,
    Invalid,
    NameTaken,
    Problem,
    ProjectGone,
    ProjectProtected,
    TaskClaimed,
    TaskCycle,
    TaskNotFound,
    TaskNotReady,
    TitleTaken,
    UriTaken,
)
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import ENDED, Task
from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimRequest
from tests.storage_contract.log_consistency import EntitiesByKey


class ModelChange(Struct, frozen=True):
    """An entry of the log without the fields that only a store knows."""

    batch: int
    action: Action
    kind: Kind
    entity: str
    before: Entity | None
    after: Entity | None
    actor: str
    interface: Interface | None


class WorkspaceModel:
    """The entities of a workspace, its log, and the claims of its tasks. Time passes only by `now`."""

    def __init__(self, now: int, caller: Caller) -> None:
        self.now = now
        #: Who writes.
        self.caller = caller
        self.entities: EntitiesByKey = {}
        self.changes: list[ModelChange] = []
        self.claims: dict[int, Claim] = {}
        self._batch = 0

    @contextmanager
    def use_case(self) -> Iterator[None]:
        """Group writes into one batch, and roll them back after an error."""
        kept = dict(self.entities), list(self.changes), dict(self.claims)
        self._batch += 1
        try:
            yield
        except DittybagError:
            self.entities, self.changes, self.claims = kept
            raise

    def write(self, action: Action, before: Entity | None, after: Entity | None) -> None:
        entity = after if after is not None else before
        assert entity is not None
        key = (kind_of(entity), key_of(entity))
        assert self.entities.pop(key, None) == before
        if after is not None:
            self.entities[key] = after
        self.changes.append(
            ModelChange(self._batch, action, *key, before, after, self.caller.actor, self.caller.interface)
        )
        if isinstance(before, Task) and (
            not isinstance(after, Task) or after.status != "doing" or after.assignee != before.assignee
        ):
            self.claims.pop(before.id, None)

    def change(self, task: Task, action: Action = "update", **fields: Any) -> Task:
        after = replace(task, **fields, updated_at=self.now, version=task.version + 1)
        self.write(action, task, after)
        return after

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
        was_doing = isinstance(current, Task) and current.status == "doing"
        if isinstance(restored, Task) and restored.status == "doing" and not was_doing:
            restored = self._without_lost_claim(restored)
        if current is not None and replace(current, version=version) == restored:
            return
        self.require_unique(restored)
        self.write("restore", current, restored)
        if isinstance(restored, Task):
            self.require_no_cycle(restored.id)
        if isinstance(restored, Project):
            self.rename_tasks(restored, "restore")

    def _without_lost_claim(self, task: Task) -> Task:
        """Return a task that is to do again if its work began with a claim."""
        for change in reversed(self.changes):
            before, after = change.before, change.after
            if (change.kind, change.entity, change.action == "restore") != ("task", str(task.id), False):
                continue
            if not isinstance(after, Task) or after.status != "doing":
                continue
            if not isinstance(before, Task):
                return task
            is_new = before.assignee != after.assignee
            if is_new or before.status != "doing":
                was_claimed = (is_new or change.interface == "mcp") and after.assignee == change.actor
                return replace(task, status="todo", assignee=None) if was_claimed else task
        return task

    def undo(self, index: int) -> None:
        batch = [change for change in self.changes if change.batch == self.changes[index].batch]
        with self.use_case():
            for change in reversed(batch):
                self.restore_to(change.kind, change.entity, change.before)

    def restore(self, index: int) -> None:
        change = self.changes[index]
        with self.use_case():
            self.restore_to(change.kind, change.entity, change.after)

    def rename_tasks(self, project: Project, action: Action) -> None:
        for task in self.all("task", project.id):
            if task.project != project.name:
                self.change(task, action, project=project.name)

    # Edges

    def edges(self) -> set[tuple[int, int, bool]]:
        """Which task waits for which, and whether that is a part of it."""
        found = {(task.id, blocker, False) for task in self.all("task") for blocker in task.blocked_by}
        return found | {(task.parent, task.id, True) for task in self.all("task") if task.parent is not None}

    def waits_for(self, task: int) -> int:
        unfinished = {task.id for task in self.all("task") if task.status not in ENDED}
        return sum(waiting == task and blocker in unfinished for waiting, blocker, _ in self.edges())

    def require_no_cycle(self, task: int) -> None:
        edges = self.edges()
        found: set[int] = set()
        level = {task}
        while level:
            level = {blocker for waiting, blocker, _ in edges if waiting in level} - found
            found |= level
        if task in found:
            raise TaskCycle(["tasks"])

    def require_visible_edges(self, caller: Caller, before: Task | None, task: Task) -> None:
        new = set(task.blocked_by) - set(() if before is None else before.blocked_by)
        if task.parent is not None and (before is None or task.parent != before.parent):
            new.add(task.parent)
        if not all(self.is_visible(caller, other) for other in new):
            raise Invalid([Problem("edge", "does not exist")])

    # Claims

    def is_visible(self, caller: Caller, id: int) -> bool:
        task = self.entities.get(("task", str(id)))
        return isinstance(task, Task) and (task.project_id is not None or task.user == caller.user)

    def find(self, caller: Caller, id: int) -> Task:
        task = self.entities.get(("task", str(id)))
        if not isinstance(task, Task) or not self.is_visible(caller, id):
            raise TaskNotFound(id)
        return task

    def live_claim(self, id: int) -> Claim | None:
        claim = self.claims.get(id)
        return claim if claim is not None and self.now < claim.until else None

    def require_fence(self, caller: Caller, id: int, fence: int | None) -> None:
        claim = self.live_claim(id)
        if fence is None:
            if claim is not None and caller.interface == "mcp":
                raise TaskClaimed(id, claim.holder, claim.claimed_at, claim.until)
        elif claim is None or claim.fence != fence:
            raise ClaimLost(id, fence)
        else:
            self.claims[id] = replace(claim, until=self.now + claim.lease)

    def ready(self, caller: Caller, request: ClaimRequest) -> list[int]:
        found = [
            task
            for task in self.all("task")
            if self.is_visible(caller, task.id)
            and self.waits_for(task.id) == 0
            and (request.project is None or task.project == request.project)
            and set(request.labels) <= set(task.labels)
            and self._is_free(caller, task)
        ]
        found.sort(key=lambda task: (-task.priority, task.due_date or "~", task.id))
        return [task.id for task in found]

    def _is_free(self, caller: Caller, task: Task) -> bool:
        if task.status == "todo":
            return task.assignee in (None, caller.actor, caller.user)
        return task.status == "doing" and task.id in self.claims and self.live_claim(task.id) is None

    def require_claimable(self, caller: Caller, task: Task) -> None:
        if task.status in (*ENDED, "review"):
            raise TaskNotReady(task.id, "")
        is_theirs = task.assignee in (None, caller.actor, caller.user)
        if task.status == "doing" and task.id not in self.claims and not is_theirs:
            raise TaskNotReady(task.id, "")
        if self.waits_for(task.id):
            raise TaskNotReady(task.id, "")

    def claim(self, caller: Caller, task: Task, request: ClaimRequest) -> None:
        self.change(task, status="doing", assignee=caller.actor)
        lease = request.lease_seconds * MICROSECONDS
        self.claims[task.id] = Claim(
            task.id, len(self.changes), caller.actor, request.connection, self.now, lease, self.now + lease
        )
