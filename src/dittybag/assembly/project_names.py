"""Project names for shell completion, read without creating or changing a database."""

from __future__ import annotations

from dittybag.config import Settings
from dittybag.storage.sqlite import integrity_check
from dittybag.storage.sqlite.project_table import ProjectTable
from dittybag.storage.sqlite.writer import run_synchronously


def project_names(settings: Settings, prefix: str, limit: int) -> list[str]:
    """Names of projects that start with `prefix`, at most `limit` of them."""
    with integrity_check.open_snapshot(settings.database) as connection:
        return run_synchronously(ProjectTable(connection).names(prefix, limit))
