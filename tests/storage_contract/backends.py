"""The backends that keep the storage contract; a further one is a further entry here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Protocol

from dittybag.domain.ports import Store
from dittybag.storage.postgres.store import PostgresStore
from dittybag.storage.sqlite.store import SqliteStore
from tests.databases import Server, running


class Backend(Protocol):
    """Somewhere to keep stores."""

    #: Whether its stores know at any moment that nothing has changed; others have no stamps.
    stamps: bool
    #: How many examples a test may try that thinks of its own and opens a store for each.
    examples: int

    def new_place(self) -> str:
        """Where no store is yet."""
        ...

    async def open(self, place: str) -> Store:
        """The store in a place; it is made if it is not there. It may be opened any number of times."""
        ...


class SqliteFiles:
    """Stores in SQLite files of one folder."""

    stamps = True
    examples = 120

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)

    def new_place(self) -> str:
        return str(self._folder / f"{next(self._numbers)}.db")

    async def open(self, place: str) -> Store:
        return SqliteStore(place)


class PostgresSchemas:
    """Stores in schemas of one PostgreSQL server."""

    stamps = False
    examples = 40

    def __init__(self, server: Server) -> None:
        self._server = server
        self._numbers = count(1)

    def new_place(self) -> str:
        return self._server.socket_url(schema=f"Store {next(self._numbers)}")

    async def open(self, place: str) -> Store:
        return await PostgresStore.open(place)


@contextmanager
def sqlite(folder: Path) -> Iterator[Backend]:
    yield SqliteFiles(folder)


@contextmanager
def postgres(folder: Path) -> Iterator[Backend]:
    """Without pg_trgm."""
    with running("carried") as server:
        assert not server.has_trigrams
        yield PostgresSchemas(server)


@contextmanager
def postgres_with_trigrams(folder: Path) -> Iterator[Backend]:
    with running("installed") as server:
        assert server.has_trigrams
        yield PostgresSchemas(server)


#: Each is given a folder of its own.
BACKENDS: dict[str, Callable[[Path], AbstractContextManager[Backend]]] = {
    "sqlite": sqlite,
    "postgres": postgres,
    "postgres-trigrams": postgres_with_trigrams,
}
