"""The backups of a database in the data folder: their names, and how to restore them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from zlib import crc32

from dittybag.config import Settings
from dittybag.domain.display import format_moment, format_size
from dittybag.domain.health import StoredBackup
from dittybag.files import timestamped_names


class BackupFolder:
    """The folder with the backups of a database, and of others."""

    def __init__(self, settings: Settings) -> None:
        path = os.path.realpath(settings.database)
        folder, file = os.path.split(path)
        self.path = os.path.join(settings.home, "backups")  # noqa: PTH118  # pathlib is slow to import
        # Outside the data folder, others may have the same name, so it has a checksum of its path, too.
        stem = os.path.splitext(file)[0]  # noqa: PTH122
        if folder != os.path.realpath(settings.home):
            stem = f"{stem}@{crc32(os.fsencode(path)):08x}"
        self._start = os.path.join(self.path, stem)  # noqa: PTH118
        self._automatic = re.compile(rf"{re.escape(stem)}-\d{{4}}-\d\d-\d\d\.db")
        self._by_hand = re.compile(rf"{re.escape(stem)}-by-hand-\d{{8}}T\d{{6}}Z(-\d+)?\.db")

    def of_day(self, day: str) -> str:
        """Return the path of the automatic backup of a day, such as 2026-11-18."""
        return f"{self._start}-{day}.db"

    def hand_made(self) -> str:
        """Return the path of a new backup that a person wants, which is never deleted."""
        names = timestamped_names(f"{self._start}-by-hand-", ".db")
        return next(name for name in names if not os.path.lexists(name))

    def backups(self) -> list[StoredBackup]:
        """Return the backups of the database, newest first."""
        return sorted(self._scan(), key=lambda backup: backup.made_at, reverse=True)

    def _scan(self) -> Iterator[StoredBackup]:
        with suppress(FileNotFoundError), os.scandir(self.path) as entries:
            for entry in entries:
                is_automatic = self._automatic.fullmatch(entry.name) is not None
                if is_automatic or self._by_hand.fullmatch(entry.name):
                    status = entry.stat(follow_symlinks=False)
                    yield StoredBackup(entry.path, status.st_size, status.st_mtime_ns // 1000, is_automatic)

    def lack_of_room(self, database: str) -> str | None:
        """Return what to say if less than twice the size of the database is free."""
        size = sum(os.path.getsize(path) for path in (database, f"{database}-wal") if os.path.exists(path))  # noqa: PTH110, PTH202
        space = os.statvfs(self.path)
        free = space.f_bavail * space.f_frsize
        if free >= 2 * size:
            return None
        found = f"{self.path} has {format_size(free)} free"
        return f"{found}, less than twice the {format_size(size)} of the database"


def stored_backups(settings: Settings) -> list[StoredBackup]:
    """Return the backups of the database in the data folder, newest first."""
    return BackupFolder(settings).backups()


def newest_restore(settings: Settings) -> tuple[str, str] | None:
    """Return when the newest backup in the data folder was made, and the command that restores it."""
    found = stored_backups(settings)
    if not found:
        return None
    name = shlex.quote(os.path.basename(found[0].file))  # noqa: PTH119
    command = f"dittybag backup restore {name} --force{database_option(settings)}"
    return format_moment(found[0].made_at), command


def database_option(settings: Settings) -> str:
    """Return the option that names this database, or an empty string for the default one."""
    return "" if settings.is_default_database else f" --db {shlex.quote(settings.database)}"


def has_automatic_backups(settings: Settings) -> bool:
    """Whether a server with these settings makes a backup a day.

    Not for PostgreSQL, the demo and databases in the folder for temporary files.
    """
    database = settings.database
    if not settings.auto_backup or settings.read_only or settings.is_demo or "://" in database:
        return False
    folder = os.path.dirname(os.path.realpath(database))  # noqa: PTH120
    return folder == os.path.realpath(settings.home) or not any(
        os.path.join(folder, "").startswith(os.path.join(os.path.realpath(temporary), ""))  # noqa: PTH118
        for temporary in settings.temporary_folders
    )
