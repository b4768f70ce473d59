"""News over a network that breaks: everything is heard once and in order, also what happened meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from dittybag.domain.changes import ChangeNotification
from dittybag.domain.errors import StorageClosed
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import Project
from tests.databases import Server
from tests.storage.postgres.conftest import OpenStore
from tests.storage.postgres.deeds import do
from tests.storage.postgres.proxy import network


class Listener:
    """Hears the news of a store."""

    def __init__(self, store: Any) -> None:
        self.heard: list[ChangeNotification] = []
        self._more = asyncio.Event()
        store.subscribe(self._hear)

    def _hear(self, news: Sequence[ChangeNotification]) -> None:
        self.heard += news
        self._more.set()

    async def until_count(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.heard) < count:
                self._more.clear()
                await self._more.wait()


def projects(first: int, last: int) -> list[ChangeNotification]:
    return [ChangeNotification("project", number) for number in range(first, last + 1)]


async def create_project(store: Any) -> None:
    async def work(transaction: Transaction) -> None:
        now = transaction.now
        project = Project(id=0, name=transaction.new_id(), created_at=now, updated_at=now)
        await transaction.write("create", None, project)

    await store.write(work, actor="x")


async def test_what_happens_while_the_network_is_away_is_heard_when_it_is_back(
    server: Server, url: str, open_store: OpenStore
) -> None:
    writer = await open_store(url)
    async with network(server.port) as proxy:
        far = await open_store(url.replace(f":{server.port}/", f":{proxy.port}/"))
        listener = Listener(far)
        await create_project(writer)
        await listener.until_count(1)
        for turn in range(3):
            proxy.is_down = True
            proxy.cut()
            for _ in range(5):
                await create_project(writer)
            proxy.is_down = False
            # Nothing more is said, so it has to look for itself.
            await listener.until_count(6 + 5 * turn)
        await create_project(far)
        await listener.until_count(17)
        assert listener.heard == projects(2, 18)
        await far.close()


async def test_a_killed_listener_hears_everything_once(
    server: Server, url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)
    listener = Listener(store)
    listening = "FROM pg_stat_activity WHERE application_name = 'dittybag' AND query LIKE 'LISTEN%'"
    for _ in range(10):
        await asyncio.gather(
            asyncio.to_thread(server.sql, f"SELECT count(pg_terminate_backend(pid)) {listening}"),
            *(create_project(store) for _ in range(5)),
        )
    await listener.until_count(50)
    await create_project(store)
    await listener.until_count(51)
    assert listener.heard == projects(2, 52)


async def test_a_listener_does_not_hear_what_was_there_before(url: str, open_store: OpenStore) -> None:
    store = await open_store(url)
    await create_project(store)
    first = Listener(store)
    await create_project(store)
    second = Listener(store)
    await create_project(store)
    await first.until_count(2)
    await second.until_count(1)
    assert (first.heard, second.heard) == (projects(3, 4), projects(4, 4))


async def test_sessions_are_no_news(server: Server, url: str, open_store: OpenStore) -> None:
    store = await open_store(url)
    listener = Listener(store)
    await store.write(lambda transaction: transaction.save_session("s", b"x"), actor="x")
    await do(store, "t")
    await listener.until_count(1)
    assert listener.heard == [ChangeNotification("task", None)]


async def test_workspaces_of_one_database_hear_nothing_of_each_other(
    server: Server, schema: str, open_store: OpenStore
) -> None:
    here, there = [await open_store(server.url(schema=f"{schema}{side}")) for side in ("a", "b")]
    listener, other = Listener(here), Listener(there)
    await do(there, "t")
    await other.until_count(1)
    await create_project(here)
    await listener.until_count(1)
    assert listener.heard == projects(2, 2)


async def test_after_a_backup_was_restored_everything_counts_as_changed(
    server: Server, schema: str, url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)
    listener = Listener(store)
    for _ in range(3):
        await create_project(store)
    await listener.until_count(3)
    server.sql(
        f"SET search_path = {schema}; DELETE FROM changes WHERE seq > 2; DELETE FROM projects WHERE id > 2"
    )
    server.sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'dittybag'"
    )
    await listener.until_count(7)
    assert listener.heard[3:] == [
        ChangeNotification(kind, project) for project in (1, 2) for kind in ("prompt", "resource")
    ]
    await do(store, "t")
    await listener.until_count(8)
    assert listener.heard[7:] == [ChangeNotification("task", None)]


async def test_a_reader_of_the_log_misses_nothing_while_many_write(url: str, open_store: OpenStore) -> None:
    stores = [await open_store(url) for _ in range(4)]
    over = asyncio.Event()

    async def follow() -> list[int]:
        seen = [1]

        async def more(transaction: Transaction) -> list[int]:
            return [change.seq for change in await transaction.changes.since(seen[-1], 1000)]

        while not over.is_set():
            seen += await stores[0].read(more)
        return seen + await stores[0].read(more)

    followers = [asyncio.create_task(follow()) for _ in range(2)]
    await asyncio.gather(*(do(stores[number % 4], f"t{number}") for number in range(400)))
    over.set()
    for seen in await asyncio.gather(*followers):
        assert seen == list(range(1, 402))


async def test_a_store_has_no_stamps_because_they_could_be_old(url: str, open_store: OpenStore) -> None:
    store = await open_store(url)
    for project in (None, 1, 2):
        assert store.stamp("prompt", project) is None
    await store.close()
    with pytest.raises(StorageClosed):
        store.stamp("prompt", 1)
