"""A store behaves like a model of dicts, whatever is done in whatever order, also after it is reopened."""

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

from dittybag.domain.changes import KINDS, Change, Kind, key_of, kind_of
from dittybag.domain.errors import Conflict, DittybagError, NotFound
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import DEFAULT_USER, Task
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from tests.storage_contract.backends import Backend
from tests.storage_contract.desk import ACTOR, Desk
from tests.storage_contract.ledger import ALL, Holdings, holdings, log, replay_log
from tests.storage_contract.model import Model
from tests.storage_contract.things import make

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


class Mishap(Exception):
    """Something that the store knows nothing of."""


class StoreMachine(RuleBasedStateMachine):
    """Does the same with a store, which two processes have open, and with a model."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._backend = backend
        self._place = backend.new_place()
        self._stores = [self._run(backend.open(self._place)) for _ in range(2)]
        self._turn = 0
        self.model = Model()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def teardown(self) -> None:
        try:
            self._assert_every_view()
        finally:
            for store in self._stores:
                self._run(store.close())
            self._runner.close()

    # Doing the same twice

    def _store(self) -> Store:
        """One of the two, in turn."""
        self._turn += 1
        return self._stores[self._turn % 2]

    def _desk(self, project: int) -> Desk:
        return Desk(Workspace(self._store()), Caller(project, ACTOR, DEFAULT_USER))

    def _both(self, real: Callable[[], Awaitable[T]], modelled: Callable[[], Any]) -> T | None:
        """What the store gives; nothing if it fails, and then the model must fail in the same way."""

        async def tried() -> T | DittybagError:
            try:
                return await real()
            except DittybagError as error:
                return error

        expected: DittybagError | None = None
        try:
            modelled()
        except DittybagError as error:
            expected = error
        outcome = self._run(tried())
        if isinstance(outcome, DittybagError):
            assert _sort(outcome) is _sort(expected), outcome
            return None
        assert expected is None, expected
        return outcome

    def _write(
        self,
        real: Callable[[], Awaitable[Any]],
        before: Any,
        wanted: Callable[[], Any],
    ) -> None:
        """Create or change one thing. `wanted`: as it should be, but for what only the store knows."""
        modelled: list[Any] = []

        def predict() -> None:
            with self.model.use_case():
                modelled.append(wanted())
                self.model.require_room(modelled[0])

        outcome = self._both(real, predict)
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
        self._run(_awaited(real()))
        with self.model.use_case():
            if isinstance(entity, Project):
                self.model.empty(entity)
            self.model.write("delete", entity, None)

    def _pick(self, kind: Kind, which: int) -> Any:
        things = self.model.all(kind)
        return things[which % len(things)] if things else None

    @initialize()
    def begin(self) -> None:
        default = self._run(Desk.newest_change(self._desk(1))).after
        assert isinstance(default, Project)
        assert default.name == DEFAULT_PROJECT
        with self.model.use_case():
            self.model.write("create", None, default)

    # Projects

    @rule(name=NAMES)
    def create_project(self, name: str) -> None:
        projects = self._desk(1).workspace.projects
        self._write(
            lambda: projects.create(name, actor=ACTOR),
            None,
            lambda: Project(id=0, name=name, created_at=0, updated_at=0),
        )

    @rule(which=WHICH, name=NAMES)
    def rename_project(self, which: int, name: str) -> None:
        project = self._pick("project", which)
        if DEFAULT_PROJECT not in (project.name, name) and project.name != name:
            projects = self._desk(1).workspace.projects
            self._write(
                lambda: projects.rename(project.name, name, actor=ACTOR),
                project,
                lambda: replace(project, name=name),
            )

    @rule(which=WHICH)
    def delete_project(self, which: int) -> None:
        project = self._pick("project", which)
        if project.name != DEFAULT_PROJECT:
            projects = self._desk(1).workspace.projects
            self._delete(lambda: projects.delete(project.name, actor=ACTOR), project)

    # Prompts

    @rule(which=WHICH, name=NAMES, title=TITLES, content=TEXTS, tags=TAGS)
    def create_prompt(self, which: int, name: str, title: str, content: str, tags: tuple[str, ...]) -> None:
        desk = self._desk(self._pick("project", which).id)
        self._write(
            lambda: desk.prompt(name, content, title=title, tags=tags),
            None,
            lambda: Prompt(
                number=0,
                id="",
                project=desk.project,
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
            desk = self._desk(prompt.project)
            self._write(
                lambda: desk.change_prompt(prompt.name, **change), prompt, lambda: replace(prompt, **change)
            )

    @rule(which=WHICH)
    def delete_prompt(self, which: int) -> None:
        prompt = self._pick("prompt", which)
        if prompt is not None:
            desk = self._desk(prompt.project)
            self._delete(lambda: desk.delete_prompt(prompt.name), prompt)

    # Resources

    @rule(which=WHICH, name=NAMES, uri=URIS, content=TEXTS | BYTES)
    def create_resource(self, which: int, name: str, uri: str, content: str | bytes) -> None:
        desk = self._desk(self._pick("project", which).id)
        mime_type, digest, size = _content(content)
        self._write(
            lambda: desk.resource(name, content, uri=uri),
            None,
            lambda: Resource(
                number=0,
                id="",
                project=desk.project,
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
        desk = self._desk(resource.project)
        wanted = replace(resource, title=title)
        if content is not None:
            mime_type, digest, size = _content(content)
            wanted = replace(wanted, mime_type=mime_type, sha256=digest, size=size)
        self._write(
            lambda: desk.change_resource(
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
            desk = self._desk(resource.project)
            self._delete(lambda: desk.delete_resource(resource.name), resource)

    # Tasks

    @rule(fields=TASK_FIELDS)
    def create_task(self, fields: dict[str, Any]) -> None:
        desk = self._desk(1)
        self._write(
            lambda: desk.task(**fields),
            None,
            lambda: Task(id=0, user=desk.caller.user, created_at=0, updated_at=0, **fields),
        )

    @rule(which=WHICH, fields=TASK_FIELDS)
    def update_task(self, which: int, fields: dict[str, Any]) -> None:
        task = self._pick("task", which)
        if task is not None:
            desk = self._desk(1)
            self._write(
                lambda: desk.workspace.tasks.update(desk.caller, task.id, **fields),
                task,
                lambda: replace(task, **fields),
            )

    @rule(which=WHICH)
    def complete_task(self, which: int) -> None:
        task = self._pick("task", which)
        if task is not None and not task.completed:
            desk = self._desk(1)
            self._write(lambda: desk.workspace.tasks.complete(desk.caller, task.id), task, lambda: task)
            assert self.model.held["task", str(task.id)].completed  # type: ignore[union-attr]

    @rule(which=WHICH)
    def delete_task(self, which: int) -> None:
        task = self._pick("task", which)
        if task is not None:
            desk = self._desk(1)
            self._delete(lambda: desk.workspace.tasks.delete(desk.caller, task.id), task)

    @rule(count=st.integers(1, 4), place=WHICH)
    def create_tasks_at_once_while_something_fails(self, count: int, place: int) -> None:
        desk = self._desk(1)

        async def failing(transaction: Transaction) -> None:
            await make(transaction, "task", desk.project, "half-done")
            raise Mishap

        async def at_once() -> list[Task | BaseException | None]:
            work: list[Awaitable[Task | None]] = [desk.task(f"t{number}") for number in range(count)]
            work.insert(place % (count + 1), desk.write(failing))
            return await asyncio.gather(*work, return_exceptions=True)

        outcomes = self._run(at_once())
        tasks = [outcome for outcome in outcomes if isinstance(outcome, Task)]
        assert [type(outcome) for outcome in outcomes if outcome not in tasks] == [Mishap]
        for task in sorted(tasks, key=lambda task: task.id):
            with self.model.use_case():
                self.model.write("create", None, task)

    # History

    def _seq(self, which: int) -> tuple[int, int, Caller]:
        """A change: its place in the model's log, its number, and somebody who may undo it."""
        desk = self._desk(1)
        _, changes = self._run(desk.store.read(_books))
        index = which % len(changes)
        change = changes[index]
        return index, change.seq, replace(desk.caller, project=change.project or 1)

    @rule(which=st.integers(0, 1000))
    def undo(self, which: int) -> None:
        index, seq, caller = self._seq(which)
        history = self._desk(1).workspace.history
        self._both(lambda: history.undo(caller, seq), lambda: self.model.undo(index))

    @rule(which=st.integers(0, 1000))
    def restore(self, which: int) -> None:
        index, seq, caller = self._seq(which)
        history = self._desk(1).workspace.history
        self._both(lambda: history.restore(caller, seq), lambda: self.model.restore(index))

    # Reading, and being away

    @rule(which=WHICH, of=WHICH, words=TEXTS)
    def search(self, which: int, of: int, words: str) -> None:
        """For a text that is there or once was, or for any other."""
        texts = [
            text
            for line in self.model.lines
            for name in ("title", "content", "notes")
            if (text := getattr(line.after, name, None))
        ]
        query = texts[of % len(texts)].swapcase() if texts and of % 4 else words
        desk = self._desk(self._pick("project", which).id)
        page = self._run(desk.workspace.prompts.search(desk.caller, query, 100, 0))
        assert {item.id for item in page.prompts} == {
            prompt.id
            for prompt in self.model.all("prompt", desk.project)
            if query.casefold() in prompt.title.casefold() or query.casefold() in prompt.content.casefold()
        }
        _, tasks = self._run(desk.workspace.tasks.search(desk.caller, query))
        assert {task.id for task in tasks} == {
            task.id
            for task in self.model.all("task")
            if query.casefold() in task.title.casefold() or query.casefold() in (task.notes or "").casefold()
        }

    @rule(which=WHICH, tags=TAGS)
    def filter_by_tags(self, which: int, tags: tuple[str, ...]) -> None:
        desk = self._desk(self._pick("project", which).id)
        page, _ = self._run(desk.workspace.prompts.by_tags(desk.caller, tags, 100, 0))
        prompts = self.model.all("prompt", desk.project)
        prompts.sort(key=lambda prompt: (-prompt.updated_at, -prompt.number))
        assert [item.id for item in page.prompts] == [p.id for p in prompts if set(p.tags) & set(tags)]
        counts = {tag: sum(tag in prompt.tags for prompt in prompts) for tag in ("x", "y", "z")}
        in_use = self._run(desk.workspace.prompts.tags(desk.caller))
        assert {tag.name: tag.prompt_count for tag in in_use} == {t: n for t, n in counts.items() if n}

    @rule(which=WHICH)
    def look_for_what_is_gone(self, which: int) -> None:
        gone = [
            line for line in self.model.lines if line.after is None and line.kind == "task" and line.before
        ]
        if gone:
            number = gone[which % len(gone)].entity
            if ("task", number) not in self.model.held:
                desk = self._desk(1)
                error = self._run(_error(desk.workspace.tasks.get(desk.caller, int(number))))
                assert isinstance(error, NotFound)

    @rule(chosen=st.sampled_from([(0,), (1,), (0, 1)]))
    def close_and_reopen(self, chosen: tuple[int, ...]) -> None:
        for which in chosen:
            self._run(self._stores[which].close())
        for which in chosen:
            self._stores[which] = self._run(self._backend.open(self._place))

    # What always holds

    @invariant()
    def the_store_is_the_model(self) -> None:
        held, changes = self._run(self._store().read(_books))
        assert held == self.model.held
        self._assert_log(changes)

    def _assert_log(self, changes: list[Change]) -> None:
        assert [(c.action, c.kind, c.entity, c.before, c.after) for c in changes] == [
            (line.action, line.kind, line.entity, line.before, line.after) for line in self.model.lines
        ]
        assert _grouped(change.batch for change in changes) == _grouped(
            line.batch for line in self.model.lines
        )

    def _assert_every_view(self) -> None:
        """What is seen project by project is the same, and every content is there."""
        projects = sorted({int(line.entity) for line in self.model.lines if line.kind == "project"})
        assert self._run(holdings(self._store())) == self.model.held
        changes = self._run(log(self._store(), projects))
        assert replay_log(changes) == self.model.held
        self._assert_log(changes)


