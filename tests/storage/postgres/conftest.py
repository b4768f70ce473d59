"""A PostgreSQL server, and a new schema in it for every test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import count
from typing import TypeAlias

import pytest

from dittybag.storage.postgres.postgres_store import PostgresStore
from tests.postgres_servers import PostgresServer, run_postgres

OpenStore: TypeAlias = Callable[[str], Awaitable[PostgresStore]]

numbers = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    with run_postgres("bundled") as server:
        yield server


@pytest.fixture
def schema() -> str:
    """The name of a schema that does not exist yet."""
    return f"workspace_{next(numbers)}"


@pytest.fixture
def url(server: PostgresServer, schema: str) -> str:
    """The URL of a workspace that does not exist yet."""
    return server.url(schema=schema)


@pytest.fixture
async def open_store() -> AsyncIterator[OpenStore]:
    """Opens stores, which are closed after the test."""
    opened: list[PostgresStore] = []

    async def open_it(url: str) -> PostgresStore:
        opened.append(await PostgresStore.open(url))
        return opened[-1]

    yield open_it
    for store in opened:
        await store.close()
