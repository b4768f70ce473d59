"""File operations that are atomic, bounded or follow no links. Imports nothing else of Dittybag."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import BinaryIO, Final, Literal, TypeAlias

from msgspec import Struct

NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
#: Non-blocking: opening a named pipe would otherwise wait for a writer.
_FILE: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
#: Fails if the name is taken, even by a link that leads nowhere.
NEW_FILE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW

#: Error codes of file systems without hard links.
NO_HARD_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
#: Error codes of folders that cannot be flushed.
_NO_FOLDER_SYNC: Final = (errno.EACCES, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)

_CHUNK_BYTES: Final = 256 * 1024
_LOCK_POLL_SECONDS: Final = 0.02

AnyPath: TypeAlias = str | os.PathLike[str]
#: `folder`: a folder that was not entered.
FileKind: TypeAlias = Literal["file", "link", "special", "folder"]


_KINDS: Final[dict[int, FileKind]] = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "folder"}


class NotRegularFile(OSError):
    """The path is a folder, a pipe, a device or a socket."""

    def __init__(self, path: AnyPath) -> None:
        super().__init__(errno.EINVAL, "not a regular file", os.fspath(path))


class FileTooLarge(OSError):
    """The file is larger than the caller allows."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(errno.EFBIG, f"larger than {max_bytes} bytes")


class LockTimeout(Exception):
    """Another process held the lock for too long."""


class TooManyFiles(Exception):
    """A tree has more entries than the limit of a walk."""


def describe(error: OSError) -> str:
    """Why an operation failed, for the end of a sentence."""
    return (error.strerror or str(error) or "unknown reason").lower()


def display_path(path: str) -> str:
    """A path for messages, with `~` for the home directory, and escapes for unprintable characters."""
    own = os.path.expanduser("~")
    if own != os.sep and os.path.join(path, "").startswith(os.path.join(own, "")):
        path = f"~{path[len(own) :]}"
    return path if path.isprintable() else ascii(path)[1:-1]


# Writing


def make_folders(folder: AnyPath, mode: int = 0o700) -> list[str]:
    """Create a missing folder and the folders that contain it; return the created ones, innermost first.

    `os.makedirs` would give all but the last one the default permissions.
    """
    folder = os.fspath(folder)
    if not folder or os.path.isdir(folder):
        return []
    created = make_folders(os.path.dirname(folder), mode)
    with suppress(FileExistsError):
        os.mkdir(folder, mode)
        created.insert(0, folder)
    return created


@contextmanager
def atomic_write(
    path: AnyPath, *, mode: int = 0o600, overwrite: bool = True, durable: bool = True
) -> Iterator[BinaryIO]:
    """Open a temporary file that gets the name `path` once it is complete and flushed to disk.

    An error in the block leaves no trace. Without `overwrite`, raises `FileExistsError` if the name is taken.
    `durable`: flush to disk, so that the file survives a crash of the system.
    """
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    folder = os.path.dirname(os.path.abspath(path))
    temporary = os.path.join(folder, f".dittybag-{os.urandom(6).hex()}.tmp")
    descriptor = os.open(temporary, NEW_FILE, mode)
    try:
        with os.fdopen(descriptor, "wb", buffering=_CHUNK_BYTES) as file:
            yield file
            if durable:
                flush(file)
        if overwrite:
            os.replace(temporary, path)
        else:
            link(temporary, path)
    finally:
        # After a replacement, it no longer has this name.
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    if durable:
        sync_folder(folder)


def link(file: AnyPath, name: AnyPath) -> None:
    """Give a file another name; without hard links, rename it. Raises `FileExistsError` if it is taken."""
    try:
        os.link(file, name)
    except OSError as error:
        if error.errno not in NO_HARD_LINKS:
            raise
        # Reserve the name with an empty file, then replace that.
        os.close(os.open(name, NEW_FILE, 0o600))
        os.replace(file, name)


def rename(old: AnyPath, new: AnyPath) -> None:
    """Rename a file or a folder, and flush the new name to disk."""
    os.rename(old, new)
    sync_folder(os.path.dirname(os.path.abspath(new)))


def flush(file: BinaryIO) -> None:
    """Flush an open file to disk."""
    file.flush()
    _flush_to_medium(file.fileno())


def sync(path: AnyPath, *, is_last: bool = True) -> None:
    """Flush a file or a folder to disk.

    `is_last`: False if another file of the same disk is flushed next; the last one completes them all.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        (_flush_to_medium if is_last else os.fsync)(descriptor)
    finally:
        os.close(descriptor)


def _flush_to_medium(descriptor: int) -> None:
    """Flush an open file, and everything that the disk still has in its cache."""
    import fcntl

    # On macOS, `fsync` leaves data in the cache of the disk, which a power failure empties.
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        try:
            fcntl.fcntl(descriptor, full_sync)
        except OSError:
            # Not every file system supports it.
            pass
        else:
            return
    os.fsync(descriptor)


def sync_folder(folder: AnyPath, *, is_last: bool = True) -> None:
    """Flush the names in a folder to disk, where the system supports it. For `is_last`, see `sync`."""
    try:
        sync(folder, is_last=is_last)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def sync_tree(folder: AnyPath) -> None:
    """Flush the names in a folder and in all folders below it to disk, the innermost first."""
    root = os.fspath(folder)
    for inner, _, _ in os.walk(root, topdown=False):
        sync_folder(inner, is_last=inner == root)


def timestamped_names(start: str, end: str = "") -> Iterator[str]:
    """Names with the current time in them, the second and later ones with a number."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    yield f"{start}{stamp}{end}"
    for number in count(2):
        yield f"{start}{stamp}-{number}{end}"


