"""Configuration files on disk: size-limited reads and atomic replacement."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from dittybag import files
from dittybag.clients.client_errors import ClientFileRefused, ClientFileUnreachable

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
_BOM: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"


class ConfigFileContent(Struct, frozen=True):
    """The content of a configuration file."""

    #: `None` if the file does not exist.
    data: bytes | None
    #: The decoded text, without a byte order mark.
    text: str = ""
    has_bom: bool = False

    def encode(self, text: str) -> bytes:
        """Encode a text like this file: with a byte order mark if the file has one."""
        return ((_BOM if self.has_bom else "") + text).encode()


class ConfigFileChanged(Exception):
    """Another program changed the file after it was read."""


def read(path: Path) -> ConfigFileContent:
    """Read a file. Raises `ClientFileRefused` and `ClientFileUnreachable`."""
    data = read_bytes(path)
    if data is None:
        return ConfigFileContent(None)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ClientFileRefused(str(path), "not UTF-8 text") from None
    return ConfigFileContent(data, text.removeprefix(_BOM), text.startswith(_BOM))


def replace(path: Path, data: bytes, before: ConfigFileContent, *, is_private: bool) -> list[str]:
    """Replace a file if its content is still `before`. Returns the folders that were created for it.

    Only the owner can read a new file that is private. Raises `ConfigFileChanged`, `ClientFileRefused` and
    `ClientFileUnreachable`.
    """
    with wrap_os_errors(path):
        folders = files.make_folders(path.parent, 0o777)
        try:
            mode = 0o666 if before.data is None and not is_private else 0o600
            with files.atomic_write(path, mode=mode) as file:
                if before.data is not None:
                    _copy_owner_and_mode(path, file.fileno())
                file.write(data)
                files.flush(file)
                _check_unchanged(path, before)
        except BaseException:
            remove_folders(folders)
            raise
        return folders


def remove(path: Path, before: ConfigFileContent, folders: list[str]) -> None:
    """Delete a file if its content is still `before`, and then `folders` if they are empty.

    Raises `ConfigFileChanged` and `ClientFileUnreachable`.
    """
    with wrap_os_errors(path):
        _check_unchanged(path, before)
        path.unlink()
        files.sync_folder(path.parent)
        remove_folders(folders)


def write_private(path: Path, data: bytes) -> None:
    """Write one of Dittybag's own files, readable by its owner only. Raises `ClientFileUnreachable`."""
    with wrap_os_errors(path):
        files.make_folders(path.parent)
        with files.atomic_write(path) as file:
            file.write(data)


def read_bytes(path: Path) -> bytes | None:
    """The content of a file; `None` if it does not exist. Raises what `read` raises."""
    with wrap_os_errors(path):
        try:
            return files.read(path, MAX_FILE_BYTES, follow_links=True)
        except FileNotFoundError:
            return None
        except files.NotRegularFile:
            raise ClientFileRefused(str(path), "not a regular file") from None
        except files.FileTooLarge:
            raise ClientFileRefused(str(path), f"larger than {MAX_FILE_BYTES // 1024 // 1024} MiB") from None


def _check_unchanged(path: Path, before: ConfigFileContent) -> None:
    if read_bytes(path) != before.data:
        raise ConfigFileChanged


def _copy_owner_and_mode(path: Path, descriptor: int) -> None:
    """Give a new file the owner, group and mode of the file it replaces."""
    old, new = path.stat(), os.fstat(descriptor)
    if not old.st_mode & 0o222:
        raise ClientFileRefused(str(path), "write-protected")
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def remove_folders(folders: list[str]) -> None:
    """Delete folders, innermost first, until one is not empty."""
    with suppress(OSError):
        for folder in folders:
            Path(folder).rmdir()


@contextmanager
def wrap_os_errors(path: Path) -> Iterator[None]:
    """Raise `ClientFileUnreachable` in place of an `OSError`."""
    try:
        yield
    except OSError as error:
        raise ClientFileUnreachable(str(path), f"cannot be accessed ({error.strerror or error})") from error
