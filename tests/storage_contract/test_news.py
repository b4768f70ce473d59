"""Stamps and news: whoever changes something, everybody else learns of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from dittybag.domain.changes import ChangeNotification, Kind
from dittybag.domain.errors import DittybagError
from dittybag.domain.ports import Store, Transaction
from tests.storage_contract.desk import ACTOR, Desk, OpenStore, desk_at
from tests.storage_contract.things import make

SOON = 1.0


class Listener:
    """Hears the news of a store."""

    def __init__(self, store: Store) -> None:
        self.heard: list[ChangeNotification] = []
        self._more = asyncio.Event()
        store.subscribe(self._hear)

    def _hear(self, news: Sequence[ChangeNotification]) -> None:
        self.heard += news
        self._more.set()

    async def until(self, wanted: ChangeNotification) -> None:
        """Wait for a piece of news. Fails if it does not come soon."""
        await self._wait(lambda: wanted in self.heard)

    async def until_count(self, count: int) -> None:
        """Wait for so many pieces of news. Fails if they do not come soon."""
        await self._wait(lambda: len(self.heard) >= count)

    async def _wait(self, enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON):
            while not enough():
                self._more.clear()
                await self._more.wait()


UseCase = Callable[[Desk], Awaitable[Any]]

CHANGES: list[tuple[Kind, UseCase]] = [
    ("prompt", lambda desk: desk.prompt("new")),
    ("prompt", lambda desk: desk.change_prompt("old", content="x")),
    ("prompt", lambda desk: desk.delete_prompt("old")),
    ("resource", lambda desk: desk.resource("new")),
    ("resource", lambda desk: desk.change_resource("old", content="x")),
    ("resource", lambda desk: desk.delete_resource("old")),
]


async def furnished(open_store: OpenStore) -> tuple[Desk, Desk, Store]:
    """Two desks at one store, in two projects, and another process's view of it."""
    here = await desk_at(await open_store())
    there = await desk_at(here.store, "there")
    for desk in (here, there):
        await desk.prompt("old")
        await desk.resource("old")
    return here, there, await open_store()


@pytest.mark.usefixtures("with_stamps")
@pytest.mark.parametrize(("kind", "use_case"), CHANGES)
async def test_a_stamp_changes_at_once_and_only_where_something_changed(
    open_store: OpenStore, kind: Kind, use_case: UseCase
) -> None:
    here, there, other = await furnished(open_store)
    kinds: list[Kind] = ["prompt", "resource"]
    places = [(each, desk.project) for each in kinds for desk in (here, there)]
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
    here, _, other = await furnished(open_store)
    seen = [other.stamp("prompt", here.project)]
    for number in range(10):
        await here.change_prompt("old", content=str(number % 2))
        seen.append(other.stamp("prompt", here.project))
    assert len(set(seen)) == len(seen)


@pytest.mark.usefixtures("with_stamps")
async def test_the_stamp_of_a_project_changes_when_it_is_renamed(open_store: OpenStore) -> None:
    here, there, other = await furnished(open_store)
    before = [other.stamp("project", desk.project) for desk in (here, there)]
    await here.workspace.projects.rename("there", "elsewhere", actor=ACTOR)
    after = [other.stamp("project", desk.project) for desk in (here, there)]
    assert (after[0] == before[0], after[1] == before[1]) == (True, False)


async def test_what_fails_or_only_reads_changes_no_stamp_and_makes_no_news(open_store: OpenStore) -> None:
    here, _, other = await furnished(open_store)
    before = other.stamp("prompt", here.project)
    listener = Listener(other)
    with pytest.raises(DittybagError):
        await here.prompt("old")
    await here.workspace.prompts.recent(here.caller, 10, 0)
    assert other.stamp("prompt", here.project) == before
    task = await here.task("news to wait for")
    await listener.until(ChangeNotification("task", None))
    assert task.id
    assert listener.heard == [ChangeNotification("task", None)]


@pytest.mark.parametrize("whose", ["own", "another process's"])
async def test_a_listener_hears_soon_of_every_change(open_store: OpenStore, whose: str) -> None:
    here, there, other = await furnished(open_store)
    listener = Listener(here.store if whose == "own" else other)
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
    assert listener.heard == [
        ChangeNotification("prompt", place),
        ChangeNotification("resource", place, ("x:1",)),
        ChangeNotification("task", None),
        ChangeNotification("project", place),
        # The size, which lists show, was another before.
        ChangeNotification("resource", place, ("x:1",)),
        ChangeNotification("resource", place, ("x:1",), listed=False),
        ChangeNotification("resource", place, ("x:1",)),
    ]


async def test_every_listener_hears_every_change_once_and_in_order(open_store: OpenStore) -> None:
    here, _, other = await furnished(open_store)
    listeners = [Listener(here.store), Listener(other), Listener(other)]
    uris = [f"x:{number}" for number in range(60)]
    await asyncio.gather(*(here.resource(f"r{number}", uri=uri) for number, uri in enumerate(uris)))
    for listener in listeners:
        await listener.until_count(len(uris))
        assert listener.heard == [ChangeNotification("resource", here.project, (uri,)) for uri in uris]


async def test_a_listener_hears_the_last_of_very_many_changes_made_at_once(open_store: OpenStore) -> None:
    here, there, other = await furnished(open_store)
    listener = Listener(other)
    before = other.stamp("resource", there.project)

    async def work(transaction: Transaction) -> None:
        for number in range(1500):
            await make(transaction, "task", here.project, str(number))
        await make(transaction, "resource", there.project, "last")

    await here.write(work)
    assert before is None or other.stamp("resource", there.project) != before
    await listener.until(ChangeNotification("resource", there.project, ("x:last",)))


async def test_nothing_is_heard_from_a_store_that_is_closed(open_store: OpenStore) -> None:
    here, _, other = await furnished(open_store)
    closed, open_listener = Listener(other), Listener(here.store)
    await other.close()
    await here.prompt("p")
    await open_listener.until(ChangeNotification("prompt", here.project))
    assert closed.heard == []
