"""Random operations on shared tasks: edges, claims and leases are those of a model, also after undo."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from dittybag.domain.claims import MICROSECONDS
from dittybag.domain.entities import ENTITY_TYPES, key_of, kind_of
from dittybag.domain.errors import DittybagError, NameTaken
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.tasks import ENDED, Task
from dittybag.services.caller import Caller
from dittybag.services.history_service import UndoSelection
from dittybag.services.task_queue import ClaimRequest
from dittybag.services.workspace import Workspace
from tests.repetitions import repetitions
from tests.storage_contract.backends import Backend
from tests.storage_contract.log_consistency import ALL, EntitiesByKey
from tests.storage_contract.task_queue_model import TaskQueueModel

T = TypeVar("T")

WHICH = st.integers(0, 12)
NAMES = st.sampled_from(["a", "b", "c"])
LEASE: Final = 60
#: Two people, and three agents of one of them.
PEOPLE: Final = (Caller(1, "ann", "ann"), Caller(1, "ben", "ben"))
AGENTS: Final = tuple(Caller(1, f"agent-{name}", "ann", interface="mcp") for name in "xyz")
CALLERS = st.sampled_from((*PEOPLE, *AGENTS, AGENTS[0]))
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.integers(1, 5),
        "due_date": st.sampled_from(["", "2026-03-01", "2026-02-01"]),
        "labels": st.sampled_from([(), ("l",), ("l", "m")]),
        "assignee": st.sampled_from(["", "ann", "agent-x", "agent-y"]),
        "status": st.sampled_from(["todo", "todo", "doing", "review", "done", "dropped"]),
    },
)
#: The fence that a caller names: none, the one of the claim, or another one.
FENCES = st.sampled_from(["none", "right", "right", "right", "stale"])
MOMENTS = st.sampled_from(["next lapse", "before the next lapse", "later"])
REQUESTS = st.builds(
    ClaimRequest,
    labels=st.sampled_from([(), (), ("l",), ("m",), ("l", "m")]),
    lease_seconds=st.sampled_from([LEASE, LEASE, 1]),
    connection=st.sampled_from(["", "c1", "c2"]),
)


class TaskMachine(RuleBasedStateMachine):
    """Performs the same operations on a store that is open twice, and on a model."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._backend = backend
        self.model = TaskQueueModel(1_800_000_000 * MICROSECONDS)
        self._location = self._run(backend.borrow())
        self._stores = [self._run(backend.open(self._location, lambda: self.model.now)) for _ in range(2)]
        self._turn = 0

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def teardown(self) -> None:
        for store in self._stores:
            self._run(store.close())
        self._run(self._backend.give_back(self._location))
        self._runner.close()

    @property
    def workspace(self) -> Workspace:
        """One of the two in turn."""
        self._turn += 1
        return Workspace(self._stores[self._turn % 2])

    def _both(self, real: Callable[[], Awaitable[Any]], modelled: Callable[[], Any]) -> Any:
        """Run an operation on store and model. Returns the store's result; both may fail alike."""
        expected: DittybagError | None = None
        try:
            with self.model.use_case():
                modelled()
        except DittybagError as error:
            expected = error

        async def attempt() -> Any:
            try:
                return await real()
            except DittybagError as error:
                return error

        found = self._run(attempt())
        failed = isinstance(found, DittybagError)
        assert type(found if failed else None) is type(expected), (found, expected)
        return None if failed else found

    def _pick(self, which: int, fence: str = "none") -> Task | None:
        """Return a task; one that is held, if there is one and a fence is to be named."""
        # No two operations happen at the same time.
        self.model.now += 1
        tasks = self.model.all("task")
        if fence != "none":
            tasks = [task for task in tasks if task.id in self.model.claims] or tasks
        return tasks[which % len(tasks)] if tasks else None

    def _project(self, which: int) -> Project | None:
        """Return a project, or `None`: the task is then its user's alone."""
        projects: list[Any] = [None, *self.model.all("project")]
        found: Project | None = projects[which % len(projects)]
        return found

    def _fence(self, kind: str, task: Task) -> int | None:
        claim = self.model.claims.get(task.id)
        if kind == "none":
            return None
        return (0 if claim is None else claim.fence) - (kind == "stale")

    @initialize()
    def begin(self) -> None:
        default = self._run(self._newest()).after
        assert isinstance(default, Project)
        with self.model.use_case():
            self.model.write("create", None, default)

    async def _newest(self) -> Any:
        return (await self.workspace.history.page(PEOPLE[0], ChangeQuery(limit=1)))[0]

    # Projects

    @rule(name=NAMES)
    def create_project(self, name: str) -> None:
        number = 1 + max(int(change.entity) for change in self.model.changes if change.kind == "project")
        project = Project(id=number, name=name, created_at=self.model.now, updated_at=self.model.now)

        def modelled() -> None:
            self.model.require_unique(project)
            self.model.write("create", None, project)

        self._both(lambda: self.workspace.projects.create(name, actor="ann"), modelled)

    @rule(which=WHICH, name=NAMES)
    def rename_project(self, which: int, name: str) -> None:
        project = self._project(which)
        if project is None or project.name in (DEFAULT_PROJECT, name):
            return
        renamed = replace(project, name=name, updated_at=self.model.now, version=project.version + 1)

        def modelled() -> None:
            if any(other.name == name for other in self.model.all("project")):
                raise NameTaken("project", name)
            self.model.write("update", project, renamed)
            self.model.rename_tasks(renamed, "update")

        self._both(lambda: self.workspace.projects.rename(project.name, name, actor="ann"), modelled)

    @rule(which=WHICH)
    def delete_project(self, which: int) -> None:
        project = self._project(which)
        if project is not None and project.name != DEFAULT_PROJECT:

            def modelled() -> None:
                self.model.delete_contents(project)
                self.model.write("delete", project, None)

            self._both(lambda: self.workspace.projects.delete(project.name, actor="ann"), modelled)

    # Tasks

    @rule(who=CALLERS, place=WHICH, fields=FIELDS, blocker=WHICH, parent=WHICH)
    def create_task(self, who: Caller, place: int, fields: dict[str, Any], blocker: int, parent: int) -> None:
        project = self._project(place)
        edges = self._edges(blocker, parent)
        number = 1 + max((int(c.entity) for c in self.model.changes if c.kind == "task"), default=0)
        now = self.model.now
        new = Task(id=number, user=who.user, title="t", created_at=now, updated_at=now)

        def modelled() -> None:
            task = self._with_fields(replace(new, **_place(project)), {**fields, **edges})
            self.model.require_visible_edges(who, None, task)
            self.model.write("create", None, task)
            self.model.require_no_cycle(task.id)

        name = "" if project is None else project.name
        self._both(
            lambda: self.workspace.tasks.create(who, title="t", project=name, **fields, **edges), modelled
        )

    def _edges(self, blocker: int, parent: int) -> dict[str, Any]:
        """Return edges to other tasks for half of the numbers."""
        blocking, whole = self._pick(blocker // 2), self._pick(parent // 2)
        edges: dict[str, Any] = {}
        if blocking is not None and blocker % 2:
            edges["blocked_by"] = (blocking.id,)
        if whole is not None and parent % 2:
            edges["parent"] = whole.id
        return edges

    def _with_fields(self, task: Task, fields: dict[str, Any]) -> Task:
        stored = ENTITY_TYPES["task"].normalise(fields)
        status = fields.get("status", task.status)
        completed_at = task.completed_at
        if (status == "done") != task.completed:
            completed_at = self.model.now if status == "done" else None
        return replace(task, **stored, completed_at=completed_at)

    @rule(who=CALLERS, which=WHICH, fields=FIELDS, fence=FENCES)
    def update_task(self, who: Caller, which: int, fields: dict[str, Any], fence: str) -> None:
        self._update(who, which, fields, fence)

    @rule(who=CALLERS, which=WHICH, blocker=WHICH, fence=FENCES)
    def block_task(self, who: Caller, which: int, blocker: int, fence: str) -> None:
        self._update(who, which, {"blocked_by": self._edges(blocker, 0).get("blocked_by", ())}, fence)

    @rule(who=CALLERS, which=WHICH, parent=WHICH, fence=FENCES)
    def move_to_parent(self, who: Caller, which: int, parent: int, fence: str) -> None:
        self._update(who, which, {"parent": self._edges(0, parent).get("parent")}, fence)

    def _update(self, who: Caller, which: int, fields: dict[str, Any], fence: str) -> None:
        task = self._pick(which, fence)
        if task is None:
            return
        named = self._fence(fence, task)

        def modelled() -> None:
            before = self.model.find(who, task.id)
            self.model.require_fence(who, task.id, named)
            after = self._with_fields(before, fields)
            self.model.require_visible_edges(who, before, after)
            if fields or named is None:
                given = {name: getattr(after, name) for name in (*fields, "completed_at")}
                self.model.change(before, **given)
            if "blocked_by" in fields or "parent" in fields:
                self.model.require_no_cycle(task.id)

        self._both(lambda: self.workspace.tasks.update(who, task.id, fence=named, **fields), modelled)

    @rule(who=CALLERS, which=WHICH, place=WHICH)
    def move_to_project(self, who: Caller, which: int, place: int) -> None:
        task, project = self._pick(which), self._project(place)
        if task is None:
            return

        def modelled() -> None:
            before = self.model.find(who, task.id)
            self.model.require_fence(who, task.id, None)
            where = _place(project)
            if where["project"] == before.project:
                where = {}
            elif before.project_id is not None and project is None:
                where["user"] = who.user
            self.model.change(before, **where)

        name = "" if project is None else project.name
        self._both(lambda: self.workspace.tasks.update(who, task.id, project=name), modelled)

    @rule(who=CALLERS, which=WHICH, how=st.sampled_from(["complete_all", "reopen_all", "delete_all"]))
    def mark_or_delete_task(self, who: Caller, which: int, how: str) -> None:
        task = self._pick(which)
        if task is None:
            return

        def modelled() -> None:
            before = self.model.find(who, task.id)
            self.model.require_fence(who, task.id, None)
            if how == "delete_all":
                self.model.write("delete", before, None)
            elif how == "complete_all" and not before.completed:
                self.model.change(before, status="done", completed_at=self.model.now)
            elif how == "reopen_all" and before.status in ENDED:
                self.model.change(before, status="todo", completed_at=None)

        self._both(lambda: getattr(self.workspace.tasks, how)(who, [task.id]), modelled)

    # The queue

    @rule(who=CALLERS, request=REQUESTS, place=WHICH)
    def claim_next(self, who: Caller, request: ClaimRequest, place: int) -> None:
        project = self._project(place) if place % 3 == 0 else None
        request = replace(request, project=None if project is None else project.name)
        ready = self.model.ready(who, request)

        def modelled() -> None:
            if ready:
                self.model.claim(who, self.model.find(who, ready[0]), request)

        found = self._both(lambda: self.workspace.task_queue.claim_next(who, request), modelled)
        assert (None if found is None else found.task.id) == (ready[0] if ready else None)
        if found is not None:
            assert found.claim == self.model.claims[found.task.id]

    @rule(who=st.sampled_from(AGENTS), blocker=WHICH, fields=FIELDS)
    def work(self, who: Caller, blocker: int, fields: dict[str, Any]) -> None:
        """Create a task, claim the best one, and change it as its holder."""
        self.create_task(who, 0, {}, blocker, 0)
        self.claim_next(who, ClaimRequest(lease_seconds=LEASE, connection="c1"), 1)
        self._update(who, blocker, fields, "right")

    @rule(who=CALLERS, which=WHICH, request=REQUESTS)
    def claim_task(self, who: Caller, which: int, request: ClaimRequest) -> None:
        task = self._pick(which)
        if task is None:
            return

        def modelled() -> None:
            found = self.model.find(who, task.id)
            held = self.model.live_claim(task.id)
            if held is not None and request.connection and held.connection == request.connection:
                lease = request.lease_seconds * MICROSECONDS
                self.model.claims[task.id] = replace(held, lease=lease, until=self.model.now + lease)
                return
            if held is not None:
                self.model.require_fence(AGENTS[0], task.id, None)
            self.model.require_claimable(who, found)
            self.model.claim(who, found, request)

        self._both(lambda: self.workspace.task_queue.claim(who, task.id, request), modelled)

    @rule(who=CALLERS, which=WHICH, fence=FENCES, status=st.sampled_from(["done", "dropped", "review"]))
    def finish(self, who: Caller, which: int, fence: str, status: Any) -> None:
        task = self._pick(which, fence)
        if task is None:
            return
        named = self._fence(fence, task)

        def modelled() -> None:
            before = self.model.find(who, task.id)
            self.model.require_fence(who, task.id, named)
            if before.status != status:
                completed_at = (before.completed_at or self.model.now) if status == "done" else None
                self.model.change(before, status=status, completed_at=completed_at)

        self._both(
            lambda: self.workspace.task_queue.finish(who, task.id, fence=named, status=status), modelled
        )

    @rule(who=CALLERS, which=WHICH, fence=FENCES)
    def release(self, who: Caller, which: int, fence: str) -> None:
        task = self._pick(which, fence)
        if task is None:
            return
        named = self._fence(fence, task)

        def modelled() -> None:
            before = self.model.find(who, task.id)
            self.model.require_fence(who, task.id, named)
            if before.status not in ("doing", "review"):
                self.model.require_claimable(who, replace(before, status="review"))
            self.model.change(before, status="todo", completed_at=None, assignee=None)

        self._both(lambda: self.workspace.task_queue.release(who, task.id, fence=named), modelled)

    @rule(connection=st.sampled_from(["c1", "c2"]), ends=st.booleans())
    def renew_or_end_connection(self, connection: str, ends: bool) -> None:
        def modelled() -> None:
            for claim in sorted(self.model.claims.values(), key=lambda claim: claim.task):
                if claim.connection != connection or self.model.live_claim(claim.task) is None:
                    continue
                if not ends:
                    self.model.claims[claim.task] = replace(claim, until=self.model.now + claim.lease)
                elif self.model.is_visible(AGENTS[0], claim.task):
                    task = self.model.find(AGENTS[0], claim.task)
                    self.model.change(task, status="todo", assignee=None)

        queue = self.workspace.task_queue
        end = queue.release_connection if ends else queue.renew
        self._both(lambda: end(AGENTS[0], connection), modelled)

    @rule(until=MOMENTS)
    def pass_time(self, until: str) -> None:
        ends = [claim.until for claim in self.model.claims.values() if claim.until > self.model.now]
        lapse = min(ends, default=self.model.now + LEASE * MICROSECONDS)
        # The next operation happens a microsecond later.
        self.model.now = {
            "next lapse": lapse - 1,
            "before the next lapse": max(lapse - 2, self.model.now),
            "later": self.model.now + MICROSECONDS,
        }[until]

    @rule(who=CALLERS, until=MOMENTS, which=WHICH, fields=FIELDS)
    def write_later(self, who: Caller, until: str, which: int, fields: dict[str, Any]) -> None:
        self.pass_time(until)
        self._update(who, which, fields, "right")

    # History

    @rule(which=st.integers(0, 1000), how=st.sampled_from(["undo", "restore"]))
    def undo_or_restore(self, which: int, how: str) -> None:
        index = which % len(self.model.changes)
        if self.model.changes[index].batch == self.model.changes[0].batch:
            return
        history = self.workspace.history
        caller = PEOPLE[0]

        def real() -> Awaitable[Any]:
            if how == "undo":
                return history.undo(caller, UndoSelection(seq=index + 1))
            return history.restore(caller, index + 1)

        # The model's operations are use cases of their own.
        expected: DittybagError | None = None
        try:
            getattr(self.model, how)(index)
        except DittybagError as error:
            expected = error
        self._both(real, lambda: _raise(expected))

    # Invariants

    @invariant()
    def the_store_equals_the_model(self) -> None:
        entities, log, waiting, claims, ready = self._run(self._read())
        assert entities == self.model.entities
        assert log == [(c.action, c.kind, c.entity, c.before, c.after) for c in self.model.changes]
        unfinished = [task.id for task in self.model.all("task") if task.status not in ENDED]
        assert waiting == {task: self.model.waits_for(task) for task in unfinished}
        assert claims == self.model.claims
        assert ready == [self.model.ready(who, ClaimRequest()) for who in (PEOPLE[1], AGENTS[0])]

    async def _read(self) -> tuple[EntitiesByKey, Any, Any, Any, Any]:
        async def work(transaction: Transaction) -> tuple[EntitiesByKey, Any, Any, Any]:
            found = [
                entity for kind in ENTITY_TYPES for entity in await transaction.page_of_kind(kind, 0, ALL)
            ]
            numbers = [entity.id for entity in found if isinstance(entity, Task)]
            log = await transaction.changes.page(ChangeQuery(oldest_first=True))
            claims = await transaction.claims.of_tasks(numbers)
            return (
                {(kind_of(entity), key_of(entity)): entity for entity in found},
                [(change.action, change.kind, change.entity, change.before, change.after) for change in log],
                await transaction.edges.waiting(numbers),
                {claim.task: claim for claim in claims},
            )

        workspace = self.workspace
        ready = [
            [task.id for task in (await workspace.task_queue.ready(who, ClaimRequest(), limit=99)).tasks]
            for who in (PEOPLE[1], AGENTS[0])
        ]
        return *await workspace.store.read(work), ready


def _place(project: Project | None) -> dict[str, Any]:
    return {
        "project": None if project is None else project.name,
        "project_id": None if project is None else project.id,
    }


def _raise(error: DittybagError | None) -> None:
    if error is not None:
        raise error


@pytest.mark.timeout(600)  # Hypothesis needs time to shrink a failing example
def test_shared_tasks_behave_like_the_model(backend: Backend) -> None:
    run_state_machine_as_test(
        lambda: TaskMachine(backend),  # type: ignore[arg-type]  # a factory is allowed, see its documentation
        settings=settings(
            max_examples=repetitions(backend.examples // 2, backend.examples),
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
