"""Buckets of requests that several servers take from."""

from __future__ import annotations

import asyncio

import asyncpg  # type: ignore[import-untyped]  # it has no types
import pytest

from dittybag.domain.rate_limits import RateLimit
from dittybag.storage.postgres import postgres_request_buckets
from tests.postgres_servers import PostgresServer
from tests.storage.postgres.conftest import OpenStore

SLOW = RateLimit(1, 3600, 100)


async def test_servers_that_take_at_the_same_time_get_no_more_than_a_bucket_holds(
    server: PostgresServer, schema: str, url: str, open_store: OpenStore
) -> None:
    first, second = (await open_store(url)).request_buckets, (await open_store(url)).request_buckets
    tokens = (b"a", b"m", b"z")
    await first.take(dict.fromkeys(tokens, 0), SLOW)
    await second.take(dict.fromkeys(tokens, 0), SLOW)
    holder = await asyncpg.connect(url.partition("?")[0])
    backends = "SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity WHERE query LIKE '%take_requests%'"
    backends += " AND pid <> pg_backend_pid()"
    before = await holder.fetchval(backends)
    try:
        # Both wait for the bucket in the middle, or for each other.
        await holder.execute(f"BEGIN; SELECT FROM {schema}.request_buckets WHERE token = 'm' FOR UPDATE")
        # In opposite orders, which would be a deadlock if rows were locked in them.
        one = asyncio.create_task(first.take(dict.fromkeys(tokens, 60), SLOW))
        other = asyncio.create_task(second.take(dict.fromkeys(reversed(tokens), 60), SLOW))
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        async with asyncio.timeout(5):
            while await holder.fetchval(waiting) < 2:
                pass
        await holder.execute("COMMIT")
        taken = [await one, await other]
        # A deadlock would have ended one of them.
        assert await holder.fetchval(backends) == before
    finally:
        await holder.close()
    for token in tokens:
        assert sum(each[token].count for each in taken) == 100
    (last,) = (await first.take({b"m": 1}, SLOW)).values()
    assert last.count == 0
    assert 3500 < last.wait <= 3600


async def test_buckets_are_refilled_and_full_ones_are_deleted(
    server: PostgresServer, schema: str, url: str, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = (await open_store(url)).request_buckets
    quick = RateLimit(1000, 1, 10)
    deadline = asyncio.get_running_loop().time() + 5
    count = 0
    while count < 50:
        count += (await buckets.take({b"quick": 10}, quick))[b"quick"].count
        assert asyncio.get_running_loop().time() < deadline
    await buckets.take({b"slow": 1}, SLOW)
    server.sql(f"UPDATE {schema}.request_buckets SET full_at = 0 WHERE token = 'quick'")
    monkeypatch.setattr(postgres_request_buckets, "CLEANING_SECONDS", 0)
    await buckets.take({b"slow": 1}, SLOW)
    assert server.sql(f"SELECT encode(token, 'escape') FROM {schema}.request_buckets") == ["slow"]


async def test_a_lost_connection_is_replaced(server: PostgresServer, url: str, open_store: OpenStore) -> None:
    buckets = (await open_store(url)).request_buckets
    assert (await buckets.take({b"x": 60}, SLOW))[b"x"].count == 60
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE query LIKE '%take_requests%' AND pid <> pg_backend_pid()"
    )
    assert (await buckets.take({b"x": 60}, SLOW))[b"x"].count == 40
