"""Backups of a SQLite file: made while others write to it, verified, and put back without a loss.

A backup is a copy of what one read transaction sees: a writer can neither tear it nor make it begin again,
and does not wait for it. (SQLite's `VACUUM INTO` has a transaction too, but it writes every row anew and
cannot say how far it is.)

What is put back is written over a sound database in one transaction, through SQLite. To rename a file into
its place would pull it away from those who have it open, and one of them could take the write-ahead log of
the new file for that of the old one. Only what is not sound any more is moved aside by name.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Literal

import apsw
from msgspec import Struct

from dittybag.domain.errors import StorageError, StorageFailed, StorageFull, StorageReadOnly, StorageTooNew
from dittybag.storage.sqlite.connections import connect, prepare_folder, to_storage_error, translate_errors
from dittybag.storage.sqlite.integrity_check import (
    IntegrityProblem,
    ReportProgress,
    check_integrity,
    check_structure,
    newest_seq,
    open_snapshot,
    rebuild_index,
    schema_version,
)
from dittybag.storage.sqlite.migrations import NEWEST, migrate

#: What a file is called that is not finished.
TEMPORARY_SUFFIX: Final = ".dittybag-part"
#: What a database is called that was moved aside, before the time.
ASIDE_INFIX: Final = ".before-restore-"

#: What SQLite puts beside a database.
_SIDE_FILE_SUFFIXES: Final = ("-wal", "-shm", "-journal")
#: So many pages are copied before anybody is told.
_PAGES_PER_STEP: Final = 2048
#: Making the default project is the only change in a database that nobody has used.
_INITIAL_SEQ: Final = 1
#: How file systems say that a file can have only one name.
_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
#: As much of a file's name as the name of its unfinished copy has.
_STEM_LENGTH: Final = 40

Reason = Literal["name", "missing", "exists", "folder", "no folder", "itself", "in use", "damaged"]


class FileRefused(Exception):
    """A file cannot be what it is asked to be."""

    def __init__(self, path: str, reason: Reason, details: tuple[str, ...] = ()) -> None:
        self.path = path
        self.reason: Reason = reason
        self.details = details
        super().__init__(f"{path}: {reason}")


class BackupResult(Struct, frozen=True):
    """A backup that was made."""

    file: str
    bytes: int
    #: The last change that is in it.
    change: int
    #: What is wrong with the database, and thus with its backup.
    problems: list[IntegrityProblem]


class RestoreResult(Struct, frozen=True):
    """A database that was made what it was in a backup."""

    database: str
    #: The last change that is in it.
    change: int
    #: Where the database is that was there before; nothing if there was none.
    aside: str | None
    problems: list[IntegrityProblem]


def back_up(database: str, file: str, *, force: bool, report: ReportProgress) -> BackupResult:
    """Copy a database into a file. Raises `FileRefused` and `StorageError`."""
    _require_utf8_names(file, database)
    if not os.path.lexists(database):
        raise FileRefused(database, "missing")
    _require_usable_name(file, database, force=force)
    with _translate_os_errors(file), _temporary_file(file, 0o600) as part:
        with open_snapshot(database) as source:
            number = schema_version(source)
            if number > NEWEST:
                raise StorageTooNew(database, found=number, known=NEWEST)
            _copy(source, part, report)
        with open_snapshot(part, immutable=True) as copy:
            problems = check_integrity(copy, report)
            # A file that has only been begun has no log.
            change = newest_seq(copy) if number else 0
        if damage := [problem.message for problem in problems if problem.part == "structure"]:
            raise FileRefused(database, "damaged", tuple(damage))
        size = os.path.getsize(part)  # noqa: PTH202  # pathlib is slow to import
        _sync(part)
        if force:
            os.replace(part, file)  # noqa: PTH105
        else:
            _publish(part, file)
        _sync(os.path.dirname(os.path.abspath(file)))  # noqa: PTH100, PTH120
    return BackupResult(os.path.abspath(file), size, change, problems)  # noqa: PTH100


def restore(file: str, database: str, *, force: bool, report: ReportProgress) -> RestoreResult:
    """Make a database what it was in a backup. Raises `FileRefused` and `StorageError`.

    Without `force`, only where there is nothing yet.
    """
    _require_utf8_names(file, database)
    if not os.path.lexists(file):
        raise FileRefused(file, "missing")
    # What SQLite keeps beside a database is where the file really is.
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
    with _translate_os_errors(database), _temporary_file(database, _mode_of(database)) as part:
        with open_snapshot(file) as source:
            number = schema_version(source)
            if number > NEWEST:
                raise StorageTooNew(file, found=number, known=NEWEST)
            _copy(source, part, report)
        problems = _prepare_copy(part, file, report)
        with open_snapshot(part, immutable=True) as copy:
            change = newest_seq(copy)
        _sync(part)
        aside = _install(part, database, force=force, report=report)
        _sync(os.path.dirname(os.path.abspath(database)))  # noqa: PTH100, PTH120
    return RestoreResult(database, change, aside, problems)


def _prepare_copy(part: str, file: str, report: ReportProgress) -> list[IntegrityProblem]:
    """Bring a copy to the newest schema, and mend what can be mended; what is wrong with it beyond that."""
    with open_snapshot(part, immutable=True) as copy:
        problems = check_structure(copy)
        old = schema_version(copy) < NEWEST
    _refuse_damage(file, problems)
    if old:
        report("Bringing it to the newest schema")
        migrate(part)
    with open_snapshot(part, immutable=True) as copy:
        problems = check_integrity(copy, report)
    _refuse_damage(file, problems)
    if any(problem.part == "index" for problem in problems):
        report("Making the search index anew")
        rebuild_index(part)
    return [problem for problem in problems if problem.part != "index"]


def _refuse_damage(file: str, problems: list[IntegrityProblem]) -> None:
    if damage := [problem.message for problem in problems if problem.part in ("structure", "schema")]:
        raise FileRefused(file, "damaged", tuple(damage))


def _copy(source: apsw.Connection, part: str, report: ReportProgress) -> None:
    """Copy what a connection in a transaction sees into a file that nobody else knows."""
    target = apsw.Connection(part, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # It is synced when it is complete, and gone if it never is.
        target.execute("PRAGMA synchronous = OFF")
        target.execute("PRAGMA journal_mode = OFF")
        with target.backup("main", source, "main") as copying:
            _run_steps(copying, "Copying", report)
    except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
        # Of the copy, most likely: the source has just been read.
        raise to_storage_error(error, os.path.dirname(part)) from error  # noqa: PTH120
    finally:
        target.close()


def _run_steps(copying: apsw.Backup, words: str, report: ReportProgress) -> None:
    while not copying.done:
        copying.step(_PAGES_PER_STEP)
        if copying.page_count:
            report(f"{words}: {100 * (copying.page_count - copying.remaining) // copying.page_count} %")


# Putting a prepared file into its place


def _install(part: str, database: str, *, force: bool, report: ReportProgress) -> str | None:
    """Make the database what a prepared file is; where it is now that was there before."""
    if os.path.lexists(database) and _can_overwrite(part, database):
        return _overwrite(part, database, force=force, report=report)
    return _move_into_place(part, database, force=force)


def _can_overwrite(part: str, database: str) -> bool:
    """Whether a database is sound, and of a kind that can be written over."""
    try:
        with open_snapshot(part, immutable=True) as copy, open_snapshot(database) as present:
            if copy.pragma("page_size") != present.pragma("page_size"):
                return False
            return bool(present.pragma("quick_check") == "ok")
    except (StorageError, ValueError):
        return False


def _overwrite(part: str, database: str, *, force: bool, report: ReportProgress) -> str | None:
    """Write over a database in one transaction, after what was in it has been copied aside."""
    target = connect(database, writable=True)
    try:
        with open_snapshot(part, immutable=True) as source, translate_errors(database):
            with target.backup("main", source, "main") as copying:
                # From the first page on nobody else can write.
                copying.step(1)
                aside = None
                if _has_data(database):
                    if not force:
                        raise FileRefused(database, "exists")
                    aside = _copy_aside(database, report)
                _run_steps(copying, "Restoring", report)
            with suppress(apsw.BusyError):
                target.execute("PRAGMA wal_checkpoint(PASSIVE)")
    finally:
        target.close()
    return aside


def _copy_aside(database: str, report: ReportProgress) -> str:
    with _temporary_file(database, _mode_of(database)) as part:
        with open_snapshot(database) as present:
            _copy(present, part, lambda text: report(f"Keeping the present database. {text}"))
        _sync(part)
        for aside in _aside_names(database):
            with suppress(FileExistsError):
                _link(part, aside)
                break
    _sync(os.path.dirname(os.path.abspath(database)))  # noqa: PTH100, PTH120
    return aside


def _move_into_place(part: str, database: str, *, force: bool) -> str | None:
    """Give a prepared file the name of a database that is not there, or is not sound and moved aside."""
    there = os.path.lexists(database)
    if there and not force:
        raise FileRefused(database, "exists")
    aside = None
    if there or any(os.path.lexists(database + suffix) for suffix in _SIDE_FILE_SUFFIXES):
        aside = next(name for name in _aside_names(database) if not _any_exists(name))
        if there:
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
        # A second name: the first is never without a file.
        os.link(database, aside)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.rename(database, aside)  # noqa: PTH104


def _any_exists(path: str) -> bool:
    return any(os.path.lexists(path + suffix) for suffix in ("", *_SIDE_FILE_SUFFIXES))


def _aside_names(database: str) -> Iterator[str]:
    stem, ending = os.path.splitext(os.path.abspath(database))  # noqa: PTH100, PTH122
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    yield f"{stem}{ASIDE_INFIX}{stamp}{ending}"
    for number in range(2, 1000):
        yield f"{stem}{ASIDE_INFIX}{stamp}-{number}{ending}"
    raise StorageFailed(database, "there is no name left for what is there now")


def _has_data(database: str) -> bool:
    """Whether there is anything that would be missed."""
    if not os.path.lexists(database) or (os.path.isfile(database) and not os.path.getsize(database)):  # noqa: PTH113, PTH202
        return False
    try:
        with open_snapshot(database) as present:
            return newest_seq(present) > _INITIAL_SEQ or _has_users(present)
    except StorageError:
        # What cannot be read may be worth a lot to somebody who can.
        return True


def _has_users(connection: apsw.Connection) -> bool:
    """Whether there are users, who are in no log."""
    there = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'users'").get
    return there is not None and connection.execute("SELECT 1 FROM users LIMIT 1").get is not None


# Files


def _require_utf8_names(*paths: str) -> None:
    """Raises `FileRefused` for a name that SQLite cannot have."""
    for path in paths:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise FileRefused(path, "name") from None


def _require_usable_name(file: str, database: str, *, force: bool) -> None:
    """Raises `FileRefused` unless a backup can have this name."""
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
    # SQLite would take another file's log for that of the backup.
    if any(os.path.lexists(file + suffix) for suffix in _SIDE_FILE_SUFFIXES):
        raise FileRefused(file, "in use")


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121
    except OSError:
        return False


def _mode_of(path: str) -> int:
    """Who may read and write a file; its owner only, if there is none."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode) & 0o666  # noqa: PTH116
    except OSError:
        return 0o600


