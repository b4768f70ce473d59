"""Stamps and change notifications reach all processes that have a store open."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.changes import ChangeNotification
from dittybag.domain.entities import Kind
from dittybag.domain.errors import DittybagError
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.queries import PromptQuery
from tests.storage_contract.sample_entities import create_entity
from tests.storage_contract.store_session import ACTOR, OpenStore, StoreSession, open_session

TIMEOUT = 1.0


class RecordingListener:
    """Records the notifications of a store."""

    def __init__(self, store: Store) -> None:
        self.received: list[ChangeNotification] = []
        self._more = asyncio.Event()
        store.subscribe(self._receive)

    def _receive(self, notifications: Sequence[ChangeNotification]) -> None:
        self.received += notifications
        self._more.set()

    async def until(self, wanted: ChangeNotification) -> None:
        """Wait for a notification. Fails after a timeout."""
        await self._wait(lambda: wanted in self.received)

    async def until_count(self, count: int) -> None:
        """Wait for a number of notifications. Fails after a timeout."""
        await self._wait(lambda: len(self.received) >= count)

    async def _wait(self, enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT):
            while not enough():
                self._more.clear()
                await self._more.wait()


UseCase = Callable[[StoreSession], Awaitable[Any]]

CHANGES: list[tuple[Kind, UseCase]] = [
    ("prompt", lambda session: session.prompt("new")),
    ("prompt", lambda session: session.change_prompt("old", content="x")),
    ("prompt", lambda session: session.delete_prompt("old")),
    ("resource", lambda session: session.resource("new")),
    ("resource", lambda session: session.change_resource("old", content="x")),
    ("resource", lambda session: session.delete_resource("old")),
]


async def open_two_projects(open_store: OpenStore) -> tuple[StoreSession, StoreSession, Store]:
    """Return two sessions in two projects of one store, and the store as another process opens it."""
    here = await open_session(await open_store())
    there = await open_session(here.store, "there")
    for session in (here, there):
        await session.prompt("old")
        await session.resource("old")
    return here, there, await open_store()


@pytest.mark.usefixtures("with_stamps")
@pytest.mark.parametrize(("kind", "use_case"), CHANGES)
async def test_a_stamp_changes_immediately_and_only_for_the_changed_kind_and_project(
    open_store: OpenStore, kind: Kind, use_case: UseCase
) -> None:
    here, there, other = await open_two_projects(open_store)
    kinds: list[Kind] = ["prompt", "resource"]
    places = [(each, session.project) for each in kinds for session in (here, there)]
    for store in (here.store, other):
        before = {place: store.stamp(*place) for place in places}
        assert {place: store.stamp(*place) for place in places} == before
        await use_case(there)
        changed = {place for place in places if store.stamp(*place) != before[place]}
        assert changed == {(kind, there.project)}
        await there.undo((await there.newest_change()).seq)
        assert store.stamp(kind, there.project) != before[kind, there.project]


@pytest.mark.usefixtures("with_stamps")
async def test_a_stamp_never_returns_to_an_earlier_value(open_store: OpenStore) -> None:
    here, _, other = await open_two_projects(open_store)
    seen = [other.stamp("prompt", here.project)]
    for number in range(10):
        await here.change_prompt("old", content=str(number % 2))
        seen.append(other.stamp("prompt", here.project))
    assert len(set(seen)) == len(seen)


@pytest.mark.usefixtures("with_stamps")
async def test_the_stamp_of_a_project_changes_when_it_is_renamed(open_store: OpenStore) -> None:
    here, there, other = await open_two_projects(open_store)
    before = [other.stamp("project", session.project) for session in (here, there)]
    await here.workspace.projects.rename("there", "elsewhere", actor=ACTOR)
    after = [other.stamp("project", session.project) for session in (here, there)]
    assert (after[0] == before[0], after[1] == before[1]) == (True, False)


async def test_reads_and_failed_writes_change_no_stamp_and_send_no_notification(
    open_store: OpenStore,
) -> None:
    here, _, other = await open_two_projects(open_store)
    before = other.stamp("prompt", here.project)
    listener = RecordingListener(other)
    with pytest.raises(DittybagError):
        await here.prompt("old")
    await here.workspace.prompts.page(
        here.caller, PromptQuery(project=here.caller.project, limit=10, offset=0)
    )
    assert other.stamp("prompt", here.project) == before
    task = await here.task("notification to wait for")
    await listener.until(ChangeNotification("task", None))
    assert task.id
    assert listener.received == [ChangeNotification("task", None)]


@pytest.mark.parametrize("whose", ["own", "another process's"])
async def test_a_listener_is_notified_of_every_change_within_a_second(
    open_store: OpenStore, whose: str
) -> None:
    here, there, other = await open_two_projects(open_store)
    listener = RecordingListener(here.store if whose == "own" else other)
    place = there.project
    await there.prompt("p")
    await listener.until(ChangeNotification("prompt", place))
    await there.resource("r", uri="x:1")
    await listener.until(ChangeNotification("resource", place, ("x:1",)))
    await there.task("t")
    await listener.until(ChangeNotification("task", None))
    await there.workspace.projects.rename("there", "elsewhere", actor=ACTOR)
    await listener.until(ChangeNotification("project", place))
    await there.change_resource("r", content="Wörds")
    await there.change_resource("r", content="Wörks")
    await listener.until(ChangeNotification("resource", place, ("x:1",), listed=False))
    await there.delete_resource("r")
    await listener.until_count(7)
    assert listener.received == [
        ChangeNotification("prompt", place),
        ChangeNotification("resource", place, ("x:1",)),
        ChangeNotification("task", None),
        ChangeNotification("project", place),
        # The size is shown in lists, and it changed.
        ChangeNotification("resource", place, ("x:1",)),
        ChangeNotification("resource", place, ("x:1",), listed=False),
        ChangeNotification("resource", place, ("x:1",)),
    ]


async def test_every_listener_is_notified_of_every_change_once_and_in_order(open_store: OpenStore) -> None:
    here, _, other = await open_two_projects(open_store)
    listeners = [RecordingListener(here.store), RecordingListener(other), RecordingListener(other)]
    uris = [f"x:{number}" for number in range(60)]
    await asyncio.gather(*(here.resource(f"r{number}", uri=uri) for number, uri in enumerate(uris)))
    for listener in listeners:
        await listener.until_count(len(uris))
        assert listener.received == [ChangeNotification("resource", here.project, (uri,)) for uri in uris]


async def test_a_listener_is_notified_of_the_last_of_very_many_changes(open_store: OpenStore) -> None:
    here, there, other = await open_two_projects(open_store)
    listener = RecordingListener(other)
    before = other.stamp("resource", there.project)

    async def work(transaction: Transaction) -> None:
        for number in range(1500):
            await create_entity(transaction, "task", here.project, str(number))
        await create_entity(transaction, "resource", there.project, "last")

    await here.write(work)
    assert before is None or other.stamp("resource", there.project) != before
    await listener.until(ChangeNotification("resource", there.project, ("x:last",)))


async def test_a_closed_store_sends_no_notifications(open_store: OpenStore) -> None:
    here, _, other = await open_two_projects(open_store)
    closed, open_listener = RecordingListener(other), RecordingListener(here.store)
    await other.close()
    await here.prompt("p")
    await open_listener.until(ChangeNotification("prompt", here.project))
    assert closed.received == []


@pytest.mark.parametrize("count", [999, 1000, 1001, 2500])
async def test_no_notification_is_lost_when_many_changes_arrive_together(
    open_store: OpenStore, count: int
) -> None:
    """More than a feed reads at once, with a single change of a prompt before and after all others."""
    here, there, other = await open_two_projects(open_store)
    listeners = [RecordingListener(store) for store in (here.store, other)]

    async def work(transaction: Transaction) -> None:
        await touch_prompt(transaction, here.project)
        resource = await transaction.resources.by_name(here.project, "old")
        for _ in range(count - 2):
            assert resource is not None
            after = replace(resource, version=resource.version + 1)
            resource = await transaction.write("update", resource, after)
        await touch_prompt(transaction, there.project)

    await here.write(work)
    for listener in listeners:
        await listener.until_count(count)
        kinds = Counter((item.kind, item.project) for item in listener.received)
        assert kinds == {
            ("prompt", here.project): 1,
            ("resource", here.project): count - 2,
            ("prompt", there.project): 1,
        }


async def touch_prompt(transaction: Transaction, project: int) -> None:
    prompt = await transaction.prompts.by_name(project, "old")
    assert prompt is not None
    await transaction.write("update", prompt, replace(prompt, version=prompt.version + 1))
