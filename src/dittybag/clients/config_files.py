"""Configuration files on disk: size-limited reads, atomic replacement, and copies."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from dittybag import files
from dittybag.clients.client_errors import ClientFileBusy, ClientFileRefused, ClientFileUnreachable

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
_LOCK_TIMEOUT_SECONDS: Final = 10.0
BOM: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"


class ConfigFileContent(Struct, frozen=True):
    """The content of a configuration file."""

    #: `None` if the file does not exist.
    data: bytes | None
    #: The decoded text, without a byte order mark.
    text: str = ""
    has_bom: bool = False

    def encode(self, text: str) -> bytes:
        """Encode a text like this file: with a byte order mark if the file has one."""
        return ((BOM if self.has_bom else "") + text).encode()


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
    return ConfigFileContent(data, text.removeprefix(BOM), text.startswith(BOM))


def replace(path: Path, data: bytes, before: ConfigFileContent, *, is_private: bool) -> None:
    """Replace a file if its content is still `before`.

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
            _remove_folders(map(Path, folders))
            raise


def remove(path: Path, before: ConfigFileContent, folders: Sequence[Path]) -> None:
    """Delete a file if its content is still `before`, and then `folders` if they are empty.

    Raises `ConfigFileChanged` and `ClientFileUnreachable`.
    """
    with wrap_os_errors(path):
        _check_unchanged(path, before)
        path.unlink()
        files.sync_folder(path.parent)
        _remove_folders(folders)


class FileCopy:
    """The copy of a configuration file from before Dittybag's first entry, readable by its owner only.

    Instead of a file that did not exist, it has the folders that did not exist. Every method raises
    `ClientFileUnreachable`.
    """

    def __init__(self, home: str, file: Path) -> None:
        """`home`: Dittybag's data folder."""
        self._file = file
        self._folder = Path(home, "connect")
        self.path = self._folder / f"{sha256(os.fsencode(file)).hexdigest()[:12]}-{file.name.lstrip('.')}"
        self._missing = self.path.with_name(f"{self.path.name}.missing")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other Dittybag processes from editing configuration files. Raises `ClientFileBusy`."""
        try:
            with wrap_os_errors(self._folder):
                files.make_folders(self._folder)
                with files.locked(self._folder / "lock", _LOCK_TIMEOUT_SECONDS):
                    yield
        except files.LockTimeout:
            raise ClientFileBusy(str(self._file), "another dittybag connect is running") from None

    def save(self, data: bytes | None) -> None:
        """Copy what the file contains now; `None` if it does not exist."""
        self.delete()
        folders = [str(folder) for folder in self._file.parents if not folder.exists()]
        path = self._missing if data is None else self.path
        with wrap_os_errors(path), files.atomic_write(path) as file:
            file.write(json.dumps(folders).encode() if data is None else data)

    def read(self) -> ConfigFileContent | None:
        """What the file contained before; `None` if there is no copy."""
        if read_bytes(self._missing) is not None:
            return ConfigFileContent(None)
        before = read(self.path)
        return None if before.data is None else before

    def created(self) -> list[Path]:
        """The file and its folders that did not exist before, innermost first; none if the file did."""
        data = read_bytes(self._missing)
        return [] if data is None else [self._file, *map(Path, json.loads(data))]

    def delete(self) -> None:
        for path in (self.path, self._missing):
            with wrap_os_errors(path):
                path.unlink(missing_ok=True)


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


def _remove_folders(folders: Iterable[Path]) -> None:
    """Delete folders, innermost first, until one is not empty."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


@contextmanager
def wrap_os_errors(path: Path) -> Iterator[None]:
    """Raise `ClientFileUnreachable` in place of an `OSError`."""
    try:
        yield
    except OSError as error:
        raise ClientFileUnreachable(str(path), f"cannot be accessed ({error.strerror or error})") from error
