"""Online backups of a SQLite file, and their restoration.

A backup is a copy of the snapshot of one read transaction. Writers do not wait for it, and cannot make it
inconsistent or start over. (`VACUUM INTO` uses a transaction too, but it rewrites every row and cannot report
progress.)

A restore overwrites an intact database in one transaction, through SQLite. Renaming a file over it instead
would break processes that have it open: one of them could mistake the write-ahead log of the new file for
that of the old one. Only a damaged database is renamed.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Literal

import apsw
from msgspec import Struct

from dittybag import files
from dittybag.domain.errors import StorageError, StorageTooNew
from dittybag.domain.progress import ReportProgress
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from dittybag.storage.sqlite.index_rebuild import rebuild_indexes
from dittybag.storage.sqlite.integrity_check import (
    IntegrityProblem,
    check_integrity,
    check_structure,
)
from dittybag.storage.sqlite.migrations.sqlite_migrations import migrate, schema_version
from dittybag.storage.sqlite.snapshots import open_snapshot
from dittybag.storage.sqlite.sqlite_connections import (
    connect,
    prepare_folder,
    to_storage_error,
    translate_errors,
    translate_os_errors,
)

#: The suffix of unfinished files.
TEMPORARY_SUFFIX: Final = ".dittybag-part"
#: Between the name and the timestamp of a database that a restore has replaced.
ASIDE_INFIX: Final = ".before-restore-"

#: Suffixes of the files that SQLite creates next to a database.
_SIDE_FILE_SUFFIXES: Final = ("-wal", "-shm", "-journal")
#: Pages copied between two progress reports.
_PAGES_PER_STEP: Final = 2048
#: The last change of an unused database: it created the default project.
_INITIAL_SEQ: Final = 1
#: At most this many characters of a file's name are in the name of its unfinished copy.
_STEM_LENGTH: Final = 40

Reason = Literal["name", "missing", "exists", "folder", "no folder", "itself", "in use", "damaged"]


class FileRefused(Exception):
    """A file cannot be used as a backup, or as the target of one."""

    def __init__(self, path: str, reason: Reason, details: tuple[str, ...] = ()) -> None:
        self.path = path
        self.reason: Reason = reason
        self.details = details
        super().__init__(f"{path}: {reason}")


class BackupResult(Struct, frozen=True):
    """A completed backup."""

    file: str
    bytes: int
    #: The last change that it contains.
    change: int
    #: Problems of the database, which its backup shares.
    problems: list[IntegrityProblem]


class RestoreResult(Struct, frozen=True):
    """A completed restore."""

    database: str
    #: The last change that it contains.
    change: int
    #: The path of the database that was replaced; None if there was none.
    aside: str | None
    problems: list[IntegrityProblem]


def back_up(database: str, file: str, *, force: bool, report: ReportProgress) -> BackupResult:
    """Copy a database to a file. Raises `FileRefused` and `StorageError`."""
    _require_utf8_names(file, database)
    if not os.path.lexists(database):
        raise FileRefused(database, "missing")
    _require_usable_name(file, database, force=force)
    with translate_os_errors(file), _temporary_file(file, 0o600) as part:
        with open_snapshot(database) as source:
            number = schema_version(source, database)
            if number > NEWEST_SCHEMA:
                raise StorageTooNew(database, found=number, known=NEWEST_SCHEMA)
            _copy(source, part, report)
        with open_snapshot(part, immutable=True) as copy:
            problems = check_integrity(copy, report)
            # Without migrations there is no change log yet.
            change = _newest_seq(copy) if number else 0
        if damage := [problem.message for problem in problems if problem.part == "integrity"]:
            raise FileRefused(database, "damaged", tuple(damage))
        size = os.path.getsize(part)  # noqa: PTH202  # pathlib is slow to import
        files.sync(part)
        if force:
            os.replace(part, file)  # noqa: PTH105
        else:
            _publish(part, file)
        files.sync_folder(os.path.dirname(os.path.abspath(file)))  # noqa: PTH100, PTH120
    return BackupResult(os.path.abspath(file), size, change, problems)  # noqa: PTH100


def restore(file: str, database: str, *, force: bool, report: ReportProgress) -> RestoreResult:
    """Restore a database from a backup. Raises `FileRefused` and `StorageError`.

    Without `force`, a database that contains data is not replaced.
    """
    _require_utf8_names(file, database)
    if not os.path.lexists(file):
        raise FileRefused(file, "missing")
    # SQLite creates the write-ahead log next to the target of a symbolic link.
    database = os.path.realpath(database)
    if os.path.isdir(file):  # noqa: PTH112
        raise FileRefused(file, "folder")
    if os.path.isdir(database):  # noqa: PTH112
        raise FileRefused(database, "folder")
    if _is_same_file(file, database):
        raise FileRefused(file, "itself")
    if not force and _has_data(database):
        raise FileRefused(database, "exists")
    prepare_folder(database)
    with translate_os_errors(database), _temporary_file(database, _mode_of(database)) as part:
        with open_snapshot(file) as source:
            number = schema_version(source, file)
            if number > NEWEST_SCHEMA:
                raise StorageTooNew(file, found=number, known=NEWEST_SCHEMA)
            _copy(source, part, report)
        problems = _prepare_copy(part, file, report)
        with open_snapshot(part, immutable=True) as copy:
            change = _newest_seq(copy)
        files.sync(part)
        aside = _install(part, database, force=force, report=report)
        files.sync_folder(os.path.dirname(os.path.abspath(database)))  # noqa: PTH100, PTH120
    return RestoreResult(database, change, aside, problems)


def _prepare_copy(part: str, file: str, report: ReportProgress) -> list[IntegrityProblem]:
    """Migrate a copy to the newest schema and rebuild its index if needed. Returns the remaining problems."""
    with open_snapshot(part, immutable=True) as copy:
        problems = check_structure(copy)
        old = schema_version(copy, file) < NEWEST_SCHEMA
    _refuse_damage(file, problems)
    if old:
        report("Migrating to the newest schema")
        migrate(part)
    with open_snapshot(part, immutable=True) as copy:
        problems = check_integrity(copy, report)
    _refuse_damage(file, problems)
    if any(problem.part == "search index" for problem in problems):
        report("Rebuilding the search index")
        rebuild_indexes(part)
    return [problem for problem in problems if problem.part != "search index"]


def _refuse_damage(file: str, problems: list[IntegrityProblem]) -> None:
    if damage := [problem.message for problem in problems if problem.part in ("integrity", "schema")]:
        raise FileRefused(file, "damaged", tuple(damage))


def _copy(source: apsw.Connection, part: str, report: ReportProgress, label: str = "Copying pages") -> None:
    """Copy the snapshot of a connection into a temporary file."""
    target = apsw.Connection(part, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # The file is synced when it is complete, and deleted if it never is.
        target.execute("PRAGMA synchronous = OFF")
        target.execute("PRAGMA journal_mode = OFF")
        with target.backup("main", source, "main") as copying:
            _run_steps(copying, label, report)
    except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
        # Most likely an error of the copy: the source was readable just now.
        raise to_storage_error(error, os.path.dirname(part)) from error  # noqa: PTH120
    finally:
        target.close()


def _run_steps(copying: apsw.Backup, label: str, report: ReportProgress) -> None:
    while not copying.done:
        copying.step(_PAGES_PER_STEP)
        if copying.page_count:
            report(label, copying.page_count - copying.remaining, copying.page_count)


# Installing a prepared file


def _install(part: str, database: str, *, force: bool, report: ReportProgress) -> str | None:
    """Replace the database with a prepared file. Returns where the old one is, or None."""
    if os.path.lexists(database) and _can_overwrite(part, database):
        return _overwrite(part, database, force=force, report=report)
    return _move_into_place(part, database, force=force)


def _can_overwrite(part: str, database: str) -> bool:
    """Whether a database is intact, and has the page size of the prepared file."""
    try:
        with open_snapshot(part, immutable=True) as copy, open_snapshot(database) as present:
            if copy.pragma("page_size") != present.pragma("page_size"):
                return False
            return bool(present.pragma("quick_check") == "ok")
    except (StorageError, ValueError):
        return False


def _overwrite(part: str, database: str, *, force: bool, report: ReportProgress) -> str | None:
    """Overwrite a database in one transaction, after copying its old contents aside."""
    target = connect(database, writable=True)
    try:
        with open_snapshot(part, immutable=True) as source, translate_errors(database):
            with target.backup("main", source, "main") as copying:
                # The first step takes the write lock.
                copying.step(1)
                aside = None
                if _has_data(database):
                    if not force:
                        raise FileRefused(database, "exists")
                    aside = _copy_aside(database, report)
                _run_steps(copying, "Restoring pages", report)
            with suppress(apsw.BusyError):
                target.execute("PRAGMA wal_checkpoint(PASSIVE)")
    finally:
        target.close()
    return aside


def _copy_aside(database: str, report: ReportProgress) -> str:
    with _temporary_file(database, _mode_of(database)) as part:
        with open_snapshot(database) as present:
            _copy(present, part, report, "Saving the current database")
        files.sync(part)
        for aside in _aside_names(database):
            with suppress(FileExistsError):
                files.link(part, aside)
                break
    files.sync_folder(os.path.dirname(os.path.abspath(database)))  # noqa: PTH100, PTH120
    return aside


def _move_into_place(part: str, database: str, *, force: bool) -> str | None:
    """Rename a prepared file to a database that is missing, or is damaged and renamed first."""
    exists = os.path.lexists(database)
    if exists and not force:
        raise FileRefused(database, "exists")
    aside = None
    if exists or any(os.path.lexists(database + suffix) for suffix in _SIDE_FILE_SUFFIXES):
        aside = next(name for name in _aside_names(database) if not _any_exists(name))
        if exists:
            _move_aside(database, aside)
        for suffix in _SIDE_FILE_SUFFIXES:
            with suppress(FileNotFoundError):
                os.rename(database + suffix, aside + suffix)  # noqa: PTH104
    if os.path.lexists(database) and force:
        os.replace(part, database)  # noqa: PTH105
    else:
        _publish(part, database)
    return aside


def _move_aside(database: str, aside: str) -> None:
    try:
        # A hard link: the original name always refers to a file.
        os.link(database, aside)
    except OSError as error:
        if error.errno not in files.NO_HARD_LINKS:
            raise
        os.rename(database, aside)  # noqa: PTH104


def _any_exists(path: str) -> bool:
    return any(os.path.lexists(path + suffix) for suffix in ("", *_SIDE_FILE_SUFFIXES))


def _aside_names(database: str) -> Iterator[str]:
    stem, ending = os.path.splitext(os.path.abspath(database))  # noqa: PTH100, PTH122
    return files.timestamped_names(f"{stem}{ASIDE_INFIX}", ending)


def _has_data(database: str) -> bool:
    """Whether a database contains data, or cannot be read."""
    if not os.path.lexists(database) or (os.path.isfile(database) and not os.path.getsize(database)):  # noqa: PTH113, PTH202
        return False
    try:
        with open_snapshot(database) as present:
            return _newest_seq(present) > _INITIAL_SEQ or _has_users(present)
    except StorageError:
        # An unreadable file may still be valuable.
        return True


def _newest_seq(connection: apsw.Connection) -> int:
    """Return the `seq` of the last change; 0 if there is none."""
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM changes").get)


def _has_users(connection: apsw.Connection) -> bool:
    """Whether there are users, which the change log does not contain."""
    table = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'users'").get
    return table is not None and connection.execute("SELECT 1 FROM users LIMIT 1").get is not None


# Files


def _require_utf8_names(*paths: str) -> None:
    """Raise `FileRefused` for a name that is not valid UTF-8, which SQLite cannot open."""
    for path in paths:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise FileRefused(path, "name") from None


def _require_usable_name(file: str, database: str, *, force: bool) -> None:
    """Raise `FileRefused` unless a backup can be written to this file."""
    folder = os.path.dirname(os.path.abspath(file))  # noqa: PTH100, PTH120
    if not os.path.isdir(folder):  # noqa: PTH112
        raise FileRefused(folder, "no folder")
    if os.path.isdir(file):  # noqa: PTH112
        raise FileRefused(file, "folder")
    own = {os.path.realpath(database + suffix) for suffix in ("", *_SIDE_FILE_SUFFIXES)}
    if os.path.realpath(file) in own or _is_same_file(file, database):
        raise FileRefused(file, "itself")
    if os.path.lexists(file) and not force:
        raise FileRefused(file, "exists")
    # SQLite would mistake another file's write-ahead log for that of the backup.
    if any(os.path.lexists(file + suffix) for suffix in _SIDE_FILE_SUFFIXES):
        raise FileRefused(file, "in use")


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121
    except OSError:
        return False


def _mode_of(path: str) -> int:
    """Return the permissions of a file; owner-only if it does not exist."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode) & 0o666  # noqa: PTH116
    except OSError:
        return 0o600