@contextmanager
def _temporary_file(path: str, mode: int) -> Iterator[str]:
    """An unfinished file beside another, gone afterwards unless it got its name."""
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100
    descriptor, part = tempfile.mkstemp(
        prefix=f".{name[:_STEM_LENGTH]}.", suffix=TEMPORARY_SUFFIX, dir=folder
    )
    os.close(descriptor)
    try:
        os.chmod(part, mode)  # noqa: PTH101
        yield part
    finally:
        for suffix in ("", *_SIDE_FILE_SUFFIXES):
            with suppress(FileNotFoundError):
                os.unlink(part + suffix)  # noqa: PTH108


def _publish(part: str, file: str) -> None:
    """Give a finished file its name, unless something has that name by now."""
    try:
        _link(part, file)
    except FileExistsError:
        raise FileRefused(file, "exists") from None


def _link(part: str, file: str) -> None:
    """Give a file another name; raises `FileExistsError` if something has it."""
    try:
        os.link(part, file)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # There is no second name on this file system: the name is taken first, then given.
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.replace(part, file)  # noqa: PTH105


def _sync(path: str) -> None:
    """See to it that a file, or what a folder lists, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _translate_os_errors(path: str) -> Iterator[None]:
    """Errors of the file system, as errors of the store."""
    try:
        yield
    except PermissionError as error:
        raise StorageReadOnly(path) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(path) from error
        if error.errno == errno.EROFS:
            raise StorageReadOnly(path) from error
        raise StorageFailed(path, (error.strerror or str(error)).lower()) from error
