"""Random operations: a store behaves like a model of dicts, even after it is reopened."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from hashlib import sha256
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec import UNSET
from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.claims import MICROSECONDS
from dittybag.domain.entities import ENTITY_TYPES, Kind, key_of, kind_of
from dittybag.domain.errors import DittybagError, NameTaken, NotFound, SeveralConflicts, TitleTaken, UriTaken
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import ChangeQuery, PromptQuery
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import ENDED, Task
from dittybag.services.caller import Caller
from dittybag.services.history_service import UndoSelection
from dittybag.services.task_queue import ClaimRequest
from dittybag.services.workspace import Workspace
from tests.storage_contract.backends import Backend
from tests.storage_contract.log_consistency import ALL, EntitiesByKey, read_log, replay_log, stored_entities
from tests.storage_contract.naive_search import contains_words
from tests.storage_contract.sample_entities import create_entity
from tests.storage_contract.store_session import StoreSession
from tests.storage_contract.workspace_model import WorkspaceModel

T = TypeVar("T")

WHICH = st.integers(0, 30)
NAMES = st.sampled_from(["a", "b", "A", "c.d", "e", "f", "g"])
TITLES = st.sampled_from(["Eins", "eins", "ZWEI", "a", "Straße", "İ", "sieben"])
TEXTS = st.text(st.sampled_from("abcABC ßẞİςΣ%_'\"\n"), min_size=1, max_size=12)
LINES = TEXTS.map(lambda text: text.replace("\n", " ").strip() or "t")
TAGS = st.lists(st.sampled_from(["x", "y", "z"]), max_size=3, unique=True).map(tuple)
URIS = st.sampled_from(["x:1", "x:2", "x:{n}", "X:1", "x:3", "y:{n}", "x:4"])
BYTES = st.binary(max_size=6)
PROMPT_CHANGE = st.fixed_dictionaries(
    {}, optional={"title": TITLES, "content": TEXTS, "tags": TAGS, "description": TEXTS}
)
LEASE: Final = 60
#: Two people, and three agents of one of them.
PEOPLE: Final = (Caller(1, "ann", "ann"), Caller(1, "ben", "ben"))
AGENTS: Final = tuple(Caller(1, f"agent-{name}", "ann", interface="mcp") for name in "xyz")
CALLERS = st.sampled_from((*PEOPLE, *AGENTS, AGENTS[0]))
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "title": LINES,
        "notes": LINES,
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


class InjectedFailure(Exception):
    """An error that the store does not know."""


class StoreMachine(RuleBasedStateMachine):
    """Performs the same operations on a store that is open twice, and on a model."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._backend = backend
        self.model = WorkspaceModel(1_800_000_000 * MICROSECONDS, PEOPLE[0])
        self._location = self._run(backend.borrow())
        self._stores = [self._run(self._open()) for _ in range(2)]
        self._turn = 0

    async def _open(self) -> Store:
        return await self._backend.open(self._location, lambda: self.model.now)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def teardown(self) -> None:
        try:
            self._assert_every_view()
        finally:
            for store in self._stores:
                self._run(store.close())
            self._run(self._backend.give_back(self._location))
            self._runner.close()

    # Store and model

    @property
    def workspace(self) -> Workspace:
        """One of the two in turn."""
        self._turn += 1
        return Workspace(self._stores[self._turn % 2])

    def _session(self, project: int) -> StoreSession:
        return StoreSession(self.workspace, replace(PEOPLE[0], project=project))

    def _both(
        self, real: Callable[[], Awaitable[Any]], modelled: Callable[[], Any], who: Caller = PEOPLE[0]
    ) -> Any:
        """Run an operation on store and model. Returns the store's result; both may fail alike."""
        self.model.caller = who
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
        assert _sort(found if failed else None) is _sort(expected), (found, expected)
        return None if failed else found

    def _write(self, real: Callable[[], Awaitable[Any]], before: Any, wanted: Any) -> None:
        """Create or change a prompt or resource. `wanted`: without the fields that only the store knows."""
        self.model.now += 1
        expected = replace(
            wanted,
            created_at=self.model.now if before is None else before.created_at,
            updated_at=self.model.now,
            version=1 if before is None else before.version + 1,
        )
        found = self._both(real, lambda: self.model.require_unique(expected))
        if found is not None:
            if before is None:
                expected = replace(expected, id=found.id, number=found.number)
            assert found == expected
            with self.model.use_case():
                self.model.write("create" if before is None else "update", before, found)

    def _delete(self, real: Callable[[], Awaitable[Any]], entity: Any) -> None:
        self._both(real, lambda: self.model.write("delete", entity, None))

    def _pick(self, kind: Kind, which: int, fence: str = "none") -> Any:
        """Return an entity; a task that is held, if there is one and a fence is to be named."""
        # No two operations happen at the same time.
        self.model.now += 1
        found = self.model.all(kind)
        if fence != "none":
            found = [task for task in found if task.id in self.model.claims] or found
        return found[which % len(found)] if found else None

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
        default = self._run(StoreSession.newest_change(self._session(1))).after
        assert isinstance(default, Project)
        assert default.name == DEFAULT_PROJECT
        with self.model.use_case():
            self.model.write("create", None, default)

    # Projects

    @rule(name=NAMES)
    def create_project(self, name: str) -> None:
        self.model.now += 1
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
        self.model.now += 1
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

    # Prompts

    @rule(which=WHICH, name=NAMES, title=TITLES, content=TEXTS, tags=TAGS)
    def create_prompt(self, which: int, name: str, title: str, content: str, tags: tuple[str, ...]) -> None:
        session = self._session(self._pick("project", which).id)
        self._write(
            lambda: session.prompt(name, content, title=title, tags=tags),
            None,
            Prompt(
                number=0,
                id="",
                project=session.project,
                name=name,
                title=title,
                content=content,
                tags=tags,
                created_at=0,
                updated_at=0,
            ),
        )

    @rule(which=WHICH, change=PROMPT_CHANGE)
    def update_prompt(self, which: int, change: dict[str, Any]) -> None:
        prompt = self._pick("prompt", which)
        if prompt is not None:
            session = self._session(prompt.project)
            self._write(
                lambda: session.change_prompt(prompt.name, **change),
                prompt,
                replace(prompt, **change),
            )

    @rule(which=WHICH)
    def delete_prompt(self, which: int) -> None:
        prompt = self._pick("prompt", which)
        if prompt is not None:
            session = self._session(prompt.project)
            self._delete(lambda: session.delete_prompt(prompt.name), prompt)

    # Resources

    @rule(which=WHICH, name=NAMES, uri=URIS, content=TEXTS | BYTES)
    def create_resource(self, which: int, name: str, uri: str, content: str | bytes) -> None:
        session = self._session(self._pick("project", which).id)
        mime_type, digest, size = _content(content)
        self._write(
            lambda: session.resource(name, content, uri=uri),
            None,
            Resource(
                number=0,
                id="",
                project=session.project,
                name=name,
                uri=uri,
                mime_type=mime_type,
                sha256=digest,
                size=size,
                created_at=0,
                updated_at=0,
            ),
        )

    @rule(which=WHICH, content=st.none() | TEXTS, title=st.none() | TITLES)
    def update_resource(self, which: int, content: str | None, title: str | None) -> None:
        resource = self._pick("resource", which)
        if resource is None:
            return
        session = self._session(resource.project)
        wanted = replace(resource, title=title)
        if content is not None:
            mime_type, digest, size = _content(content)
            wanted = replace(wanted, mime_type=mime_type, sha256=digest, size=size)
        self._write(
            lambda: session.change_resource(
                resource.name,
                title=title or "",
                content=UNSET if content is None else content,
                mime_type=UNSET if content is None else "text/plain",
            ),
            resource,
            wanted,
        )

    @rule(which=WHICH)
    def delete_resource(self, which: int) -> None:
        resource = self._pick("resource", which)
        if resource is not None:
            session = self._session(resource.project)
            self._delete(lambda: session.delete_resource(resource.name), resource)

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
            lambda: self.workspace.tasks.create(who, project=name, **{"title": "t", **fields}, **edges),
            modelled,
            who,
        )

    def _edges(self, blocker: int, parent: int) -> dict[str, Any]:
        """Return edges to other tasks for half of the numbers."""
        blocking, whole = self._pick("task", blocker // 2), self._pick("task", parent // 2)
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
        task = self._pick("task", which, fence)
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

        self._both(lambda: self.workspace.tasks.update(who, task.id, fence=named, **fields), modelled, who)

    @rule(who=CALLERS, which=WHICH, place=WHICH)
    def move_to_project(self, who: Caller, which: int, place: int) -> None:
        task, project = self._pick("task", which), self._project(place)
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
        self._both(lambda: self.workspace.tasks.update(who, task.id, project=name), modelled, who)

    @rule(who=CALLERS, which=WHICH, how=st.sampled_from(["complete_all", "reopen_all", "delete_all"]))
    def mark_or_delete_task(self, who: Caller, which: int, how: str) -> None:
        task = self._pick("task", which)
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

        self._both(lambda: getattr(self.workspace.tasks, how)(who, [task.id]), modelled, who)

    # The queue

    @rule(who=CALLERS, request=REQUESTS, place=WHICH)
    def claim_next(self, who: Caller, request: ClaimRequest, place: int) -> None:
        project = self._project(place) if place % 3 == 0 else None
        request = replace(request, project=None if project is None else project.name)
        ready = self.model.ready(who, request)

        def modelled() -> None:
            if ready:
                self.model.claim(who, self.model.find(who, ready[0]), request)

        found = self._both(lambda: self.workspace.task_queue.claim_next(who, request), modelled, who)
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
        task = self._pick("task", which, "right" if which % 2 else "none")
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

        self._both(lambda: self.workspace.task_queue.claim(who, task.id, request), modelled, who)

    @rule(who=CALLERS, which=WHICH, fence=FENCES, status=st.sampled_from(["done", "dropped", "review"]))
    def finish(self, who: Caller, which: int, fence: str, status: Any) -> None:
        task = self._pick("task", which, fence)
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
            lambda: self.workspace.task_queue.finish(who, task.id, fence=named, status=status), modelled, who
        )

    @rule(who=CALLERS, which=WHICH, fence=FENCES)
    def release(self, who: Caller, which: int, fence: str) -> None:
        task = self._pick("task", which, fence)
        if task is None:
            return
        named = self._fence(fence, task)

        def modelled() -> None:
            before = self.model.find(who, task.id)
            self.model.require_fence(who, task.id, named)
            if before.status not in ("doing", "review"):
                self.model.require_claimable(who, replace(before, status="review"))
            self.model.change(before, status="todo", completed_at=None, assignee=None)

        self._both(lambda: self.workspace.task_queue.release(who, task.id, fence=named), modelled, who)

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
        self._both(lambda: end(AGENTS[0], connection), modelled, AGENTS[0])

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

    @rule(count=st.integers(1, 4), place=WHICH)
    def create_tasks_concurrently_with_a_failure(self, count: int, place: int) -> None:
        session = self._session(1)

        async def failing(transaction: Transaction) -> None:
            await create_entity(transaction, "task", session.project, "half-done")
            raise InjectedFailure

        async def at_once() -> list[Task | BaseException | None]:
            work: list[Awaitable[Task | None]] = [session.task(f"t{number}") for number in range(count)]
            work.insert(place % (count + 1), session.write(failing))
            return await asyncio.gather(*work, return_exceptions=True)

        self.model.now += 1
        self.model.caller = PEOPLE[0]
        outcomes = self._run(at_once())
        tasks = [outcome for outcome in outcomes if isinstance(outcome, Task)]
        assert [type(outcome) for outcome in outcomes if outcome not in tasks] == [InjectedFailure]
        for task in sorted(tasks, key=lambda task: task.id):
            with self.model.use_case():
                self.model.write("create", None, task)

    # History

    @rule(which=st.integers(0, 1000), how=st.sampled_from(["undo", "restore"]))
    def undo_or_restore(self, which: int, how: str) -> None:
        index = which % len(self.model.changes)
        history = self.workspace.history

        def real() -> Awaitable[Any]:
            if how == "undo":
                return history.undo(PEOPLE[0], UndoSelection(seq=index + 1))
            return history.restore(PEOPLE[0], index + 1)

        self._both(real, lambda: getattr(self.model, how)(index))

    # Reading and reopening

    @rule(which=WHICH, of=WHICH, words=TEXTS)
    def search(self, which: int, of: int, words: str) -> None:
        """Search for a current or former text, or for a random text."""
        texts = [
            text
            for change in self.model.changes
            for name in ("title", "content", "notes")
            if (text := getattr(change.after, name, None))
        ]
        query = texts[of % len(texts)].swapcase() if texts and of % 4 else words
        session = self._session(self._pick("project", which).id)
        page = self._run(
            session.workspace.prompts.page(
                session.caller, PromptQuery(project=session.caller.project, text=query, limit=100, offset=0)
            )
        )
        assert {item.id for item in page.prompts} == {
            prompt.id
            for prompt in self.model.all("prompt", session.project)
            if query.casefold() in prompt.title.casefold() or query.casefold() in prompt.content.casefold()
        }
        _, tasks = self._run(session.workspace.tasks.search(session.caller, query))
        assert {task.id for task in tasks} == {
            task.id
            for task in self.model.all("task")
            if self.model.is_visible(session.caller, task.id)
            and contains_words(query, task.title, task.notes)
        }

    @rule(which=WHICH, tags=TAGS)
    def filter_by_tags(self, which: int, tags: tuple[str, ...]) -> None:
        session = self._session(self._pick("project", which).id)
        page, _ = self._run(session.workspace.prompts.by_tags(session.caller, tags, 100, 0))
        prompts = self.model.all("prompt", session.project)
        prompts.sort(key=lambda prompt: (-prompt.updated_at, -prompt.number))
        assert [item.id for item in page.prompts] == [p.id for p in prompts if set(p.tags) & set(tags)]
        counts = {tag: sum(tag in prompt.tags for prompt in prompts) for tag in ("x", "y", "z")}
        in_use = self._run(session.workspace.prompts.tags(session.caller))
        assert {tag.name: tag.prompt_count for tag in in_use} == {t: n for t, n in counts.items() if n}

    @rule(which=WHICH)
    def get_deleted_task(self, which: int) -> None:
        gone = [
            change
            for change in self.model.changes
            if change.after is None and change.kind == "task" and change.before
        ]
        if gone:
            number = gone[which % len(gone)].entity
            if ("task", number) not in self.model.entities:
                session = self._session(1)
                error = self._run(_catch_error(session.workspace.tasks.get(session.caller, int(number))))
                assert isinstance(error, NotFound)

    @rule(chosen=st.sampled_from([(0,), (1,), (0, 1)]))
    def close_and_reopen(self, chosen: tuple[int, ...]) -> None:
        for which in chosen:
            self._run(self._stores[which].close())
        for which in chosen:
            self._stores[which] = self._run(self._open())

    # Invariants

    @invariant()
    def the_store_equals_the_model(self) -> None:
        held, changes, waiting, claims, ready = self._run(self._read())
        assert held == self.model.entities
        self._assert_log(changes)
        unfinished = [task.id for task in self.model.all("task") if task.status not in ENDED]
        assert waiting == {task: self.model.waits_for(task) for task in unfinished}
        assert claims == self.model.claims
        assert ready == [self.model.ready(who, ClaimRequest()) for who in (PEOPLE[1], AGENTS[0])]

    async def _read(self) -> tuple[EntitiesByKey, list[Change], Any, Any, Any]:
        """Read everything with few queries, because this runs after every step."""

        async def work(transaction: Transaction) -> tuple[EntitiesByKey, list[Change], Any, Any]:
            found = [
                entity for kind in ENTITY_TYPES for entity in await transaction.page_of_kind(kind, 0, ALL)
            ]
            numbers = [entity.id for entity in found if isinstance(entity, Task)]
            return (
                {(kind_of(entity), key_of(entity)): entity for entity in found},
                await transaction.changes.page(ChangeQuery(oldest_first=True)),
                await transaction.edges.waiting(numbers),
                {claim.task: claim for claim in await transaction.claims.of_tasks(numbers)},
            )

        workspace = self.workspace
        ready = [
            [task.id for task in (await workspace.task_queue.ready(who, ClaimRequest(), limit=99)).tasks]
            for who in (PEOPLE[1], AGENTS[0])
        ]
        return *await workspace.store.read(work), ready

    def _assert_log(self, changes: list[Change]) -> None:
        assert [(c.action, c.kind, c.entity, c.before, c.after) for c in changes] == [
            (change.action, change.kind, change.entity, change.before, change.after)
            for change in self.model.changes
        ]
        assert _first_indexes(change.batch for change in changes) == _first_indexes(
            change.batch for change in self.model.changes
        )

    def _assert_every_view(self) -> None:
        """The views by project agree, and every content is readable."""
        store = self.workspace.store
        in_projects = {key: held for key, held in self.model.entities.items() if key[0] != "task"}
        assert self._run(stored_entities(store, users=())) == in_projects
        projects = sorted({int(change.entity) for change in self.model.changes if change.kind == "project"})
        changes = self._run(read_log(store, projects))
        assert replay_log(changes) == self.model.entities
        self._assert_log(changes)


