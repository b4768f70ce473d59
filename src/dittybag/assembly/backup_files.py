"""Back up the database to a file, and restore it from one."""

from __future__ import annotations

from dittybag.config import Settings
from dittybag.domain.progress import ReportProgress
from dittybag.storage.sqlite import backups
from dittybag.storage.sqlite.backups import BackupResult, FileRefused, Reason, RestoreResult

__all__ = ["BackupResult", "FileRefused", "Reason", "RestoreResult", "back_up", "restore"]


def back_up(settings: Settings, file: str, *, force: bool, report: ReportProgress) -> BackupResult:
    """Copy the database to a file while servers may be writing. Raises `FileRefused` and `StorageError`."""
    return backups.back_up(settings.database, file, force=force, report=report)


def restore(settings: Settings, file: str, *, force: bool, report: ReportProgress) -> RestoreResult:
    """Replace the database with a backup. Raises `FileRefused` and `StorageError`."""
    return backups.restore(file, settings.database, force=force, report=report)
