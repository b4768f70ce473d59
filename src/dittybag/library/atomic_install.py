"""Staging: how a change of the libraries is prepared aside and then put into its place at once.

A change is prepared in a folder of its own below HOME/libraries/.dittybag, on the same file system, without
holding anybody up. Only the last steps take the lock: the record is written beside the old one, the folder
is renamed, or exchanged with the one that is there, and the record is renamed. A reader, and whoever comes
after a kill, can tell from the number of the folder which of the two records is the true one, so there is no
moment at which a library is half old and half new.

Functions that say "under the lock" are for whoever holds it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from dittybag.domain.errors import LibrariesBusy, LibraryExists
from dittybag.library.install_records import (
    InstallRecord,
    PendingRecord,
    libraries_folder,
    library_folder,
    next_record,
    next_record_file,
    pending,
    record_file,
    records_folder,
)

#: Whoever holds the lock is done sooner than this.
_PATIENCE_SECONDS: Final = 20
_POLL_SECONDS: Final = 0.02

_WORK: Final = "work-"
_OWNER: Final = "owner"
_OLD: Final = "old"

_EXCHANGE: Final = 2  # the same number with Linux's renameat2 and macOS's renamex_np
_HERE: Final = -100  # AT_FDCWD


@contextmanager
def locked(home: str, *, seconds: float = _PATIENCE_SECONDS) -> Iterator[None]:
    """Nobody else changes libraries meanwhile. What an earlier change left behind is put in order first."""
    folder = Path(records_folder(home))
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        _await(descriptor, time.monotonic() + seconds)
        _tidy(home)
        yield
    finally:
        os.close(descriptor)


def _await(descriptor: int, end: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise LibrariesBusy from None
            time.sleep(_POLL_SECONDS)
        else:
            return


@contextmanager
def workplace(home: str) -> Iterator[Path]:
    """A folder for preparing a change, gone afterwards. Its owner has a lock on a file in it all the time."""
    with locked(home):
        folder = Path(tempfile.mkdtemp(prefix=_WORK, dir=records_folder(home)))
        owner = os.open(folder / _OWNER, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(owner)


def _tidy(home: str) -> None:
    """Settle what a process that was killed has left, under the lock."""
    with os.scandir(records_folder(home)) as entries:
        left = [entry.name for entry in entries if entry.name.startswith(_WORK)]
    for name in left:
        folder = Path(records_folder(home), name)
        if folder.is_symlink() or not folder.is_dir() or _is_owned(folder):
            continue
        _restore(home, folder / _OLD)
        shutil.rmtree(folder, ignore_errors=True)
    for name in pending(home):
        if next_record(home, name) is not None:
            _rename(next_record_file(home, name), record_file(home, name))
        else:
            Path(next_record_file(home, name)).unlink(missing_ok=True)


def _is_owned(folder: Path) -> bool:
    """Whether the process that works in there is alive. It took its lock while it held the other one."""
    try:
        descriptor = os.open(folder / _OWNER, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _restore(home: str, old: Path) -> None:
    """Put back what was moved aside by somebody who then could not put the new library into its place."""
    with suppress(FileNotFoundError):
        for folder in old.iterdir():
            place = Path(library_folder(home, folder.name))
            if not os.path.lexists(place):
                _rename(folder, place)


def put_into_place(home: str, name: str, folder: Path, origin: InstallRecord) -> None:
    """Make a prepared folder a library that was not there before, under the lock."""
    place = library_folder(home, name)
    if os.path.lexists(place):
        raise LibraryExists(name)
    _announce(home, name, origin, folder)
    try:
        _rename(folder, place)
    except OSError as error:
        Path(next_record_file(home, name)).unlink()
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise LibraryExists(name) from None
        raise
    _rename(next_record_file(home, name), record_file(home, name))


def exchange(home: str, name: str, folder: Path, origin: InstallRecord) -> Path:
    """Put a prepared folder in place of a library, under the lock; where the old one is now."""
    place = Path(library_folder(home, name))
    _announce(home, name, origin, folder)
    old = folder
    if _swap(folder, place):
        _sync(Path(libraries_folder(home)))
    else:
        # For an instant there is no library of this name. Whoever comes after a kill puts the old one back.
        (folder.parent / _OLD).mkdir()
        old = folder.parent / _OLD / name
        _rename(place, old)
        _rename(folder, place)
    _rename(next_record_file(home, name), record_file(home, name))
    return old


def write_record(home: str, name: str, origin: InstallRecord) -> None:
    """Write a record whose library stays as it is, under the lock."""
    _announce(home, name, origin, None)
    _rename(next_record_file(home, name), record_file(home, name))


def take_away(home: str, name: str, place: Path, to: Path) -> None:
    """Move a library and forget its record, under the lock."""
    _rename(place, to)
    _sync(to.parent)
    forget(home, name)


def forget(home: str, name: str) -> None:
    """Take a record away, under the lock."""
    Path(record_file(home, name)).unlink(missing_ok=True)
    _sync(Path(records_folder(home)))


def sync_files(folder: Path, files: Iterable[str]) -> None:
    """See to it that a prepared folder is on the disk: these files, and all folders."""
    for file in files:
        _sync(folder / file)
    for parent, _, _ in os.walk(folder, topdown=False):
        _sync(Path(parent))


def keeping_place(home: str, name: str) -> Path:
    """A new folder for what is put aside."""
    folder = Path(records_folder(home), "kept", name)
    folder.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    number = 1
    while True:
        kept = folder / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            kept.mkdir()
        except FileExistsError:
            number += 1
        else:
            return kept


def _announce(home: str, name: str, origin: InstallRecord, folder: Path | None) -> None:
    """Write a record beside the one that is still true."""
    inode = 0 if folder is None else folder.stat().st_ino
    fields = {field: getattr(origin, field) for field in InstallRecord.__struct_fields__}
    path = Path(next_record_file(home, name))
    path.unlink(missing_ok=True)
    with path.open("xb") as file:
        file.write(msgspec.json.encode(PendingRecord(**fields, inode=inode)))
        file.flush()
        os.fsync(file.fileno())
    _sync(path.parent)


def _rename(old: str | Path, new: str | Path) -> None:
    """Rename, for good."""
    Path(old).rename(new)
    _sync(Path(new).parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _swap(one: Path, other: Path) -> bool:
    """Exchange two folders at once; whether this system can do that."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            status = libc.renamex_np(first, second, ctypes.c_uint(_EXCHANGE))
        else:
            status = libc.renameat2(_HERE, first, _HERE, second, ctypes.c_uint(_EXCHANGE))
    except AttributeError:
        return False
    if status == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(other))
