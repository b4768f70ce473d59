"""Read replicas: lists and searches run on them, but never miss what is committed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TypeAlias

import pytest

from dittybag.domain.ports import Transaction
from dittybag.domain.queries import TaskQuery
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.postgres import connection_monitor, connection_pool
from dittybag.storage.postgres.postgres_store import PostgresStore
from tests.postgres_servers import PostgresServer, run_postgres, run_replica
from tests.repetitions import IS_FULL, repetitions
from tests.storage.cancelling_clients import serve_http
from tests.storage.postgres.faulty_proxy import run_proxy
from tests.storage.postgres.task_workload import USER, create_task

CHECKS = repetitions(100, 10_000)

OpenWithReplicas: TypeAlias = Callable[..., Awaitable[PostgresStore]]


@pytest.fixture(scope="module")
def replica(server: PostgresServer) -> Iterator[PostgresServer]:
    with run_replica(server) as replica:
        yield replica


@pytest.fixture
def behind(replica: PostgresServer) -> Iterator[Callable[[], None]]:
    """Stops the replica from following the primary, until the end of the test."""

    def fall_behind() -> None:
        replica.sql("SELECT pg_wal_replay_pause()")

    yield fall_behind
    if replica.sql("SELECT pg_is_in_recovery()") == ["t"]:
        replica.sql("SELECT pg_wal_replay_resume()")


@pytest.fixture
async def open_with(url: str, replica: PostgresServer) -> AsyncIterator[OpenWithReplicas]:
    """Opens a store with replicas, and waits until they are used."""
    opened: list[PostgresStore] = []

    async def open_it(where: str = url, replicas: Sequence[str] = ()) -> PostgresStore:
        store = await PostgresStore.open(where, replicas=replicas or [replica.url()])
        opened.append(store)
        await until_used(store)
        return store

    yield open_it
    for store in opened:
        await store.close()


async def until_used(store: PostgresStore, *, is_used: bool = True) -> None:
    async with asyncio.timeout(20):
        while not all(replica.is_used == is_used for replica in store.replicas()):
            await read_titles(store)


async def read_titles(store: PostgresStore) -> tuple[set[str], bool]:
    """Return the titles of all tasks, and whether a replica has answered."""

    async def work(transaction: Transaction) -> tuple[set[str], bool]:
        tasks = await transaction.tasks.page(TaskQuery(user=USER))
        connection = transaction._tables.connection  # type: ignore[attr-defined]
        return {task.title for task in tasks}, await connection.fetchval("SELECT pg_is_in_recovery()")

    return await store.read(work, replica=True)


async def test_a_read_after_a_write_finds_it_although_the_replica_lags(
    open_with: OpenWithReplicas, replica: PostgresServer
) -> None:
    store = await open_with()
    replica.sql("ALTER SYSTEM SET recovery_min_apply_delay = 3")
    replica.sql("SELECT pg_reload_conf()")
    try:
        answers = {True: 0, False: 0}
        for number in range(CHECKS):
            task = await create_task(store, f"t{number % 50}-{number}")
            # At once, and now and then until the replica has got the task.
            from_replica = False
            async with asyncio.timeout(20):
                while not from_replica:
                    titles, from_replica = await read_titles(store)
                    assert task.title in titles, (number, from_replica)
                    answers[from_replica] += 1
                    if number % 8:
                        break
            if number % 50 == 49:
                await clear_tasks(store)
    finally:
        replica.sql("ALTER SYSTEM RESET recovery_min_apply_delay")
        replica.sql("SELECT pg_reload_conf()")
    assert min(answers.values()) > CHECKS / 20, answers


async def clear_tasks(store: PostgresStore) -> None:
    async def work(transaction: Transaction) -> None:
        for task in await transaction.tasks.page(TaskQuery(user=USER)):
            await transaction.write("delete", task, None)

    await store.write(work, actor="x")


async def test_a_replica_that_is_behind_is_left_out_until_it_has_caught_up(
    open_with: OpenWithReplicas, replica: PostgresServer, behind: Callable[[], None]
) -> None:
    store, other = await open_with(), await open_with()
    assert await read_titles(store) == (set(), True)
    behind()
    # By another server, which has not notified this one.
    await create_task(other, "new")
    assert await read_titles(store) == ({"new"}, False)
    assert [(status.is_used, status.lag) for status in store.replicas()] == [(False, 1)]
    assert await read_titles(store) == ({"new"}, False)
    replica.sql("SELECT pg_wal_replay_resume()")
    await until_used(store)
    assert await read_titles(store) == ({"new"}, True)


async def test_a_removed_member_sees_nothing_although_the_replica_is_behind(
    server: PostgresServer,
    replica: PostgresServer,
    schema: str,
    open_with: OpenWithReplicas,
    behind: Callable[[], None],
) -> None:
    server.sql(f"CREATE ROLE {schema} LOGIN")
    server.sql(f"CREATE DATABASE {schema} OWNER {schema}")
    urls = [target.url(schema, user=schema) for target in (server, replica)]
    store = await open_with(urls[0], urls[1:])
    workspace = Workspace(store)
    for user in ("ann", "bea"):
        await workspace.accounts.add_user(user, actor="x")
        await workspace.accounts.share("default", user, "write", actor="x")
    await workspace.prompts.create(Caller(project=1, actor="x"), name="secret", content="words")

    async def read_as(viewer: str | None) -> tuple[list[str], bool]:
        async def work(transaction: Transaction) -> tuple[list[str], bool]:
            connection = transaction._tables.connection  # type: ignore[attr-defined]
            rows = await connection.fetch("SELECT name FROM prompts")
            return [row[0] for row in rows], await connection.fetchval("SELECT pg_is_in_recovery()")

        return await store.read(work, replica=True, viewer=viewer)

    async def read_on_replica(viewer: str | None) -> list[str]:
        """Read on the replica, which is left out for a moment whenever it does not answer soon."""
        async with asyncio.timeout(10):
            while True:
                await until_used(store)
                names, is_replica = await read_as(viewer)
                if is_replica:
                    return names

    for viewer in ("ann", "bea", None):
        assert await read_on_replica(viewer) == ["secret"]
    behind()
    await workspace.accounts.unshare("default", "ann", actor="x")
    assert await read_as("ann") == ([], False)
    replica.sql("SELECT pg_wal_replay_resume()")
    assert await read_on_replica("ann") == []
    assert await read_on_replica("bea") == ["secret"]
    assert await read_on_replica(None) == ["secret"]


async def test_a_replica_that_is_killed_is_used_again_when_it_is_back(
    open_with: OpenWithReplicas, replica: PostgresServer
) -> None:
    store = await open_with()
    await create_task(store, "t")
    reads = [asyncio.create_task(read_titles(store)) for _ in range(5)]
    await asyncio.to_thread(replica.stop, signal.SIGQUIT)
    try:
        assert {tuple(titles) for titles, _ in await asyncio.gather(*reads)} == {("t",)}
        assert await read_titles(store) == ({"t"}, False)
        assert not store.replicas()[0].is_used
    finally:
        await asyncio.to_thread(replica.start)
    await until_used(store)
    assert await read_titles(store) == ({"t"}, True)


async def test_a_replica_out_of_reach_delays_reads_only_until_that_is_noticed(
    open_with: OpenWithReplicas, replica: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((connection_monitor, "SUSPICION_SECONDS"), (connection_monitor, "PROBE_SECONDS")):
        monkeypatch.setattr(module, name, 0.1)
    monkeypatch.setattr(connection_pool, "OPEN_SECONDS", 0.3)
    async with run_proxy(replica.port) as proxy:
        proxied = replica.url().replace(f":{replica.port}/", f":{proxy.port}/")
        store = await open_with(replicas=[proxied, replica.url()])
        proxy.swallows = True
        async with asyncio.timeout(3):
            assert [(await read_titles(store))[1] for _ in range(4)] == [True] * 4
        assert [status.is_used for status in store.replicas()] == [False, True]
        await store.close()


async def test_a_server_reports_its_replicas(url: str, replica: PostgresServer) -> None:
    async with serve_http("--db", url, "--read-replica", replica.url()) as client:
        label = f'{{replica="postgresql://dittybag@127.0.0.1:{replica.port}/postgres"}}'
        async with asyncio.timeout(5):
            while f"dittybag_replica_used{label} 1\n" not in (text := (await client.get("/metrics"))[1]):
                pass
        assert f"dittybag_replica_lag_changes{label} 0\n" in text


@pytest.mark.skipif(not IS_FULL, reason="runs in make torture")
async def test_reads_and_writes_go_on_after_the_primary_is_lost_and_the_replica_promoted(schema: str) -> None:
    with run_postgres("bundled") as primary, run_replica(primary) as standby:
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        url = f"postgresql://dittybag@{hosts}/postgres?target_session_attrs=primary&schema={schema}"
        store = await PostgresStore.open(url, replicas=[standby.url()])
        await create_task(store, "before")
        async with asyncio.timeout(20):
            # Until the replica has it.
            while await read_titles(store) != ({"before"}, True):
                pass
        primary.stop(signal.SIGQUIT)
        standby.sql("SELECT pg_promote()")
        await create_task(store, "after")
        # It is the primary itself that answers now.
        assert await read_titles(store) == ({"before", "after"}, False)
        await until_used(store, is_used=False)
        await store.close()
