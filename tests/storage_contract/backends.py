"""The storage backends that the contract tests run on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Protocol

import pytest

from dittybag.domain.ports import Store
from dittybag.storage.postgres.postgres_store import PostgresStore
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.postgres_servers import PostgresServer
from tests.repetitions import repetitions

#: Backends of one server use different schemas.
_schema_numbers = count(1)


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
    examples = repetitions(60, 1000)

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
    examples = repetitions(20, 300)

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    def new_location(self) -> str:
        return self._server.socket_url(schema=f"Store {next(_schema_numbers)}")

    async def open(self, location: str) -> Store:
        return await PostgresStore.open(location)


def sqlite(request: pytest.FixtureRequest) -> Backend:
    folders: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    return SqliteFiles(folders.mktemp("sqlite"))


def postgres(request: pytest.FixtureRequest) -> Backend:
    """PostgreSQL without pg_trgm."""
    server: PostgresServer = request.getfixturevalue("shared_postgres")
    assert not server.has_trigrams
    return PostgresSchemas(server)


def postgres_with_trigrams(request: pytest.FixtureRequest) -> Backend:
    server: PostgresServer = request.getfixturevalue("shared_postgres_with_trigrams")
    assert server.has_trigrams
    return PostgresSchemas(server)


BACKENDS: dict[str, Callable[[pytest.FixtureRequest], Backend]] = {
    "sqlite": sqlite,
    "postgres": postgres,
    "postgres-trigrams": postgres_with_trigrams,
}
