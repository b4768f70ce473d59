"""Opens the store for a database: SQLite or PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dittybag.config import SettingsError

if TYPE_CHECKING:
    from dittybag.domain.ports import Store

_POSTGRES: Final = ("postgresql://", "postgres://")


def is_file(database: str) -> bool:
    """Whether a database is an SQLite file, not a PostgreSQL URL."""
    return not database.startswith(_POSTGRES)


async def open_store(database: str, *, read_only: bool = False) -> Store:
    """Open a database; a missing one is created. Raises `SettingsError` and `StorageError`.

    With `read_only`, a file that cannot be written is opened as well.
    """
    if is_file(database):
        from dittybag.storage.sqlite.store import SqliteStore

        return SqliteStore(database, read_only=read_only)
    try:
        from dittybag.storage.postgres.store import PostgresStore
    except ImportError as error:
        raise SettingsError("PostgreSQL needs an extra package: pip install 'dittybag[postgres]'") from error
    return await PostgresStore.open(database)