def _grouped(batches: Iterable[int]) -> list[int]:
    """For each, the place of the first one that is equal."""
    places: dict[int, int] = {}
    return [places.setdefault(batch, place) for place, batch in enumerate(batches)]


async def _books(transaction: Transaction) -> tuple[Holdings, list[Change]]:
    """All that there is, and the log, in as few questions as possible: they are asked after every step."""
    things = [thing for kind in KINDS for thing in await transaction.page_of_kind(kind, 0, ALL)]
    return {(kind_of(thing), key_of(thing)): thing for thing in things}, await transaction.changes.since(
        0, ALL
    )


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


async def _error(awaitable: Awaitable[Any]) -> DittybagError | None:
    try:
        await awaitable
    except DittybagError as error:
        return error
    return None


def _sort(error: DittybagError | None) -> type[DittybagError] | None:
    """What sort of error it is; which conflict of several is named first is not the model's concern."""
    return next((sort for sort in (NotFound, Conflict) if isinstance(error, sort)), None)


def _content(content: str | bytes) -> tuple[str, str, int]:
    """MIME type, hash and size of a content."""
    data = content if isinstance(content, bytes) else content.encode()
    kind = "application/octet-stream" if isinstance(content, bytes) else "text/plain"
    return kind, sha256(data).hexdigest(), len(data)


@pytest.mark.timeout(600)  # a failing example takes a while to be made small
def test_a_store_behaves_like_a_dict(backend: Backend) -> None:
    run_state_machine_as_test(
        lambda: StoreMachine(backend),  # type: ignore[arg-type]  # a factory will do, says its documentation
        settings=settings(
            max_examples=backend.examples,
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
