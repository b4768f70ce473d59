"""The automatic backups of a database: making that of a day, listing them, and deleting the oldest."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import time
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from dittybag import files
from dittybag.assembly.backup_names import BackupNames
from dittybag.assembly.backup_trigger import LOCK_DESCRIPTOR
from dittybag.config import Settings
from dittybag.domain.display import format_size
from dittybag.domain.errors import StorageError
from dittybag.storage.sqlite.backups import FileRefused, back_up

#: This many backups of a database are kept.
KEPT: Final = 7
#: A backup is only made if this many times the size of the database is free.
_FREE_SIZES: Final = 2
#: The share of the time in which a backup reads and writes.
_BUSY_SHARE: Final = 0.5
#: Seconds of a pause at most, because the backup keeps the write-ahead log from starting over.
_MAX_PAUSE_SECONDS: Final = 0.5
_MAX_STATUS_BYTES: Final = 64 * 1024
_LOWEST_PRIORITY: Final = 19


class MadeBackup(Struct, frozen=True):
    """A backup that was made automatically. With another size or time it is somebody else's file."""

    name: str
    bytes: int
    modified_ns: int


class BackupStatus(Struct, frozen=True):
    """What the status file holds."""

    made: tuple[MadeBackup, ...] = ()
    #: Why the last attempt failed.
    error: str | None = None


class StoredBackup(Struct, frozen=True):
    """A backup in the data folder."""

    file: str
    bytes: int
    #: When it was made, in microseconds since 1970.
    made_at: int
    #: Whether it is deleted when there are newer ones.
    is_automatic: bool


def stored_backups(settings: Settings) -> list[StoredBackup]:
    """Return the backups of the database in the data folder, newest first."""
    names = BackupNames(settings.database, settings.home)
    automatic = {made.name for made in _existing(names, read_status(names).made)}
    found = []
    with suppress(OSError), os.scandir(names.folder) as entries:
        for entry in entries:
            is_automatic = entry.name in automatic
            if is_automatic or names.is_hand_made(entry.name):
                status = entry.stat(follow_symlinks=False)
                made_at = status.st_mtime_ns // 1000
                found.append(StoredBackup(entry.path, status.st_size, made_at, is_automatic))
    return sorted(found, key=lambda backup: backup.made_at, reverse=True)


def newest_backup(settings: Settings) -> StoredBackup | None:
    """Return the newest backup of the database in the data folder, or `None`."""
    return next(iter(stored_backups(settings)), None)


def restore_command(settings: Settings, backup: StoredBackup) -> str:
    """Return the command that restores a backup."""
    name = shlex.quote(os.path.basename(backup.file))  # noqa: PTH119
    return f"dittybag restore {name} --force{database_option(settings)}"


def database_option(settings: Settings) -> str:
    """Return the option that names this database, or an empty string for the default one."""
    return "" if settings.is_default_database else f" --db {shlex.quote(settings.database)}"


def unwritable_folder(settings: Settings) -> str | None:
    """Return the folder for backups, or the first existing one above it, if it cannot be written."""
    folder = BackupNames(settings.database, settings.home).folder
    while not os.path.isdir(folder):  # noqa: PTH112  # pathlib is slow to import
        folder = os.path.dirname(folder)  # noqa: PTH120
    return None if os.access(folder, os.W_OK | os.X_OK) else folder


def last_error(settings: Settings) -> str | None:
    """Return why the last automatic backup failed, or `None`."""
    return read_status(BackupNames(settings.database, settings.home)).error


def read_status(names: BackupNames) -> BackupStatus:
    """Read the status file; an empty status if there is none, or an unreadable one."""
    try:
        return msgspec.json.decode(files.read(names.status_file, _MAX_STATUS_BYTES), type=BackupStatus)
    except (OSError, msgspec.DecodeError):
        return BackupStatus()


def main(database: str, home: str, day: str) -> None:
    """Make the backup of a day in this process, which holds the lock on the status file."""
    # Ends the block that deletes the unfinished file.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    os.nice(_LOWEST_PRIORITY)
    names = BackupNames(database, home)
    status = read_status(names)
    made, error = _existing(names, status.made), None
    try:
        made.append(_make(database, names, day))
        made = _delete_oldest(names, made)
    except _NotMade as reason:
        error = str(reason)
    except FileRefused as refused:
        error = f"{refused.path}: {'; '.join((refused.reason, *refused.details))}"
    except (StorageError, OSError) as problem:
        error = str(problem)
    _write_status(BackupStatus(tuple(made), error))
    sys.exit(error is not None)


class _NotMade(Exception):
    """There is no room for a backup, or its name is taken."""


def _make(database: str, names: BackupNames, day: str) -> MadeBackup:
    file = names.file(day)
    if os.path.lexists(file):
        raise _NotMade(f"{file} already exists")
    size = sum(os.path.getsize(path) for path in (database, f"{database}-wal") if os.path.exists(path))  # noqa: PTH110, PTH202
    space = os.statvfs(names.folder)
    free = space.f_bavail * space.f_frsize
    if free < _FREE_SIZES * size:
        raise _NotMade(
            f"{names.folder} has {format_size(free)} free, less than twice the {format_size(size)} of the "
            "database"
        )
    # It replaces the name in one step, on file systems without hard links, too. The lock keeps others away.
    result = back_up(database, file, force=True, report=_Pace(), only_structure=True)
    return MadeBackup(os.path.basename(file), result.bytes, os.stat(file).st_mtime_ns)  # noqa: PTH116, PTH119


class _Pace:
    """Pauses after every step of a backup, so that others can use the disk."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def __call__(self, text: str, done: int = 0, total: int = 0, /) -> None:
        taken = time.monotonic() - self._begun
        time.sleep(min(taken * (1 / _BUSY_SHARE - 1), _MAX_PAUSE_SECONDS))
        self._begun = time.monotonic()


def _existing(names: BackupNames, made: tuple[MadeBackup, ...]) -> list[MadeBackup]:
    """Those of the recorded backups that still exist, unchanged."""
    return [backup for backup in made if _is_own(names, backup)]


def _is_own(names: BackupNames, backup: MadeBackup) -> bool:
    if not re.fullmatch(rf"{re.escape(names.stem)}-\d{{4}}-\d\d-\d\d\.db", backup.name):
        return False
    try:
        status = os.lstat(os.path.join(names.folder, backup.name))  # noqa: PTH118
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (backup.bytes, backup.modified_ns)


def _delete_oldest(names: BackupNames, made: list[MadeBackup]) -> list[MadeBackup]:
    """Delete all but the newest backups, and return those."""
    made = sorted(made, key=lambda backup: backup.name)
    for backup in made[:-KEPT]:
        with suppress(OSError):
            os.unlink(os.path.join(names.folder, backup.name))  # noqa: PTH108, PTH118
    return made[-KEPT:]


def _write_status(status: BackupStatus) -> None:
    """Overwrite the status file: a new one under its name would not be locked."""
    data = msgspec.json.encode(status)
    os.pwrite(LOCK_DESCRIPTOR, data, 0)
    os.ftruncate(LOCK_DESCRIPTOR, len(data))