# Locks


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed; return whether no other process has locked it."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(path: AnyPath, seconds: float) -> Iterator[None]:
    """Hold the lock on a file, which is created if it is missing. Raises `LockTimeout` after `seconds`."""
    end = time.monotonic() + seconds
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o600)
    try:
        while not try_lock(descriptor):
            if time.monotonic() >= end:
                raise LockTimeout(path)
            time.sleep(_LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


# Reading


def open_folder(name: AnyPath, parent: int | None = None) -> int:
    """Open a folder. Below `parent`, an open folder, its name must not be a link."""
    return os.open(name, _FOLDER if parent is None else _FOLDER | NO_FOLLOW, dir_fd=parent)


def open_below(root: AnyPath | int, path: str, *, make: bool = False) -> int:
    """Open a folder below another one, given by path or open. No part of the path below it may be a link.

    `make`: create missing folders.
    """
    folder = os.dup(root) if isinstance(root, int) else open_folder(root)
    try:
        for part in path.split("/") if path else ():
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            inner = open_folder(part, folder)
            os.close(folder)
            folder = inner
    except BaseException:
        os.close(folder)
        raise
    return folder


def open_regular(name: AnyPath, parent: int | None = None, *, follow_links: bool = False) -> int:
    """Open a regular file for reading. Raises `NotRegularFile`, and `OSError` for a link."""
    descriptor = os.open(name, _FILE if follow_links else _FILE | NO_FOLLOW, dir_fd=parent)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularFile(name)
    return descriptor


def read(path: AnyPath, max_bytes: int, *, follow_links: bool = False) -> bytes:
    """The content of a regular file. Raises `NotRegularFile`, `FileTooLarge` and `OSError`."""
    descriptor = open_regular(path, follow_links=follow_links)
    try:
        return read_open(descriptor, os.fstat(descriptor).st_size, max_bytes)
    finally:
        os.close(descriptor)


def read_open(descriptor: int, size: int, max_bytes: int) -> bytes:
    """The content of an open file, whose size was `size` when it was opened. Raises `FileTooLarge`."""
    chunks = []
    # The file may grow while it is read, so the size is also checked while reading.
    room = max_bytes + 1 if size <= max_bytes else 0
    while room > 0 and (chunk := os.read(descriptor, min(room, _CHUNK_BYTES))):
        chunks.append(chunk)
        room -= len(chunk)
    if room <= 0:
        raise FileTooLarge(max_bytes)
    return b"".join(chunks)


# Walking


class WalkedFile(Struct, frozen=True):
    """An entry of a tree. `folder` is the descriptor of its parent, open until the walk continues."""

    path: str
    name: str
    kind: FileKind
    #: 1 for an entry of the root.
    depth: int
    folder: int
    status: os.stat_result

    def read(self, max_bytes: int) -> bytes:
        """The content. Raises `FileTooLarge` and `OSError`, also if it is no longer a regular file."""
        descriptor = open_regular(self.name, self.folder)
        try:
            return read_open(descriptor, self.status.st_size, max_bytes)
        finally:
            os.close(descriptor)


def _raise(path: str, error: OSError) -> None:
    raise error


def walk(
    root: AnyPath | int,
    *,
    enter: Callable[[WalkedFile], bool] = lambda folder: True,
    limit: int | None = None,
    on_error: Callable[[str, OSError], None] = _raise,
) -> Iterator[WalkedFile]:
    """Yield everything below a folder, given by path or open, except the folders that are entered.

    Entries are sorted by name. Each folder is opened relative to its parent, so a link that is created during
    the walk is not followed. `enter` decides which folders are entered. `on_error` gets the path of what
    cannot be read. Raises `OSError` if the root cannot be read, and `TooManyFiles` beyond `limit` entries.
    """
    walk_folder = _Walk(enter, limit, on_error).entries
    if isinstance(root, int):
        yield from walk_folder(root, "", 1)
        return
    descriptor = open_folder(root)
    try:
        yield from walk_folder(descriptor, "", 1)
    finally:
        os.close(descriptor)


class _Walk:
    """One walk. It counts the entries."""

    def __init__(
        self,
        enter: Callable[[WalkedFile], bool],
        limit: int | None,
        on_error: Callable[[str, OSError], None],
    ) -> None:
        self._enter = enter
        self._limit = limit
        self._on_error = on_error
        self._count = 0

    def entries(self, folder: int, prefix: str, depth: int) -> Iterator[WalkedFile]:
        for name in self._names(folder):
            path = prefix + name
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                kind = _KINDS.get(stat.S_IFMT(status.st_mode), "special")
                entry = WalkedFile(path, name, kind, depth, folder, status)
                is_entered = kind == "folder" and self._enter(entry)
                subfolder = open_folder(name, folder) if is_entered else None
            except (FileNotFoundError, NotADirectoryError):
                # It was removed or replaced since it was listed.
                continue
            except OSError as error:
                self._on_error(path, error)
                continue
            if subfolder is None:
                yield entry
                continue
            try:
                yield from self.entries(subfolder, f"{path}/", depth + 1)
            except OSError as error:
                self._on_error(path, error)
            finally:
                os.close(subfolder)

    def _names(self, folder: int) -> list[str]:
        names = []
        with os.scandir(folder) as entries:
            for entry in entries:
                self._count += 1
                if self._limit is not None and self._count > self._limit:
                    raise TooManyFiles
                names.append(entry.name)
        return sorted(names)
