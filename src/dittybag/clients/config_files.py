"""Configuration files on the disk: read with a limit, replaced at once or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from dittybag.clients.client_errors import Refused, Unreachable

MOST_BYTES: Final = 16 * 1024 * 1024
_MARK: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"


class Contents(Struct, frozen=True):
    """What a file has in it; nothing at all if there is none."""

    data: bytes | None
    text: str = ""
    #: It begins with a byte order mark.
    is_marked: bool = False

    def encoded(self, text: str) -> bytes:
        """Another text as this file would have it."""
        return ((_MARK if self.is_marked else "") + text).encode()


class Changed(Exception):
    """Somebody has changed the file since it was read."""


def read(path: Path) -> Contents:
    """What is in a file. Raises `Refused` and `Unreachable`."""
    data = _data(path)
    if data is None:
        return Contents(None)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Refused(str(path), "it is not text in UTF-8") from None
    return Contents(data, text.removeprefix(_MARK), text.startswith(_MARK))


def replace(path: Path, data: bytes, before: Contents, *, is_private: bool) -> list[str]:
    """Write a file that still is what it was before; the folders made for it.

    A new file is for its owner alone if it is private. Raises `Changed`, `Refused` and `Unreachable`.
    """
    with reaching(path):
        folders = _made(path.parent)
        beside = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
        mode = 0o666 if before.data is None and not is_private else 0o600
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if before.data is not None:
                    _keep_owner(path, descriptor)
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            _check(path, before)
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            _unmade(folders)
            raise
        sync_folder(path.parent)
        return folders


def remove(path: Path, before: Contents, folders: list[str]) -> None:
    """Delete a file that still is what it was before, and these folders if they are empty then.

    Raises `Changed` and `Unreachable`.
    """
    with reaching(path):
        _check(path, before)
        path.unlink()
        sync_folder(path.parent)
        _unmade(folders)


def write_private(path: Path, data: bytes) -> None:
    """Write a file of Dittybag's own, for its owner alone. Raises `Unreachable`."""
    with reaching(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """See to it that a folder's names are on the disk, where that can be asked for."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _data(path: Path) -> bytes | None:
    with reaching(path):
        try:
            # A pipe must not make this wait.
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise Refused(str(path), "it is not a file")
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise Refused(str(path), f"it is larger than {MOST_BYTES // 1024 // 1024} MiB")
    return data


def _check(path: Path, before: Contents) -> None:
    if _data(path) != before.data:
        raise Changed


def _keep_owner(path: Path, descriptor: int) -> None:
    """Make a new file belong to whom the old one belongs to, and be as open as that one."""
    old, new = path.stat(), os.fstat(descriptor)
    if not old.st_mode & 0o222:
        raise Refused(str(path), "it is write-protected")
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _made(folder: Path) -> list[str]:
    """Make a folder; all that were made, the innermost first."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    made: list[str] = []
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        made.insert(0, str(one))
    return made


def _unmade(folders: list[str]) -> None:
    with suppress(OSError):
        for folder in folders:
            Path(folder).rmdir()


@contextmanager
def reaching(path: Path) -> Iterator[None]:
    """Say in our own words that the system did not let us. Raises `Unreachable`."""
    try:
        yield
    except OSError as error:
        raise Unreachable(str(path), f"it cannot be reached ({error.strerror or error})") from error
