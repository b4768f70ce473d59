"""A network that drops packets without telling anybody: reads fail in time, and recover by themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from dittybag.domain.errors import StorageUnreachable
from dittybag.domain.ports import Transaction
from dittybag.storage.postgres import connection_monitor, connection_pool, retry
from tests.pgbouncer_servers import run_pgbouncer
from tests.postgres_servers import PostgresServer
from tests.repetitions import IS_FULL
from tests.storage.cancelling_clients import serve_http
from tests.storage.postgres.conftest import OpenStore
from tests.storage.postgres.faulty_proxy import FaultyProxy, run_proxy
from tests.storage.postgres.task_workload import count_titles

#: The limits in `make test`; those of the product in `make torture`.
SHORT = {
    (retry, "RETRY_SECONDS"): 0.4,
    (connection_pool, "OPEN_SECONDS"): 0.3,
    (connection_pool, "RETRY_OPEN_SECONDS"): 0.2,
    (connection_monitor, "SUSPICION_SECONDS"): 0.1,
    (connection_monitor, "PROBE_SECONDS"): 0.2,
}


@pytest.fixture(autouse=True)
def _limits(monkeypatch: pytest.MonkeyPatch) -> None:
    if not IS_FULL:
        for (module, name), seconds in SHORT.items():
            monkeypatch.setattr(module, name, seconds)


@pytest.fixture
async def proxy(server: PostgresServer) -> AsyncIterator[FaultyProxy]:
    async with run_proxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def proxied_url(proxy: FaultyProxy, server: PostgresServer, schema: str) -> str:
    return server.url(schema=schema).replace(f":{server.port}/", f":{proxy.port}/")


async def test_reads_fail_in_time_and_work_as_soon_as_the_network_is_back(
    proxied_url: str, proxy: FaultyProxy, open_store: OpenStore
) -> None:
    store = await open_store(proxied_url)
    await asyncio.gather(*(count_titles(store) for _ in range(8)))
    proxy.swallows = True
    started = time.monotonic()
    reads = [asyncio.create_task(count_titles(store)) for _ in range(12)]
    outcomes = await asyncio.gather(*reads, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StorageUnreachable}
    assert time.monotonic() - started < (10 if IS_FULL else 3)
    late = asyncio.create_task(count_titles(store))
    await asyncio.sleep(0.1)
    proxy.swallows = False
    async with asyncio.timeout(1):
        await asyncio.gather(*(count_titles(store) for _ in range(12)))
    await asyncio.gather(late, return_exceptions=True)


async def test_reads_fail_in_time_if_only_the_pooler_answers(
    server: PostgresServer, schema: str, open_store: OpenStore
) -> None:
    with run_pgbouncer(server) as pooler:
        store = await open_store(pooler.url(schema=schema))
        server.pause()
        try:
            with pytest.raises(StorageUnreachable):
                await asyncio.wait_for(count_titles(store), 10 if IS_FULL else 3)
        finally:
            server.resume()
        async with asyncio.timeout(2):
            assert await count_titles(store) == {}
        await store.close()


async def test_connections_that_the_network_has_forgotten_are_replaced(
    proxied_url: str, proxy: FaultyProxy, open_store: OpenStore
) -> None:
    store = await open_store(proxied_url)
    await asyncio.gather(*(count_titles(store) for _ in range(4)))
    proxy.forget()
    async with asyncio.timeout(2):
        assert await count_titles(store) == {}
        # The others were not tried.
        await asyncio.gather(*(count_titles(store) for _ in range(8)))


async def test_a_long_query_on_a_connection_that_works_is_not_ended(url: str, open_store: OpenStore) -> None:
    store = await open_store(url)
    seconds = 4 * connection_monitor.SUSPICION_SECONDS

    async def run_slowly(transaction: Transaction) -> int:
        connection = transaction._tables.connection  # type: ignore[attr-defined]
        pid: int = await connection.fetchval("SELECT pg_backend_pid() FROM pg_sleep($1)", seconds)
        # Neither is a connection that waits for us, not for the server.
        await asyncio.sleep(2 * connection_monitor.SUSPICION_SECONDS)
        assert await connection.fetchval("SELECT pg_backend_pid()") == pid
        return pid

    await store.read(run_slowly, slow=True)


async def test_readiness_is_reported_within_a_second(proxied_url: str, proxy: FaultyProxy) -> None:
    async with serve_http("--db", proxied_url) as client:
        assert (await client.get("/readyz"))[0] == 200
        proxy.swallows = True
        started = time.monotonic()
        status, body = await client.get("/readyz")
        assert (status, "did not answer within" in body) == (503, True)
        assert time.monotonic() - started < 1.5
        proxy.swallows = False
        async with asyncio.timeout(2):
            while (await client.get("/readyz"))[0] != 200:
                pass
