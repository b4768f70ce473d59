"""Connections that break, servers that restart: nothing is lost or done twice, and all goes on by itself.

`TORTURE_RESTARTS=20 TORTURE_KILLS=1000 pytest tests/storage/postgres/test_losses.py` for more of it.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from dittybag.domain.errors import StorageBusy, StorageError, StorageUnreachable, StorageUnsure
from dittybag.domain.ports import Transaction
from dittybag.storage.postgres import retry
from tests.databases import Server, running
from tests.storage.postgres.conftest import OpenStore
from tests.storage.postgres.deeds import at_work, do, done
from tests.storage.postgres.proxy import Fate, Proxy, network

RESTARTS = int(os.environ.get("TORTURE_RESTARTS", "3"))
KILLS = int(os.environ.get("TORTURE_KILLS", "40"))
SEED = int(os.environ.get("TORTURE_SEED", "20261120"))

#: All connections of stores; every one of them may be told to end.
OUR_BACKENDS = "FROM pg_stat_activity WHERE application_name = 'dittybag'"


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with network(server.port) as proxy:
        yield proxy


@pytest.fixture
def far_url(proxy: Proxy, server: Server, schema: str) -> str:
    """Where no workspace is yet, behind the network."""
    return server.url(schema=schema).replace(f":{server.port}/", f":{proxy.port}/")


@pytest.fixture(scope="module")
def durable() -> Iterator[Server]:
    """A server that keeps what it has acknowledged."""
    with running("carried", durable=True) as server:
        yield server


@pytest.mark.parametrize(
    ("fate", "times"),
    [(fate, times) for fate in (Fate.IS_LOST, Fate.GOES_UNANSWERED, Fate.COMES_LATE) for times in (1, 3)],
)
async def test_a_write_whose_commit_meets_a_broken_connection_is_done_once(
    far_url: str, proxy: Proxy, open_store: OpenStore, fate: Fate, times: int
) -> None:
    store = await open_store(far_url)
    await do(store, "before")
    proxy.fates = [fate] * times
    titles = [f"t{number}" for number in range(5)]
    made = await asyncio.gather(*(do(store, title) for title in titles))
    assert [task.title for task in made] == titles
    await do(store, "after")
    assert proxy.commits >= 3, "the network should have met them"
    assert await done(store) == dict.fromkeys(["before", *titles, "after"], 1)


async def test_a_write_of_which_nobody_knows_says_so_and_the_store_goes_on(
    far_url: str, proxy: Proxy, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0.3)
    store = await open_store(far_url)
    for fate, count in ((Fate.GOES_UNANSWERED, 1), (Fate.IS_LOST, 0)):
        proxy.fates, proxy.goes_down = [fate], True
        with pytest.raises(StorageUnsure, match="may or may not have been saved"):
            await do(store, fate.name)
        with pytest.raises(StorageUnreachable, match="nothing was changed"):
            await do(store, "while it is away")
        proxy.goes_down = proxy.is_down = False
        await do(store, f"after {fate.name}")
        titles = await done(store)
        assert (titles[fate.name], titles[f"after {fate.name}"]) == (count, 1)
        assert "while it is away" not in titles


async def test_whoever_waits_while_a_server_is_away_waits_until_it_is_back(
    far_url: str, proxy: Proxy, open_store: OpenStore
) -> None:
    store = await open_store(far_url)
    await do(store, "before")
    proxy.is_down = True
    proxy.cut()
    waiting = [asyncio.create_task(do(store, "meanwhile")), asyncio.create_task(done(store))]
    finished, _ = await asyncio.wait(waiting, timeout=0.5)
    assert not finished
    proxy.is_down = False
    await asyncio.wait_for(asyncio.gather(*waiting), 2)
    assert await done(store) == {"before": 1, "meanwhile": 1}


async def test_a_server_that_stays_away_is_an_error_in_time_and_no_hindrance_for_later(
    far_url: str,
    proxy: Proxy,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0.3)
    store = await open_store(far_url)
    proxy.is_down = True
    proxy.cut()
    started = time.monotonic()
    attempts = [do(store, f"t{number}") for number in range(200)]
    outcomes = await asyncio.gather(*attempts, done(store), store.check(), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StorageUnreachable}
    assert time.monotonic() - started < 3
    proxy.is_down = False
    await do(store, "after")
    assert await done(store) == {"after": 1}
    await store.check()


async def test_a_write_that_nobody_waits_for_any_more_is_not_done_when_the_server_is_back(
    far_url: str, proxy: Proxy, open_store: OpenStore
) -> None:
    store = await open_store(far_url)
    await do(store, "before")
    proxy.is_down = True
    proxy.cut()
    first = asyncio.create_task(do(store, "first"))
    await asyncio.sleep(0.05)
    second = asyncio.create_task(do(store, "second"))
    await asyncio.sleep(0)
    second.cancel()
    proxy.is_down = False
    await first
    await do(store, "last")
    assert await done(store) == {"before": 1, "first": 1, "last": 1}


async def test_a_process_that_stands_still_in_a_transaction_does_not_keep_the_others_for_long(
    url: str, open_store: OpenStore, server: Server, schema: str
) -> None:
    """As a machine does that is put to sleep; here, its connection says nothing any more."""
    asleep, awake = await open_store(url), await open_store(url)
    begun, wake = asyncio.Event(), asyncio.Event()

    async def sleep(transaction: Transaction) -> None:
        if not begun.is_set():
            begun.set()
            await wake.wait()

    sleeping = asyncio.create_task(asleep.write(sleep, actor="sleeper"))
    await begun.wait()
    waiting = asyncio.create_task(do(awake, "awake"))
    # What the server does by itself after ten seconds.
    sql = f"SELECT count(pg_terminate_backend(pid)) {OUR_BACKENDS} AND state = 'idle in transaction'"
    assert await asyncio.to_thread(server.sql, sql) == ["1"]
    await asyncio.wait_for(waiting, 5)
    wake.set()
    await asyncio.wait_for(sleeping, 5)
    limit = await awake.read(lambda transaction: setting(transaction, "idle_in_transaction_session_timeout"))
    assert limit == "10s"


async def setting(transaction: Transaction, name: str) -> str:
    found: str = await transaction._connection.fetchval(  # type: ignore[attr-defined]
        "SELECT current_setting($1)", name
    )
    return found


async def test_killed_connections_lose_nothing_and_double_nothing(
    server: Server, url: str, open_store: OpenStore
) -> None:
    chance = random.Random(SEED)
    stores = [await open_store(url) for _ in range(2)]
    killed = 0
    async with at_work(stores, 8) as journals:
        while killed < KILLS:
            victims = f"{OUR_BACKENDS} ORDER BY random() LIMIT {chance.randint(1, 4)}"
            sql = f"SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid {victims}) AS victims"
            killed += int((await asyncio.to_thread(server.sql, sql))[0])
            await done(stores[killed % 2])
            await asyncio.sleep(chance.uniform(0, 0.05))
    titles = await done(stores[0])
    for journal in journals:
        journal.check(titles)
        assert [(title, vars(error)) for title, error in journal.failed] == []
    assert sum(len(journal.acknowledged) for journal in journals) > KILLS


@pytest.mark.timeout(60 + 20 * RESTARTS)
async def test_a_server_that_crashes_under_load_loses_nothing_and_service_is_back_soon(
    durable: Server, schema: str, open_store: OpenStore
) -> None:
    chance = random.Random(SEED)
    stores = [await open_store(durable.url(schema=schema)) for _ in range(2)]
    async with at_work(stores, 8) as journals:
        for _ in range(RESTARTS):
            await asyncio.sleep(chance.uniform(0.1, 0.4))
            await asyncio.to_thread(durable.restart, signal.SIGQUIT)
            async with asyncio.timeout(5):
                await asyncio.gather(*(journal.until_more(2) for journal in journals))
            await done(stores[0])
    titles = await done(stores[1])
    for journal in journals:
        journal.check(titles)
        assert [(title, vars(error)) for title, error in journal.failed] == []


async def test_a_query_that_takes_too_long_is_given_up(url: str, open_store: OpenStore) -> None:
    store = await open_store(url)

    async def ponder(transaction: Transaction) -> None:
        connection = transaction._connection  # type: ignore[attr-defined]
        await connection.execute("SET LOCAL statement_timeout = 20")
        await connection.fetch("SELECT pg_sleep(10)")

    for act in (store.read(ponder), store.write(ponder, actor="x")):
        with pytest.raises(StorageBusy):
            await asyncio.wait_for(act, 5)
    assert await store.read(lambda transaction: setting(transaction, "statement_timeout")) == "30s"
    assert await store.read(lambda transaction: setting(transaction, "lock_timeout")) == "25s"
    await do(store, "after")


async def test_a_reader_that_is_given_up_in_the_middle_of_a_query_harms_nobody(
    server: Server, url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)

    async def ponder(transaction: Transaction) -> None:
        await transaction._connection.fetch("SELECT pg_sleep(60)")  # type: ignore[attr-defined]

    readers = [asyncio.create_task(store.read(ponder)) for _ in range(20)]
    await asyncio.sleep(0.2)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    async with asyncio.timeout(5):
        assert await done(store) == {}
        still = f"SELECT count(*) {OUR_BACKENDS} AND query LIKE '%pg_sleep(60)%' AND state = 'active'"
        while await asyncio.to_thread(server.sql, still) != ["0"]:
            pass
    await asyncio.gather(*(done(store) for _ in range(20)))


async def test_a_reader_that_is_given_up_twice_leaves_nobody_an_old_view(
    url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)

    async def ponder(transaction: Transaction) -> None:
        await transaction.projects.all()
        await transaction._connection.fetch("SELECT pg_sleep(60)")  # type: ignore[attr-defined]

    for turn in range(5):
        reader = asyncio.create_task(store.read(ponder))
        await asyncio.sleep(0.05)
        for _ in range(2):
            reader.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(reader, return_exceptions=True)
        await do(store, f"t{turn}")
        async with asyncio.timeout(5):
            for _ in range(10):
                assert len(await done(store)) == turn + 1


async def test_a_use_case_that_hides_a_failed_statement_is_not_acknowledged(
    url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)

    async def hiding(transaction: Transaction) -> str:
        await transaction.store_content(b"x")
        try:
            await transaction._connection.execute("SELECT 1 / 0")  # type: ignore[attr-defined]
        except Exception:  # noqa: BLE001
            return "fine"
        raise AssertionError

    with pytest.raises(StorageError):
        await store.write(hiding, actor="x")
    await do(store, "after")
    assert await done(store) == {"after": 1}
