"""The storage backends that the contract tests run on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Protocol

from dittybag.domain.ports import Store
from dittybag.storage.postgres.postgres_store import PostgresStore
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.postgres_servers import PostgresServer, run_postgres


class Backend(Protocol):
    """Creates and opens stores of one kind."""

    #: Whether its stores have stamps.
    stamps: bool
    #: Number of examples of property tests that open a store for each example.
    examples: int

    def new_location(self) -> str:
        """Return a location without a store."""
        ...

    async def open(self, location: str) -> Store:
        """Open the store at a location, creating it if needed. It can be opened several times."""
        ...


class SqliteFiles:
    """Stores in SQLite files in one folder."""

    stamps = True
    examples = 120

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)

    def new_location(self) -> str:
        return str(self._folder / f"{next(self._numbers)}.db")

    async def open(self, location: str) -> Store:
        return SqliteStore(location)


class PostgresSchemas:
    """Stores in schemas of one PostgreSQL server."""

    stamps = False
    examples = 40

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._numbers = count(1)

    def new_location(self) -> str:
        return self._server.socket_url(schema=f"Store {next(self._numbers)}")

    async def open(self, location: str) -> Store:
        return await PostgresStore.open(location)


@contextmanager
def sqlite(folder: Path) -> Iterator[Backend]:
    yield SqliteFiles(folder)


@contextmanager
def postgres(folder: Path) -> Iterator[Backend]:
    """PostgreSQL without pg_trgm."""
    with run_postgres("bundled") as server:
        assert not server.has_trigrams
        yield PostgresSchemas(server)


@contextmanager
def postgres_with_trigrams(folder: Path) -> Iterator[Backend]:
    with run_postgres("installed") as server:
        assert server.has_trigrams
        yield PostgresSchemas(server)


#: Each gets its own folder.
BACKENDS: dict[str, Callable[[Path], AbstractContextManager[Backend]]] = {
    "sqlite": sqlite,
    "postgres": postgres,
    "postgres-trigrams": postgres_with_trigrams,
}
