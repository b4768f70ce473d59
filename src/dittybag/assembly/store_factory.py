"""Opens the store for a database: SQLite or PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from dittybag.config import SettingsError
from dittybag.domain.errors import StorageError, WorkspaceNotFound
from dittybag.storage.clock import now_microseconds

if TYPE_CHECKING:
    from dittybag.domain.ports import Store

_POSTGRES: Final = ("postgresql://", "postgres://")


def is_file(database: str) -> bool:
    """Whether a database is an SQLite file, not a PostgreSQL URL."""
    return not database.startswith(_POSTGRES)


def database_name(database: str) -> str:
    """Return what tells a database from others: its real path, or its URL without the password."""
    if is_file(database):
        return os.path.realpath(database)
    from dittybag.storage.postgres.postgres_connections import parse_address

    return parse_address(database).display_url


def is_missing(database: str) -> bool:
    """Whether a database is a file that does not exist or is empty."""
    try:
        return is_file(database) and os.stat(database).st_size == 0  # noqa: PTH116  # pathlib is slow to import
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        # Opening it reports the reason.
        return False


def holds_workspace(file: str) -> bool:
    """Whether a file is a Dittybag database."""
    from dittybag.storage.sqlite.sqlite_connections import require_dittybag_file

    try:
        require_dittybag_file(file)
    except StorageError:
        return False
    return not is_missing(file)


async def open_store(
    database: str,
    *,
    create: bool = True,
    read_only: bool = False,
    replicas: Sequence[str] = (),
    after_commit: Callable[[], None] | None = None,
) -> Store:
    """Open a database. A missing one is created, or raises `WorkspaceNotFound` without `create`.

    With `read_only`, a file that cannot be written is opened as well. `replicas`: the URLs of read replicas.
    `after_commit` is called in the writer's thread of a SQLite store. Raises `SettingsError` and
    `StorageError`.
    """
    if not create and is_missing(database):
        raise WorkspaceNotFound(database)
    if is_file(database):
        if replicas:
            raise SettingsError("--read-replica needs a PostgreSQL database")
        from dittybag.storage.sqlite.sqlite_store import SqliteStore

        return SqliteStore(database, now_microseconds, read_only=read_only, after_commit=after_commit)
    try:
        from dittybag.storage.postgres.postgres_store import PostgresStore
    except ImportError as error:
        raise SettingsError("PostgreSQL needs an extra package: pip install 'dittybag[postgres]'") from error
    return await PostgresStore.open(database, clock=now_microseconds, create=create, replicas=replicas)


@asynccontextmanager
async def opened_store(database: str, *, create: bool = True) -> AsyncIterator[Store]:
    """Like `open_store`, and close the store at the end."""
    store = await open_store(database, create=create)
    try:
        yield store
    finally:
        await store.close()
