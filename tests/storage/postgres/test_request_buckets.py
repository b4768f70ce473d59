"""Buckets of requests that several servers take from."""

from __future__ import annotations

import asyncio

import pytest

from dittybag.domain.rate_limits import RateLimit
from dittybag.storage.postgres import postgres_request_buckets
from tests.postgres_servers import PostgresServer
from tests.storage.postgres.conftest import OpenStore

SLOW = RateLimit(1, 3600, 100)


async def test_a_bucket_never_gives_more_than_it_holds(url: str, open_store: OpenStore) -> None:
    first, second = await open_store(url), await open_store(url)
    tokens = [bytes([number]) for number in range(20)]

    async def take_all(store_number: int) -> list[int]:
        buckets = (first, second)[store_number].request_buckets
        # In opposite orders, which would deadlock if rows were locked in them.
        wanted = dict.fromkeys(tokens if store_number else reversed(tokens), 7)
        taken = [await buckets.take(wanted, SLOW) for _ in range(10)]
        return [sum(each[token].count for each in taken) for token in tokens]

    one, other = await asyncio.gather(take_all(0), take_all(1))
    assert [a + b for a, b in zip(one, other, strict=True)] == [100] * len(tokens)
    (last,) = (await first.request_buckets.take({tokens[0]: 1}, SLOW)).values()
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
