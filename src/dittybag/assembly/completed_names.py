"""Names for shell completion, read without creating or changing a database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from dittybag.assembly.store_factory import is_file
from dittybag.config import Settings
from dittybag.domain.prompts import Argument
from dittybag.storage.sql.name_lookup import NameAbout, NameLookup

T = TypeVar("T")

#: At most this many names are offered.
MAX_NAMES: Final = 200
#: How long to wait for a PostgreSQL server.
_CONNECT_SECONDS: Final = 2.0

__all__ = [
    "MAX_NAMES",
    "NameAbout",
    "NameLookup",
    "library_names",
    "library_prompts",
    "read_names",
    "selected_project",
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


async def selected_project(names: NameLookup, settings: Settings) -> int | None:
    """Return the id of the project of the settings, or of the current folder; `None` if it does not exist."""
    if not settings.has_automatic_project:
        return await names.project(settings.project)
    from dittybag.assembly.folder_links import client_folders
    from dittybag.domain.projects import DEFAULT_PROJECT

    folders = client_folders(settings)
    folder = (folders.from_environment() or folders.from_working_folder()).folder
    if folder is None:
        return await names.project(DEFAULT_PROJECT)
    key = folder.linked()
    return key.id if key is not None and await names.is_project(key.id, key.created_at) else None


def library_names(settings: Settings) -> list[str]:
    """Return the names of the folders that may be libraries, without reading their files."""
    from dittybag.library.library_folders import Directories

    folders = Directories(settings.home, settings.known_libraries).scan().all
    return sorted({folder.name for folder in folders if folder.name})


def library_prompts(settings: Settings, library: str) -> list[tuple[NameAbout, tuple[Argument, ...]]]:
    """Return the prompts of a library, with their arguments. Only the files of this library are read."""
    from dittybag.library.library_folders import Directories
    from dittybag.protocol.lazy_asyncio import asyncio

    folders = Directories(settings.home, settings.known_libraries).scan().all
    folder = next((folder.root.path for folder in folders if folder.name == library), None)
    if folder is None:
        return []

    async def read() -> list[tuple[NameAbout, tuple[Argument, ...]]]:
        from dittybag.assembly.workspace_session import open_libraries

        async with open_libraries(settings.home, settings.known_libraries, alone=folder, cached=True) as (
            libraries,
            _,
        ):
            prompts = await libraries.page("", MAX_NAMES)
        return [
            ((f"{library}:{prompt.key}", prompt.title or prompt.description or ""), prompt.arguments)
            for prompt in prompts
        ]

    return asyncio.run(read())