def _first_indexes(batches: Iterable[int]) -> list[int]:
    """Return, for each value, the index of its first occurrence."""
    places: dict[int, int] = {}
    return [places.setdefault(batch, place) for place, batch in enumerate(batches)]


def _place(project: Project | None) -> dict[str, Any]:
    return {
        "project": None if project is None else project.name,
        "project_id": None if project is None else project.id,
    }


async def _catch_error(awaitable: Awaitable[Any]) -> DittybagError | None:
    try:
        await awaitable
    except DittybagError as error:
        return error
    return None


def _sort(error: DittybagError | None) -> type[DittybagError] | None:
    """Return the class of an error. The model does not predict which of several names is taken first."""
    if error is None:
        return None
    return NameTaken if isinstance(error, (SeveralConflicts, TitleTaken, UriTaken)) else type(error)


def _content(content: str | bytes) -> tuple[str, str, int]:
    """Return the MIME type, hash and size of content."""
    data = content if isinstance(content, bytes) else content.encode()
    kind = "application/octet-stream" if isinstance(content, bytes) else "text/plain"
    return kind, sha256(data).hexdigest(), len(data)


@pytest.mark.timeout(600)  # Hypothesis needs time to shrink a failing example
def test_a_store_behaves_like_the_model(backend: Backend) -> None:
    run_state_machine_as_test(
        lambda: StoreMachine(backend),  # type: ignore[arg-type]  # a factory is allowed, see its documentation
        settings=settings(
            max_examples=backend.examples,
            stateful_step_count=100,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
