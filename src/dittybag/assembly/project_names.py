"""Project names for shell completion, read without creating or changing a database."""

from __future__ import annotations

from dittybag.config import Settings
from dittybag.storage.sqlite import integrity_check
from dittybag.storage.sqlite.sqlite_driver import run_synchronously
from dittybag.storage.sqlite.sqlite_queries import SqliteTables


def project_names(settings: Settings, prefix: str, limit: int) -> list[str]:
    """Names of projects that start with `prefix`, at most `limit` of them."""
    with integrity_check.open_snapshot(settings.database) as connection:
        return run_synchronously(SqliteTables(connection).projects.names(prefix, limit))
