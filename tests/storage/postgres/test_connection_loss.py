"""Lost connections and server restarts: writes are neither lost nor repeated, and the store recovers."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it has no types
import pytest

from dittybag.domain.errors import StorageBusy, StorageError, StorageUnreachable, StorageUnsure
from dittybag.domain.ports import Transaction
from dittybag.storage.postgres import (
    commit_connection,
    connection_monitor,
    postgres_committer,
    postgres_writer,
    retry,
)
from dittybag.storage.postgres.postgres_connections import lock_keys
from tests.postgres_servers import PostgresServer, run_postgres
from tests.repetitions import IS_FULL, SEED, repetitions
from tests.storage.postgres.conftest import OpenStore
from tests.storage.postgres.faulty_proxy import CommitFault, FaultyProxy, run_proxy
from tests.storage.postgres.task_workload import count_stored_titles, count_titles, create_task, run_clients

RESTARTS = repetitions(3, 20)
KILLS = repetitions(40, 1000)

#: All connections of the stores; any of them may be terminated.
OWN_CONNECTIONS = "FROM pg_stat_activity WHERE application_name = 'dittybag'"


@pytest.fixture
async def proxy(server: PostgresServer) -> AsyncIterator[FaultyProxy]:
    async with run_proxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def proxied_url(proxy: FaultyProxy, server: PostgresServer, schema: str) -> str:
    """The URL of a workspace that does not exist yet, through the proxy."""
    return server.url(schema=schema).replace(f":{server.port}/", f":{proxy.port}/")


@pytest.fixture(scope="module")
def durable() -> Iterator[PostgresServer]:
    """A server that syncs its commits to disk."""
    with run_postgres("bundled", durable=True) as server:
        yield server


LOCKED_OR_NOT = pytest.mark.parametrize("checked", [True, False], ids=["checked", "locked"])


@LOCKED_OR_NOT
@pytest.mark.parametrize(
    "fault", [CommitFault.REQUEST_LOST, CommitFault.RESPONSE_LOST, CommitFault.REQUEST_DELAYED]
)
async def test_a_write_whose_connection_breaks_during_commit_is_made_once(
    proxied_url: str,
    proxy: FaultyProxy,
    open_store: OpenStore,
    fault: CommitFault,
    *,
    checked: bool,
) -> None:
    store = await open_store(proxied_url)
    await create_task(store, "before", checked=checked)
    proxy.faults = [fault] * 3
    titles = [f"t{number}" for number in range(5)]
    made = await asyncio.gather(*(create_task(store, title, checked=checked) for title in titles))
    assert [(task.title, task.id) for task in made] == [(title, 2 + n) for n, title in enumerate(titles)]
    await create_task(store, "after", checked=checked)
    assert proxy.commits >= 3, "the commits should have gone through the proxy"
    assert await count_titles(store) == dict.fromkeys(["before", *titles, "after"], 1)


@pytest.mark.parametrize(
    ("fault", "settle_fault", "checked"),
    [
        (CommitFault.REQUEST_LOST, CommitFault.REQUEST_LOST, True),
        (CommitFault.REQUEST_LOST, CommitFault.RESPONSE_LOST, True),
        (CommitFault.RESPONSE_LOST, CommitFault.RESPONSE_LOST, True),
        (CommitFault.RESPONSE_LOST, CommitFault.RESPONSE_LOST, False),
    ],
)
async def test_a_write_is_made_once_if_the_connection_breaks_again_while_its_outcome_is_looked_up(
    proxied_url: str,
    proxy: FaultyProxy,
    open_store: OpenStore,
    fault: CommitFault,
    settle_fault: CommitFault,
    *,
    checked: bool,
) -> None:
    store = await open_store(proxied_url)
    proxy.faults, proxy.settle_faults = [fault], [settle_fault] * 2
    assert (await create_task(store, "once", checked=checked)).id == 1
    assert (proxy.faults, proxy.settle_faults) == ([], [])
    assert await count_titles(store) == {"once": 1}


@pytest.mark.parametrize("is_cut_first", [True, False])
async def test_a_call_that_waits_for_the_lock_when_its_connection_breaks_is_made_once(
    proxied_url: str,
    server: PostgresServer,
    schema: str,
    proxy: FaultyProxy,
    open_store: OpenStore,
    *,
    is_cut_first: bool,
) -> None:
    store = await open_store(proxied_url)
    await create_task(store, "before")
    holder = await asyncpg.connect(server.url())
    try:
        await holder.execute(f"SELECT pg_advisory_lock({lock_keys(schema)})")
        writing = asyncio.create_task(create_task(store, "once"))
        await wait_for_waiting(holder, 1)
        proxy.settling.clear()
        proxy.cut()
        if is_cut_first:
            # Both the old call and the question for its outcome wait for the lock.
            await asyncio.wait_for(proxy.settling.wait(), 5)
            await wait_for_waiting(holder, 2)
        await holder.execute(f"SELECT pg_advisory_unlock({lock_keys(schema)})")
        assert (await asyncio.wait_for(writing, 5)).id == 2
    finally:
        await holder.close()
    assert await count_titles(store) == {"before": 1, "once": 1}


async def wait_for_waiting(connection: Any, count: int) -> None:
    """Wait until this many sessions wait for an advisory lock."""
    sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    async with asyncio.timeout(5):
        while await connection.fetchval(sql) < count:
            pass


@LOCKED_OR_NOT
async def test_a_write_with_an_unknown_outcome_raises_and_the_store_recovers(
    proxied_url: str,
    proxy: FaultyProxy,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
    *,
    checked: bool,
) -> None:
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0.3)
    store = await open_store(proxied_url)
    for fault, count in ((CommitFault.RESPONSE_LOST, 1), (CommitFault.REQUEST_LOST, 0)):
        proxy.faults, proxy.fails_permanently = [fault], True
        with pytest.raises(StorageUnsure, match="may or may not have been saved"):
            await create_task(store, fault.name, checked=checked)
        with pytest.raises(StorageUnreachable, match="nothing was changed"):
            await create_task(store, "while it is away", checked=checked)
        proxy.fails_permanently = proxy.is_down = False
        await create_task(store, f"after {fault.name}", checked=checked)
        titles = await count_titles(store)
        assert (titles[fault.name], titles[f"after {fault.name}"]) == (count, 1)
        assert "while it is away" not in titles


async def test_requests_wait_while_the_server_is_unreachable(
    proxied_url: str, proxy: FaultyProxy, open_store: OpenStore
) -> None:
    store = await open_store(proxied_url)
    await create_task(store, "before")
    proxy.is_down = True
    proxy.cut()
    waiting = [asyncio.create_task(create_task(store, "meanwhile")), asyncio.create_task(count_titles(store))]
    finished, _ = await asyncio.wait(waiting, timeout=0.5)
    assert not finished
    proxy.is_down = False
    await asyncio.wait_for(asyncio.gather(*waiting), 2)
    assert await count_titles(store) == {"before": 1, "meanwhile": 1}


async def test_requests_fail_in_time_if_the_server_stays_unreachable_and_work_again_later(
    proxied_url: str,
    proxy: FaultyProxy,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0.3)
    store = await open_store(proxied_url)
    proxy.is_down = True
    proxy.cut()
    started = time.monotonic()
    attempts = [create_task(store, f"t{number}") for number in range(200)]
    outcomes = await asyncio.gather(*attempts, count_titles(store), store.check(), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StorageUnreachable}
    assert time.monotonic() - started < 3
    proxy.is_down = False
    await create_task(store, "after")
    assert await count_titles(store) == {"after": 1}
    await store.check()


async def test_a_cancelled_write_is_not_made_when_the_server_is_back(
    proxied_url: str, proxy: FaultyProxy, open_store: OpenStore
) -> None:
    store = await open_store(proxied_url)
    await create_task(store, "before")
    proxy.is_down = True
    proxy.cut()
    first = asyncio.create_task(create_task(store, "first"))
    await asyncio.sleep(0.05)
    second = asyncio.create_task(create_task(store, "second"))
    await asyncio.sleep(0)
    second.cancel()
    proxy.is_down = False
    await first
    await create_task(store, "last")
    assert await count_titles(store) == {"before": 1, "first": 1, "last": 1}


HOLES = repetitions(1, 100)
#: How long a hole lasts at most, in seconds.
LENGTHS = (1, 2, 4, 8) * 5 + (60,) if IS_FULL else (1,)


@LOCKED_OR_NOT
async def test_a_server_that_is_cut_off_blocks_nobody_and_lets_its_callers_know(
    url: str,
    proxied_url: str,
    proxy: FaultyProxy,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
    *,
    checked: bool,
) -> None:
    """Its packets are lost, so no connection reports an error. They arrive when the hole has ended."""
    for module, name, seconds in (
        (retry, "RETRY_SECONDS", 0.3),
        (commit_connection, "CALL_SECONDS", 0.2),
        (commit_connection, "RECONNECT_SECONDS", 0.2),
        (postgres_committer, "RESPONSE_SECONDS", 1.0),
        (connection_monitor, "SUSPICION_SECONDS", 0.2),
        (connection_monitor, "PROBE_SECONDS", 0.2),
        (postgres_writer, "RECONNECT_SECONDS", 0.2),
    ):
        monkeypatch.setattr(module, name, seconds)
    cut_off, other = await open_store(proxied_url), await open_store(url)
    await asyncio.gather(*(create_task(store, "before", checked=checked) for store in (cut_off, other)))
    proxy.open_hole()
    writes = [asyncio.create_task(create_task(cut_off, f"t{n}", checked=checked)) for n in range(200)]
    await asyncio.sleep(0)
    async with asyncio.timeout(1):
        await create_task(other, "meanwhile", checked=True)
    async with asyncio.timeout(4):
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
    # Of those that were sent, nobody knows. The others were not made.
    unsure = {f"t{n}" for n, outcome in enumerate(outcomes) if isinstance(outcome, StorageUnsure)}
    assert {type(outcome) for outcome in outcomes} <= {StorageUnsure, StorageUnreachable}
    assert len(unsure) <= 128
    proxy.fill_hole()
    await create_task(cut_off, "after", checked=checked)
    titles = await count_titles(other)
    assert titles.pop("before") == 2
    assert set(titles) - {"meanwhile", "after"} <= unsure, outcomes[0]
    assert set(titles.values()) == {1}


@pytest.mark.timeout(60 + 70 * HOLES)
async def test_holes_in_the_network_neither_lose_nor_repeat_writes(
    proxied_url: str,
    proxy: FaultyProxy,
    open_store: OpenStore,
    server: PostgresServer,
    schema: str,
) -> None:
    chance = random.Random(SEED)
    cut_off, other = await open_store(proxied_url), await open_store(server.url(schema=schema))
    async with run_clients([cut_off, other], 8) as clients:
        outside = clients[1::2]
        for _ in range(HOLES):
            await asyncio.sleep(chance.uniform(0.1, 0.5))
            proxy.open_hole()
            end = time.monotonic() + chance.choice(LENGTHS) * chance.uniform(0.5, 1)
            while time.monotonic() < end:
                # The others go on.
                async with asyncio.timeout(5):
                    await asyncio.gather(*(client.wait_for_more(1) for client in outside))
            proxy.fill_hole()
            async with asyncio.timeout(15):
                await asyncio.gather(*(client.wait_for_more(1) for client in clients))
    titles = count_stored_titles(server, schema)
    for client in clients:
        client.check(titles)
        assert client.slowest < (5 if client in outside else 11)


async def test_a_process_that_hangs_in_a_transaction_does_not_block_others_for_long(
    url: str, open_store: OpenStore, server: PostgresServer, schema: str
) -> None:
    """Like a machine that is suspended: its connection stays open but sends nothing."""
    asleep, awake = await open_store(url), await open_store(url)
    begun, wake = asyncio.Event(), asyncio.Event()

    async def sleep(transaction: Transaction) -> None:
        if not begun.is_set():
            begun.set()
            await wake.wait()

    sleeping = asyncio.create_task(asleep.write(sleep, actor="sleeper"))
    await begun.wait()
    waiting = asyncio.create_task(create_task(awake, "awake"))
    # The server does this after three seconds of idling.
    sql = f"SELECT count(pg_terminate_backend(pid)) {OWN_CONNECTIONS} AND state = 'idle in transaction'"
    assert await asyncio.to_thread(server.sql, sql) == ["1"]
    await asyncio.wait_for(waiting, 5)
    wake.set()
    await asyncio.wait_for(sleeping, 5)
    limits = {"idle_in_transaction_session_timeout": "10s", "lock_timeout": "25s", "statement_timeout": "30s"}
    writing = limits | {"idle_in_transaction_session_timeout": "3s", "lock_timeout": "8s"}
    for name, limit in limits.items():
        assert await awake.read(partial(current_setting, name=name)) == limit
        assert await awake.write(partial(current_setting, name=name), actor="x") == writing[name]
    assert await awake.write(idle_limit_of_an_import, actor="x") == "1min"


async def idle_limit_of_an_import(transaction: Transaction) -> str:
    await transaction.allow_pauses()
    return await current_setting(transaction, "idle_in_transaction_session_timeout")


async def current_setting(transaction: Transaction, name: str) -> str:
    found: str = await transaction._tables.connection.fetchval(  # type: ignore[attr-defined]
        "SELECT current_setting($1)", name
    )
    return found


@pytest.mark.timeout(120 + KILLS)
async def test_killed_connections_neither_lose_nor_repeat_writes(
    server: PostgresServer, url: str, open_store: OpenStore
) -> None:
    chance = random.Random(SEED)
    stores = [await open_store(url) for _ in range(2)]
    killed = 0
    async with run_clients(stores, 8) as clients:
        while killed < KILLS:
            victims = f"{OWN_CONNECTIONS} ORDER BY random() LIMIT {chance.randint(1, 4)}"
            sql = f"SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid {victims}) AS victims"
            killed += int((await asyncio.to_thread(server.sql, sql))[0])
            await stores[killed % 2].read(lambda transaction: transaction.changes.newest_seq())
            await asyncio.sleep(chance.uniform(0, 0.05))
    titles = await count_titles(stores[0])
    for client in clients:
        client.check(titles)
        assert [(title, vars(error)) for title, error in client.failed] == []
    assert sum(len(client.acknowledged) for client in clients) > KILLS


@pytest.mark.timeout(60 + 20 * RESTARTS)
async def test_a_server_crash_under_load_loses_no_acknowledged_write_and_clients_recover(
    durable: PostgresServer, schema: str, open_store: OpenStore
) -> None:
    chance = random.Random(SEED)
    stores = [await open_store(durable.url(schema=schema)) for _ in range(2)]
    async with run_clients(stores, 8) as clients:
        for _ in range(RESTARTS):
            await asyncio.sleep(chance.uniform(0.1, 0.4))
            await asyncio.to_thread(durable.restart, signal.SIGQUIT)
            async with asyncio.timeout(5):
                await asyncio.gather(*(client.wait_for_more(2) for client in clients))
            await count_titles(stores[0])
    titles = await count_titles(stores[1])
    for client in clients:
        client.check(titles)
        assert [(title, vars(error)) for title, error in client.failed] == []


async def test_a_query_that_takes_too_long_is_cancelled(url: str, open_store: OpenStore) -> None:
    store = await open_store(url)

    async def run_slow_query(transaction: Transaction) -> None:
        connection = transaction._tables.connection  # type: ignore[attr-defined]
        await connection.execute("SET LOCAL statement_timeout = 20")
        await connection.fetch("SELECT pg_sleep(10)")

    for act in (store.read(run_slow_query), store.write(run_slow_query, actor="x")):
        with pytest.raises(StorageBusy):
            await asyncio.wait_for(act, 5)
    assert await store.read(lambda transaction: current_setting(transaction, "statement_timeout")) == "30s"
    assert await store.read(lambda transaction: current_setting(transaction, "lock_timeout")) == "25s"
    await create_task(store, "after")


async def test_a_reader_cancelled_during_a_query_does_not_affect_others(
    server: PostgresServer, url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)

    async def run_slow_query(transaction: Transaction) -> None:
        await transaction._tables.connection.fetch("SELECT pg_sleep(60)")  # type: ignore[attr-defined]

    readers = [asyncio.create_task(store.read(run_slow_query)) for _ in range(20)]
    await asyncio.sleep(0.2)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    async with asyncio.timeout(5):
        assert await count_titles(store) == {}
        still = f"SELECT count(*) {OWN_CONNECTIONS} AND query LIKE '%pg_sleep(60)%' AND state = 'active'"
        while await asyncio.to_thread(server.sql, still) != ["0"]:
            pass
    await asyncio.gather(*(count_titles(store) for _ in range(20)))


async def test_a_reader_cancelled_twice_leaves_no_stale_snapshot_in_the_pool(
    url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)

    async def run_slow_query(transaction: Transaction) -> None:
        await transaction.projects.all()
        await transaction._tables.connection.fetch("SELECT pg_sleep(60)")  # type: ignore[attr-defined]

    for turn in range(5):
        reader = asyncio.create_task(store.read(run_slow_query))
        await asyncio.sleep(0.05)
        for _ in range(2):
            reader.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(reader, return_exceptions=True)
        await create_task(store, f"t{turn}")
        async with asyncio.timeout(5):
            for _ in range(10):
                assert len(await count_titles(store)) == turn + 1


async def test_a_use_case_that_swallows_a_failed_statement_is_not_acknowledged(
    url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)

    async def hiding(transaction: Transaction) -> str:
        await transaction.store_content(b"x")
        try:
            await transaction._tables.connection.execute("SELECT 1 / 0")  # type: ignore[attr-defined]
        except Exception:  # noqa: BLE001
            return "fine"
        raise AssertionError

    with pytest.raises(StorageError):
        await store.write(hiding, actor="x")
    await create_task(store, "after")
    assert await count_titles(store) == {"after": 1}
