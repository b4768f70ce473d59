"""Random operations: a store behaves like a model of dicts, even after it is reopened."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from hashlib import sha256
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec import UNSET
from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.entities import ENTITY_TYPES, Kind, key_of, kind_of
from dittybag.domain.errors import Conflict, DittybagError, NotFound
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import ChangeQuery, PromptQuery
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import DEFAULT_USER, Task
from dittybag.services.caller import Caller
from dittybag.services.history_service import UndoSelection
from dittybag.services.workspace import Workspace
from tests.storage_contract.backends import Backend
from tests.storage_contract.log_consistency import ALL, EntitiesByKey, read_log, replay_log, stored_entities
from tests.storage_contract.naive_search import contains_words
from tests.storage_contract.sample_entities import create_entity
from tests.storage_contract.store_session import ACTOR, StoreSession
from tests.storage_contract.workspace_model import WorkspaceModel

T = TypeVar("T")

WHICH = st.integers(0, 30)
NAMES = st.sampled_from(["a", "b", "A", "c.d", "e", "f", "g"])
TITLES = st.sampled_from(["Eins", "eins", "ZWEI", "a", "Straße", "İ", "sieben"])
TEXTS = st.text(st.sampled_from("abcABC ßẞİςΣ%_'\"\n"), min_size=1, max_size=12)
TAGS = st.lists(st.sampled_from(["x", "y", "z"]), max_size=3, unique=True).map(tuple)
URIS = st.sampled_from(["x:1", "x:2", "x:{n}", "X:1", "x:3", "y:{n}", "x:4"])
BYTES = st.binary(max_size=6)
TASK_FIELDS = st.fixed_dictionaries(
    {"title": TEXTS.map(lambda text: text.replace("\n", " ").strip() or "t")},
    optional={
        "notes": TEXTS,
        "priority": st.integers(1, 5),
        "project": st.sampled_from(["default", "a", "free"]),
        "due_date": st.just("2026-03-01"),
    },
)
PROMPT_CHANGE = st.fixed_dictionaries(
    {}, optional={"title": TITLES, "content": TEXTS, "tags": TAGS, "description": TEXTS}
)


class InjectedFailure(Exception):
    """An error that the store does not know."""


class StoreMachine(RuleBasedStateMachine):
    """Performs the same operations on a store that is open twice, and on a model."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._backend = backend
        self._location = self._run(backend.borrow())
        self._stores = [self._run(backend.open(self._location)) for _ in range(2)]
        self._turn = 0
        self.model = WorkspaceModel()

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

    def _store(self) -> Store:
        """Return one of the two stores in turn."""
        self._turn += 1
        return self._stores[self._turn % 2]

    def _session(self, project: int) -> StoreSession:
        return StoreSession(Workspace(self._store()), Caller(project, ACTOR, DEFAULT_USER))

    def _run_both(self, real: Callable[[], Awaitable[T]], modelled: Callable[[], Any]) -> T | None:
        """Run an operation on store and model. Returns the store's result, or `None` if both fail alike."""

        async def attempt() -> T | DittybagError:
            try:
                return await real()
            except DittybagError as error:
                return error

        expected: DittybagError | None = None
        try:
            modelled()
        except DittybagError as error:
            expected = error
        outcome = self._run(attempt())
        if isinstance(outcome, DittybagError):
            assert _error_class(outcome) is _error_class(expected), outcome
            return None
        assert expected is None, expected
        return outcome

    def _write(
        self,
        real: Callable[[], Awaitable[Any]],
        before: Any,
        wanted: Callable[[], Any],
    ) -> None:
        """Create or change an entity. `wanted`: its expected state, except for fields that the store sets."""
        modelled: list[Any] = []

        def predict() -> None:
            with self.model.use_case():
                modelled.append(wanted())
                self.model.require_unique(modelled[0])

        outcome = self._run_both(real, predict)
        if outcome is None:
            return
        stored = outcome[0] if isinstance(outcome, tuple) else outcome
        known = {
            name: getattr(stored, name)
            for name in ("id", "number", "created_at", "updated_at", "completed_at", "version")
            if hasattr(stored, name)
        }
        assert stored == replace(modelled[0], **known)
        if before is None:
            assert stored.version == 1
            assert stored.created_at == stored.updated_at
        else:
            assert stored.version == before.version + 1
            assert (stored.id, stored.created_at) == (before.id, before.created_at)
        with self.model.use_case():
            self.model.write("create" if before is None else "update", before, stored)

    def _delete(self, real: Callable[[], Awaitable[Any]], entity: Any) -> None:
        self._run(_await(real()))
        with self.model.use_case():
            if isinstance(entity, Project):
                self.model.delete_contents(entity)
            self.model.write("delete", entity, None)

    def _pick(self, kind: Kind, which: int) -> Any:
        entities = self.model.all(kind)
        return entities[which % len(entities)] if entities else None

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
        projects = self._session(1).workspace.projects
        self._write(
            lambda: projects.create(name, actor=ACTOR),
            None,
            lambda: Project(id=0, name=name, created_at=0, updated_at=0),
        )

    @rule(which=WHICH, name=NAMES)
    def rename_project(self, which: int, name: str) -> None:
        project = self._pick("project", which)
        if DEFAULT_PROJECT not in (project.name, name) and project.name != name:
            projects = self._session(1).workspace.projects
            self._write(
                lambda: projects.rename(project.name, name, actor=ACTOR),
                project,
                lambda: replace(project, name=name),
            )

    @rule(which=WHICH)
    def delete_project(self, which: int) -> None:
        project = self._pick("project", which)
        if project.name != DEFAULT_PROJECT:
            projects = self._session(1).workspace.projects
            self._delete(lambda: projects.delete(project.name, actor=ACTOR), project)

    # Prompts

    @rule(which=WHICH, name=NAMES, title=TITLES, content=TEXTS, tags=TAGS)
    def create_prompt(self, which: int, name: str, title: str, content: str, tags: tuple[str, ...]) -> None:
        session = self._session(self._pick("project", which).id)
        self._write(
            lambda: session.prompt(name, content, title=title, tags=tags),
            None,
            lambda: Prompt(
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
                lambda: replace(prompt, **change),
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
            lambda: Resource(
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
            lambda: wanted,
        )

    @rule(which=WHICH)
    def delete_resource(self, which: int) -> None:
        resource = self._pick("resource", which)
        if resource is not None:
            session = self._session(resource.project)
            self._delete(lambda: session.delete_resource(resource.name), resource)

    # Tasks

    @rule(fields=TASK_FIELDS)
    def create_task(self, fields: dict[str, Any]) -> None:
        session = self._session(1)
        self._write(
            lambda: session.task(**fields),
            None,
            lambda: Task(id=0, user=session.caller.user, created_at=0, updated_at=0, **fields),
        )

    @rule(which=WHICH, fields=TASK_FIELDS)
    def update_task(self, which: int, fields: dict[str, Any]) -> None:
        task = self._pick("task", which)
        if task is not None:
            session = self._session(1)
            self._write(
                lambda: session.workspace.tasks.update(session.owner, task.id, **fields),
                task,
                lambda: replace(task, **fields),
            )

    @rule(which=WHICH)
    def complete_task(self, which: int) -> None:
        task = self._pick("task", which)
        if task is not None and not task.completed:
            session = self._session(1)
            self._write(lambda: session.workspace.tasks.complete(session.caller, task.id), task, lambda: task)
            assert self.model.entities["task", str(task.id)].completed  # type: ignore[union-attr]

    @rule(which=WHICH)
    def delete_task(self, which: int) -> None:
        task = self._pick("task", which)
        if task is not None:
            session = self._session(1)
            self._delete(lambda: session.workspace.tasks.delete(session.caller, task.id), task)

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

        outcomes = self._run(at_once())
        tasks = [outcome for outcome in outcomes if isinstance(outcome, Task)]
        assert [type(outcome) for outcome in outcomes if outcome not in tasks] == [InjectedFailure]
        for task in sorted(tasks, key=lambda task: task.id):
            with self.model.use_case():
                self.model.write("create", None, task)

    # History

    def _seq(self, which: int) -> tuple[int, int, Caller]:
        """Return a change: its index in the model's log, its `seq`, and a caller who may undo it."""
        session = self._session(1)
        _, changes = self._run(session.store.read(_read_all))
        index = which % len(changes)
        change = changes[index]
        return index, change.seq, replace(session.caller, project=change.project or 1)

    @rule(which=st.integers(0, 1000))
    def undo(self, which: int) -> None:
        index, seq, caller = self._seq(which)
        history = self._session(1).workspace.history
        self._run_both(
            lambda: history.undo(caller, UndoSelection(seq=seq, project=caller.project)),
            lambda: self.model.undo(index),
        )

    @rule(which=st.integers(0, 1000))
    def restore(self, which: int) -> None:
        index, seq, caller = self._seq(which)
        history = self._session(1).workspace.history
        self._run_both(
            lambda: history.restore(caller, seq, project=caller.project), lambda: self.model.restore(index)
        )

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
            task.id for task in self.model.all("task") if contains_words(query, task.title, task.notes)
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
            self._stores[which] = self._run(self._backend.open(self._location))

    # Invariants

    @invariant()
    def the_store_equals_the_model(self) -> None:
        held, changes = self._run(self._store().read(_read_all))
        assert held == self.model.entities
        self._assert_log(changes)

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
        projects = sorted({int(change.entity) for change in self.model.changes if change.kind == "project"})
        assert self._run(stored_entities(self._store())) == self.model.entities
        changes = self._run(read_log(self._store(), projects))
        assert replay_log(changes) == self.model.entities
        self._assert_log(changes)


def _first_indexes(batches: Iterable[int]) -> list[int]:
    """Return, for each value, the index of its first occurrence."""
    places: dict[int, int] = {}
    return [places.setdefault(batch, place) for place, batch in enumerate(batches)]


async def _read_all(transaction: Transaction) -> tuple[EntitiesByKey, list[Change]]:
    """Return all entities and the log with few queries, because it runs after every step."""
    entities = [entity for kind in ENTITY_TYPES for entity in await transaction.page_of_kind(kind, 0, ALL)]
    return {(kind_of(entity), key_of(entity)): entity for entity in entities}, await transaction.changes.page(
        ChangeQuery(oldest_first=True)
    )


async def _await(awaitable: Awaitable[T]) -> T:
    return await awaitable


async def _catch_error(awaitable: Awaitable[Any]) -> DittybagError | None:
    try:
        await awaitable
    except DittybagError as error:
        return error
    return None


def _error_class(error: DittybagError | None) -> type[DittybagError] | None:
    """Return the class of an error. The model does not predict which of several conflicts comes first."""
    return next((sort for sort in (NotFound, Conflict) if isinstance(error, sort)), None)


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
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