@contextmanager
def _temporary_file(path: str, mode: int) -> Iterator[str]:
    """Create a temporary file next to another one, and delete it on exit unless it was renamed.

    Also deletes those of processes that were killed.
    """
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100
    _delete_abandoned_parts(folder)
    descriptor, part = _locked_part(folder, name)
    try:
        os.chmod(part, mode)  # noqa: PTH101
        yield part
    finally:
        _delete_part(part)
        os.close(descriptor)


def _locked_part(folder: str, name: str) -> tuple[int, str]:
    """Create a temporary file. It is locked while its process lives."""
    while True:
        descriptor, part = tempfile.mkstemp(
            prefix=f".{name[:_STEM_LENGTH]}.", suffix=TEMPORARY_SUFFIX, dir=folder
        )
        # Another process may delete it before it is locked.
        if _lock(descriptor) and os.path.exists(part):  # noqa: PTH110
            return descriptor, part
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        return files.try_lock(descriptor)
    except OSError:
        # A file system without locks, where abandoned files are never deleted.
        return True


def _delete_abandoned_parts(folder: str) -> None:
    """Delete temporary files that no living process has locked."""
    for name in os.listdir(folder):  # noqa: PTH208
        if name.endswith(TEMPORARY_SUFFIX):
            # It may be locked, or belong to another user.
            with suppress(OSError):
                _delete_abandoned_part(os.path.join(folder, name))  # noqa: PTH118


def _delete_abandoned_part(part: str) -> None:
    descriptor = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if files.try_lock(descriptor):
            _delete_part(part)
    finally:
        os.close(descriptor)


def _delete_part(part: str) -> None:
    for suffix in ("", *_SIDE_FILE_SUFFIXES):
        with suppress(FileNotFoundError):
            os.unlink(part + suffix)  # noqa: PTH108


def _publish(part: str, file: str) -> None:
    """Rename a finished file. Raises `FileRefused` if the name is taken by now."""
    try:
        files.link(part, file)
    except FileExistsError:
        raise FileRefused(file, "exists") from None
