"""Names for shell completion, read without creating or changing a database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from dittybag.assembly.store_factory import is_file
from dittybag.config import Settings
from dittybag.storage.sql.name_lookup import NameLookup

T = TypeVar("T")

#: At most this many names are offered.
MAX_NAMES: Final = 200
#: How long to wait for a PostgreSQL server.
_CONNECT_SECONDS: Final = 2.0

__all__ = [
    "MAX_NAMES",
    "NameLookup",
    "library_names",
    "library_prompts",
    "read_names",
]


def read_names(settings: Settings, work: Callable[[NameLookup], Awaitable[T]], limit: int = MAX_NAMES) -> T:
    """Run `work` on a connection of its own, which does not create, migrate or change the database.

    `limit`: the maximum number of names.
    """
    if not is_file(settings.database):
        return _read_from_server(settings.database, work, limit)
    from dittybag.storage.sqlite.snapshots import open_snapshot
    from dittybag.storage.sqlite.sqlite_driver import SqliteDriver, run_synchronously

    with open_snapshot(settings.database) as connection:
        return run_synchronously(work(NameLookup(SqliteDriver(connection), limit)))


def _read_from_server(url: str, work: Callable[[NameLookup], Awaitable[T]], limit: int) -> T:
    from dittybag.protocol.lazy_asyncio import asyncio
    from dittybag.storage.postgres.postgres_connections import connect, parse_address
    from dittybag.storage.postgres.postgres_driver import PostgresDriver

    async def run() -> T:
        connection = await connect(parse_address(url), writable=False, seconds=_CONNECT_SECONDS)
        try:
            return await work(NameLookup(PostgresDriver(connection), limit))
        finally:
            await connection.close()

    return asyncio.run(run())


def library_names(settings: Settings) -> list[str]:
    """Return the names of the folders that may be libraries, without reading their files."""
    from dittybag.library.library_folders import Directories

    folders = Directories(settings.home, settings.known_libraries).scan().all
    return sorted({folder.name for folder in folders if folder.name})


def library_prompts(settings: Settings, library: str) -> list[tuple[str, str]]:
    """Return the prompts of a library, and what to say about each. Only its own files are read."""
    from dittybag.library.library_folders import Directories
    from dittybag.protocol.lazy_asyncio import asyncio

    folders = Directories(settings.home, settings.known_libraries).scan().all
    folder = next((folder.root.path for folder in folders if folder.name == library), None)

    async def read() -> list[tuple[str, str]]:
        from dittybag.assembly.workspace_session import open_libraries

        extra = settings.known_libraries
        async with open_libraries(settings.home, extra, alone=folder, cached=True) as (libraries, _):
            prompts = await libraries.page("", MAX_NAMES)
        return [(f"{library}:{prompt.key}", prompt.title or prompt.description or "") for prompt in prompts]

    return [] if folder is None else asyncio.run(read())
