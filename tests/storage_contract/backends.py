"""The storage backends that the contract tests run on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Protocol

import asyncpg  # type: ignore[import-untyped]  # it has no types
import pytest

from dittybag.domain.ports import Store
from dittybag.storage.clock import now_microseconds
from dittybag.storage.postgres.postgres_store import PostgresStore
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests import pgbouncer_servers
from tests.pgbouncer_servers import PgBouncer
from tests.postgres_servers import PostgresServer
from tests.repetitions import repetitions
from tests.schema_snapshot import SchemaSnapshot

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

    async def open(self, location: str, clock: Callable[[], int] = now_microseconds) -> Store:
        """Open the store at a location, creating it if needed. It can be opened several times."""
        ...

    async def borrow(self) -> str:
        """Return the location of a store with nothing but the default project. Faster than creating it."""
        ...

    async def give_back(self, location: str) -> None:
        """Allow others to borrow this location. Its stores are closed."""
        ...


class SqliteFiles:
    """Stores in SQLite files in one folder."""

    stamps = True
    examples = repetitions(40, 1000)

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)

    def new_location(self) -> str:
        return str(self._folder / f"{next(self._numbers)}.db")

    async def open(self, location: str, clock: Callable[[], int] = now_microseconds) -> Store:
        return SqliteStore(location, clock)

    async def borrow(self) -> str:
        initial = self._folder / "initial.db"
        if not initial.exists():
            await SqliteStore(str(initial)).close()
        return shutil.copyfile(initial, self.new_location())

    async def give_back(self, location: str) -> None:
        """Do nothing: a copy of a file is cheap."""


class PostgresSchemas:
    """Stores in schemas of one PostgreSQL server."""

    stamps = False
    examples = repetitions(8, 300)

    def __init__(self, server: PostgresServer, pooler: PgBouncer | None = None) -> None:
        self._server = server
        self._pooler = pooler
        self._free: list[str] = []
        #: The snapshots of the borrowed schemas, by location.
        self._snapshots: dict[str, SchemaSnapshot] = {}

    def new_location(self) -> str:
        return self._location(_new_schema())

    def _location(self, schema: str) -> str:
        if self._pooler is None:
            return self._server.socket_url(schema=schema)
        return self._pooler.url(schema=schema, direct=self._pooler.direct)

    async def open(self, location: str, clock: Callable[[], int] = now_microseconds) -> Store:
        return await PostgresStore.open(location, clock)

    async def borrow(self) -> str:
        if self._free:
            return self._free.pop()
        schema = _new_schema()
        location = self._location(schema)
        await (await self.open(location)).close()
        self._snapshots[location] = SchemaSnapshot(self._server, schema)
        return location

    async def give_back(self, location: str) -> None:
        connection = await asyncpg.connect(self._server.socket_url())
        try:
            await connection.execute(self._snapshots[location].restore_sql)
        finally:
            await connection.close()
        self._free.append(location)


def _new_schema() -> str:
    return f"Store {next(_schema_numbers)}"


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


def pgbouncer(request: pytest.FixtureRequest) -> Backend:
    """PostgreSQL without pg_trgm, through PgBouncer in transaction mode."""
    return PostgresSchemas(
        request.getfixturevalue("shared_postgres"), request.getfixturevalue("shared_pgbouncer")
    )


def pgbouncer_with_trigrams(request: pytest.FixtureRequest) -> Backend:
    server: PostgresServer = request.getfixturevalue("shared_postgres_with_trigrams")
    return PostgresSchemas(server, request.getfixturevalue("shared_pgbouncer_with_trigrams"))


BACKENDS: dict[str, Callable[[pytest.FixtureRequest], Backend]] = {
    "sqlite": sqlite,
    "postgres": postgres,
    "postgres-trigrams": postgres_with_trigrams,
}

if pgbouncer_servers.IS_WANTED:
    BACKENDS.update({"pgbouncer": pgbouncer, "pgbouncer-trigrams": pgbouncer_with_trigrams})
