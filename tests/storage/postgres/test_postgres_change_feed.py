"""Change notifications over an unreliable network: each arrives once and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from dittybag.domain.changes import ChangeNotification
from dittybag.domain.errors import StorageClosed
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import Project
from dittybag.domain.queries import ChangeQuery
from dittybag.storage.postgres import postgres_change_feed
from tests.postgres_servers import PostgresServer
from tests.storage.postgres.conftest import OpenStore
from tests.storage.postgres.faulty_proxy import run_proxy
from tests.storage.postgres.task_workload import create_task


class FeedListener:
    """Records the notifications of a store."""

    def __init__(self, store: Any) -> None:
        self.received: list[ChangeNotification] = []
        self._more = asyncio.Event()
        store.subscribe(self._record)

    def _record(self, notifications: Sequence[ChangeNotification]) -> None:
        self.received += notifications
        self._more.set()

    async def wait_for(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.received) < count:
                self._more.clear()
                await self._more.wait()


def project_changes(first: int, last: int) -> list[ChangeNotification]:
    return [ChangeNotification("project", number) for number in range(first, last + 1)]


async def create_project(store: Any) -> None:
    async def work(transaction: Transaction) -> None:
        now = transaction.now
        project = Project(id=0, name=transaction.new_id(), created_at=now, updated_at=now)
        await transaction.write("create", None, project)

    await store.write(work, actor="x")


async def test_changes_during_a_network_outage_are_delivered_afterwards(
    server: PostgresServer, url: str, open_store: OpenStore
) -> None:
    writer = await open_store(url)
    async with run_proxy(server.port) as proxy:
        proxied = await open_store(url.replace(f":{server.port}/", f":{proxy.port}/"))
        listener = FeedListener(proxied)
        await create_project(writer)
        await listener.wait_for(1)
        for turn in range(3):
            proxy.is_down = True
            proxy.cut()
            for _ in range(5):
                await create_project(writer)
            proxy.is_down = False
            # There is no further NOTIFY, so the feed has to read the log on its own.
            await listener.wait_for(6 + 5 * turn)
        await create_project(proxied)
        await listener.wait_for(17)
        assert listener.received == project_changes(2, 18)
        await proxied.close()


async def test_a_feed_whose_connection_the_network_has_forgotten_continues_on_another(
    server: PostgresServer, url: str, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_change_feed, "INTERVAL_SECONDS", 0.1)
    monkeypatch.setattr(postgres_change_feed, "READING_SECONDS", 0.3)
    writer = await open_store(url)
    async with run_proxy(server.port) as proxy:
        proxied = await open_store(url.replace(f":{server.port}/", f":{proxy.port}/"))
        listener = FeedListener(proxied)
        await create_project(writer)
        await listener.wait_for(1)
        proxy.forget()
        await create_project(writer)
        await listener.wait_for(2)
        assert listener.received == project_changes(2, 3)
        await proxied.close()


async def test_a_listener_whose_connection_is_killed_gets_every_change_once(
    server: PostgresServer, url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)
    listener = FeedListener(store)
    listening = "FROM pg_stat_activity WHERE application_name = 'dittybag' AND query LIKE 'LISTEN%'"
    for _ in range(10):
        await asyncio.gather(
            asyncio.to_thread(server.sql, f"SELECT count(pg_terminate_backend(pid)) {listening}"),
            *(create_project(store) for _ in range(5)),
        )
    await listener.wait_for(50)
    await create_project(store)
    await listener.wait_for(51)
    assert listener.received == project_changes(2, 52)


async def test_a_listener_is_not_notified_of_earlier_changes(url: str, open_store: OpenStore) -> None:
    store = await open_store(url)
    await create_project(store)
    first = FeedListener(store)
    await create_project(store)
    second = FeedListener(store)
    await create_project(store)
    await first.wait_for(2)
    await second.wait_for(1)
    assert (first.received, second.received) == (project_changes(3, 4), project_changes(4, 4))


async def test_sessions_cause_no_notifications(
    server: PostgresServer, url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)
    listener = FeedListener(store)
    await store.write(lambda transaction: transaction.sessions.save("s", "x", b"x", 1), actor="x")
    await create_task(store, "t")
    await listener.wait_for(1)
    assert listener.received == [ChangeNotification("task", None)]


async def test_workspaces_of_one_database_do_not_notify_each_other(
    server: PostgresServer, schema: str, open_store: OpenStore
) -> None:
    here, there = [await open_store(server.url(schema=f"{schema}{side}")) for side in ("a", "b")]
    listener, other = FeedListener(here), FeedListener(there)
    await create_task(there, "t")
    await other.wait_for(1)
    await create_project(here)
    await listener.wait_for(1)
    assert listener.received == project_changes(2, 2)


async def test_everything_counts_as_changed_after_a_restore(
    server: PostgresServer, schema: str, url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)
    listener = FeedListener(store)
    for _ in range(3):
        await create_project(store)
    await listener.wait_for(3)
    server.sql(
        f"SET search_path = {schema}; DELETE FROM changes WHERE seq > 2; DELETE FROM projects WHERE id > 2"
    )
    server.sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'dittybag'"
    )
    await listener.wait_for(7)
    assert listener.received[3:] == [
        ChangeNotification(kind, project) for project in (1, 2) for kind in ("prompt", "resource")
    ]
    await create_task(store, "t")
    await listener.wait_for(8)
    assert listener.received[7:] == [ChangeNotification("task", None)]


async def test_a_reader_of_the_log_misses_no_change_of_concurrent_writers(
    url: str, open_store: OpenStore
) -> None:
    stores = [await open_store(url) for _ in range(4)]
    over = asyncio.Event()

    async def follow() -> list[int]:
        seen = [1]

        async def more(transaction: Transaction) -> list[int]:
            query = ChangeQuery(after=seen[-1], oldest_first=True)
            return [change.seq for change in await transaction.changes.page(query)]

        while not over.is_set():
            seen += await stores[0].read(more)
        return seen + await stores[0].read(more)

    followers = [asyncio.create_task(follow()) for _ in range(2)]
    await asyncio.gather(*(create_task(stores[number % 4], f"t{number}") for number in range(400)))
    over.set()
    for seen in await asyncio.gather(*followers):
        assert seen == list(range(1, 402))


async def test_a_store_has_no_stamps_because_they_could_be_outdated(url: str, open_store: OpenStore) -> None:
    store = await open_store(url)
    for project in (None, 1, 2):
        assert store.stamp("prompt", project) is None
    await store.close()
    with pytest.raises(StorageClosed):
        store.stamp("prompt", 1)
