"""Atomic installation: stage a change to the libraries, then apply it in one step.

A change is staged in a separate folder below HOME/libraries/.dittybag, on the same file system and without
a lock. Only the last steps need the lock: write the new record next to the old one, rename the folder into
place (or swap it with the existing one), and rename the record. Readers, and the recovery after a crash,
compare inode numbers to tell which of the two records is current, so a library is never half updated.

Functions whose docstring says "Requires the lock" must be called inside `locked`.
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
    pending_names,
    pending_record_file,
    read_pending_record,
    record_file,
    records_folder,
)
from dittybag.private_folders import make_private_folders

#: The lock is only held for a few renames, so waiting longer than this means that something is stuck.
_LOCK_TIMEOUT_SECONDS: Final = 20
_POLL_SECONDS: Final = 0.02

_STAGING_PREFIX: Final = "work-"
_OWNER_FILE: Final = "owner"
_OLD_FOLDER: Final = "old"

_RENAME_EXCHANGE: Final = 2  # RENAME_EXCHANGE of renameat2 (Linux), RENAME_SWAP of renamex_np (macOS)
_AT_FDCWD: Final = -100


@contextmanager
def locked(home: str, *, seconds: float = _LOCK_TIMEOUT_SECONDS) -> Iterator[None]:
    """Hold the lock for changes to libraries, after recovering from interrupted changes.

    Raises `LibrariesBusy` if the lock is not free within `seconds`.
    """
    folder = Path(records_folder(home))
    make_private_folders(str(folder))
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        _acquire(descriptor, time.monotonic() + seconds)
        _recover(home)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, end: float) -> None:
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
def staging_folder(home: str) -> Iterator[Path]:
    """A temporary folder in which to stage a change. A locked file in it marks its process as alive."""
    with locked(home):
        folder = Path(tempfile.mkdtemp(prefix=_STAGING_PREFIX, dir=records_folder(home)))
        owner = os.open(folder / _OWNER_FILE, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(owner)


def _recover(home: str) -> None:
    """Complete or roll back the changes of killed processes. Requires the lock."""
    with os.scandir(records_folder(home)) as entries:
        leftovers = [entry.name for entry in entries if entry.name.startswith(_STAGING_PREFIX)]
    for name in leftovers:
        folder = Path(records_folder(home), name)
        if folder.is_symlink() or not folder.is_dir() or _is_owned(folder):
            continue
        _restore_old(home, folder / _OLD_FOLDER)
        shutil.rmtree(folder, ignore_errors=True)
    for name in pending_names(home):
        if read_pending_record(home, name) is not None:
            _rename(pending_record_file(home, name), record_file(home, name))
        else:
            Path(pending_record_file(home, name)).unlink(missing_ok=True)


def _is_owned(folder: Path) -> bool:
    """Whether the process that created this staging folder is alive."""
    try:
        descriptor = os.open(folder / _OWNER_FILE, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _restore_old(home: str, old: Path) -> None:
    """Move an old library back if its process died before it installed the new one."""
    with suppress(FileNotFoundError):
        for folder in old.iterdir():
            target = Path(library_folder(home, folder.name))
            if not os.path.lexists(target):
                _rename(folder, target)


def install_new(home: str, name: str, folder: Path, record: InstallRecord) -> None:
    """Install a staged folder as a new library. Requires the lock. Raises `LibraryExists`."""
    target = library_folder(home, name)
    if os.path.lexists(target):
        raise LibraryExists(name)
    _write_pending_record(home, name, record, folder)
    try:
        _rename(folder, target)
    except OSError as error:
        Path(pending_record_file(home, name)).unlink()
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise LibraryExists(name) from None
        raise
    _rename(pending_record_file(home, name), record_file(home, name))


def replace(home: str, name: str, folder: Path, record: InstallRecord) -> Path:
    """Replace a library with a staged folder; return where the old one is now. Requires the lock."""
    target = Path(library_folder(home, name))
    _write_pending_record(home, name, record, folder)
    old = folder
    if _swap(folder, target):
        _sync(Path(libraries_folder(home)))
    else:
        # For an instant there is no library of this name. After a crash here, `_recover` moves it back.
        (folder.parent / _OLD_FOLDER).mkdir()
        old = folder.parent / _OLD_FOLDER / name
        _rename(target, old)
        _rename(folder, target)
    _rename(pending_record_file(home, name), record_file(home, name))
    return old


def write_record(home: str, name: str, record: InstallRecord) -> None:
    """Write a record without changing its library. Requires the lock."""
    _write_pending_record(home, name, record, None)
    _rename(pending_record_file(home, name), record_file(home, name))


def move_out(home: str, name: str, folder: Path, destination: Path) -> None:
    """Move a library to another path and delete its record. Requires the lock."""
    _rename(folder, destination)
    _sync(destination.parent)
    delete_record(home, name)


def delete_record(home: str, name: str) -> None:
    """Delete a record if it exists. Requires the lock."""
    Path(record_file(home, name)).unlink(missing_ok=True)
    _sync(Path(records_folder(home)))


def sync_files(folder: Path, files: Iterable[str]) -> None:
    """Flush these files and all folders of a staged folder to disk."""
    for file in files:
        _sync(folder / file)
    for parent, _, _ in os.walk(folder, topdown=False):
        _sync(Path(parent))


def create_backup_folder(home: str, name: str) -> Path:
    """Create an empty, timestamped folder for backups of a library's files."""
    folder = Path(records_folder(home), "kept", name)
    folder.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    number = 1
    while True:
        backup = folder / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            backup.mkdir()
        except FileExistsError:
            number += 1
        else:
            return backup


def _write_pending_record(home: str, name: str, record: InstallRecord, folder: Path | None) -> None:
    """Write a new record next to the current one. Requires the lock."""
    inode = 0 if folder is None else folder.stat().st_ino
    fields = {field: getattr(record, field) for field in InstallRecord.__struct_fields__}
    path = Path(pending_record_file(home, name))
    path.unlink(missing_ok=True)
    with path.open("xb") as file:
        file.write(msgspec.json.encode(PendingRecord(**fields, inode=inode)))
        file.flush()
        os.fsync(file.fileno())
    _sync(path.parent)


def _rename(old: str | Path, new: str | Path) -> None:
    """Rename and flush the parent folder to disk."""
    Path(old).rename(new)
    _sync(Path(new).parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _swap(first_path: Path, second_path: Path) -> bool:
    """Swap two folders atomically; return False if the system does not support it."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(first_path), os.fsencode(second_path)
    try:
        if sys.platform == "darwin":
            status = libc.renamex_np(first, second, ctypes.c_uint(_RENAME_EXCHANGE))
        else:
            status = libc.renameat2(_AT_FDCWD, first, _AT_FDCWD, second, ctypes.c_uint(_RENAME_EXCHANGE))
    except AttributeError:
        return False
    if status == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP):
        return False
    raise OSError(code, os.strerror(code), str(second_path))
