"""A PostgreSQL server, and a new place for a workspace in it for every test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import count
from typing import TypeAlias

import pytest

from dittybag.storage.postgres.store import PostgresStore
from tests.databases import Server, running

OpenStore: TypeAlias = Callable[[str], Awaitable[PostgresStore]]

numbers = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running("carried") as server:
        yield server


@pytest.fixture
def schema() -> str:
    """The name of a schema that is not there yet."""
    return f"place_{next(numbers)}"


@pytest.fixture
def url(server: Server, schema: str) -> str:
    """Where no workspace is yet."""
    return server.url(schema=schema)


@pytest.fixture
async def open_store() -> AsyncIterator[OpenStore]:
    """Opens stores that are closed in the end."""
    opened: list[PostgresStore] = []

    async def open_it(url: str) -> PostgresStore:
        opened.append(await PostgresStore.open(url))
        return opened[-1]

    yield open_it
    for store in opened:
        await store.close()
