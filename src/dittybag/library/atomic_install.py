"""Atomic installation: stage a change to the libraries, then apply it in one step.

A change is staged in a separate folder below HOME/libraries/.dittybag, on the same file system and without
a lock. Only the last steps need the lock: write the new record next to the old one, rename the folder into
place (or swap it with the existing one), and rename the record. Readers, and the recovery after a crash,
compare inode numbers to tell which of the two records is current, so a library is never half updated.

Functions whose docstring says "Requires the lock" must be called inside `locked`.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from dittybag import files
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

#: The lock is only held for a few renames, so waiting longer than this means that something is stuck.
_LOCK_TIMEOUT_SECONDS: Final = 20

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
    folder = records_folder(home)
    files.make_folders(folder)
    try:
        with files.locked(f"{folder}/lock", seconds):
            _recover(home)
            yield
    except files.LockTimeout:
        raise LibrariesBusy from None


@contextmanager
def staging_folder(home: str) -> Iterator[Path]:
    """A temporary folder in which to stage a change. A locked file in it marks its process as alive."""
    with locked(home):
        folder = Path(tempfile.mkdtemp(prefix=_STAGING_PREFIX, dir=records_folder(home)))
        owner = os.open(folder / _OWNER_FILE, files.NEW_FILE, 0o600)
        files.try_lock(owner)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(owner)


def _recover(home: str) -> None:
    """Complete or roll back the changes of killed processes. Requires the lock."""
    for name in os.listdir(records_folder(home)):
        if not name.startswith(_STAGING_PREFIX):
            continue
        folder = Path(records_folder(home), name)
        if folder.is_symlink() or not folder.is_dir() or _is_owned(folder):
            continue
        _restore_old(home, folder / _OLD_FOLDER)
        shutil.rmtree(folder, ignore_errors=True)
    for name in pending_names(home):
        if read_pending_record(home, name) is not None:
            files.rename(pending_record_file(home, name), record_file(home, name))
        else:
            Path(pending_record_file(home, name)).unlink(missing_ok=True)


def _is_owned(folder: Path) -> bool:
    """Whether the process that created this staging folder is alive."""
    try:
        descriptor = os.open(folder / _OWNER_FILE, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return not files.try_lock(descriptor)
    finally:
        os.close(descriptor)


def _restore_old(home: str, old: Path) -> None:
    """Move an old library back if its process died before it installed the new one."""
    with suppress(FileNotFoundError):
        for folder in old.iterdir():
            target = Path(library_folder(home, folder.name))
            if not os.path.lexists(target):
                files.rename(folder, target)


def install_new(home: str, name: str, folder: Path, record: InstallRecord) -> None:
    """Install a staged folder as a new library. Requires the lock. Raises `LibraryExists`."""
    target = library_folder(home, name)
    if os.path.lexists(target):
        raise LibraryExists(name)
    _write_pending_record(home, name, record, folder)
    try:
        files.rename(folder, target)
    except OSError as error:
        Path(pending_record_file(home, name)).unlink()
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise LibraryExists(name) from None
        raise
    files.rename(pending_record_file(home, name), record_file(home, name))


def replace(home: str, name: str, folder: Path, record: InstallRecord) -> Path:
    """Replace a library with a staged folder; return where the old one is now. Requires the lock."""
    target = Path(library_folder(home, name))
    _write_pending_record(home, name, record, folder)
    old = folder
    if _swap(folder, target):
        files.sync_folder(libraries_folder(home))
    else:
        # For an instant there is no library of this name. After a crash here, `_recover` moves it back.
        (folder.parent / _OLD_FOLDER).mkdir()
        old = folder.parent / _OLD_FOLDER / name
        files.rename(target, old)
        files.rename(folder, target)
    files.rename(pending_record_file(home, name), record_file(home, name))
    return old


def write_record(home: str, name: str, record: InstallRecord) -> None:
    """Write a record without changing its library. Requires the lock."""
    _write_pending_record(home, name, record, None)
    files.rename(pending_record_file(home, name), record_file(home, name))


def move_out(home: str, name: str, folder: Path, destination: Path) -> None:
    """Move a library to another path and delete its record. Requires the lock."""
    files.rename(folder, destination)
    delete_record(home, name)


def delete_record(home: str, name: str) -> None:
    """Delete a record if it exists. Requires the lock."""
    Path(record_file(home, name)).unlink(missing_ok=True)
    files.sync_folder(records_folder(home))


def sync_files(folder: Path, paths: Iterable[str]) -> None:
    """Flush these files and all folders of a staged folder to disk."""
    for path in paths:
        files.sync(str(folder / path), is_last=False)
    files.sync_tree(folder)


def create_backup_folder(home: str, name: str) -> Path:
    """Create an empty, timestamped folder for backups of a library's files."""
    folder = Path(records_folder(home), "kept", name)
    folder.mkdir(parents=True, exist_ok=True)
    for backup in map(Path, files.timestamped_names(f"{folder}/")):
        with suppress(FileExistsError):
            backup.mkdir()
            break
    return backup


def _write_pending_record(home: str, name: str, record: InstallRecord, folder: Path | None) -> None:
    """Write a new record next to the current one. Requires the lock."""
    inode = 0 if folder is None else folder.stat().st_ino
    fields = {field: getattr(record, field) for field in InstallRecord.__struct_fields__}
    path = Path(pending_record_file(home, name))
    path.unlink(missing_ok=True)
    with path.open("xb") as file:
        file.write(msgspec.json.encode(PendingRecord(**fields, inode=inode)))
        files.flush(file)
    files.sync_folder(path.parent)


def _load_libc() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _swap(first_path: Path, second_path: Path) -> bool:
    """Swap two folders atomically; return False if the system does not support it."""
    import ctypes

    libc = _load_libc()
    first, second = os.fsencode(first_path), os.fsencode(second_path)
    try:
        if str(sys.platform) == "darwin":
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
