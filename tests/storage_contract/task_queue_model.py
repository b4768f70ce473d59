"""A model of shared tasks: which wait, which are ready, and who holds them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from dittybag.domain.changes import Action
from dittybag.domain.claims import MICROSECONDS, Claim
from dittybag.domain.entities import Entity, Kind
from dittybag.domain.errors import (
    ClaimLost,
    DittybagError,
    Invalid,
    Problem,
    TaskClaimed,
    TaskCycle,
    TaskNotFound,
    TaskNotReady,
)
from dittybag.domain.projects import Project
from dittybag.domain.tasks import ENDED, Task
from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimRequest
from tests.storage_contract.workspace_model import WorkspaceModel


class TaskQueueModel(WorkspaceModel):
    """Projects and tasks with claims. Time passes only by `now`."""

    def __init__(self, now: int) -> None:
        super().__init__()
        self.now = now
        self.claims: dict[int, Claim] = {}

    @contextmanager
    def use_case(self) -> Iterator[None]:
        claims = dict(self.claims)
        try:
            with super().use_case():
                yield
        except DittybagError:
            self.claims = claims
            raise

    def write(self, action: Action, before: Entity | None, after: Entity | None) -> None:
        super().write(action, before, after)
        if isinstance(before, Task) and (
            not isinstance(after, Task) or after.status != "doing" or after.assignee != before.assignee
        ):
            self.claims.pop(before.id, None)

    def change(self, task: Task, action: Action = "update", **fields: Any) -> Task:
        after = replace(task, **fields, updated_at=self.now, version=task.version + 1)
        self.write(action, task, after)
        return after

    def restore_to(self, kind: Kind, key: str, wanted: Entity | None) -> None:
        before = len(self.changes)
        super().restore_to(kind, key, wanted)
        restored = self.entities.get((kind, key))
        if len(self.changes) == before:
            return
        if isinstance(restored, Task):
            self.require_no_cycle(restored.id)
        if isinstance(restored, Project):
            self.rename_tasks(restored, "restore")

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
