"""Run files: which HTTP servers run on a data folder, so that `dittybag open` finds the one of a workspace.

A server keeps its run file locked, so a file that is not locked is left from a server that was killed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from dittybag import files
from dittybag.assembly.store_factory import is_file
from dittybag.config import Settings

_FOLDER: Final = "servers"
_ENDING: Final = ".json"
#: A larger file is not ours.
_MAX_BYTES: Final = 10_000
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # not to listen on


class RunFile(Struct, frozen=True):
    """A running server."""

    pid: int
    host: str
    port: int
    #: See `database_id`.
    database: str
    #: Anybody who knows it owns the data folder, and may sign in.
    secret: str
    #: Whether signing in requires a token.
    needs_token: bool
    #: Whether the server exits by itself.
    is_temporary: bool

    @property
    def origin(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def database_id(database: str) -> str:
    """Return the path of a file; for a server, a hash of its URL, which may contain a password."""
    if is_file(database):
        return os.path.realpath(database)
    return "postgresql:" + sha256(database.encode()).hexdigest()


def log_file(settings: Settings) -> str:
    """Return the path of the log of a server that runs in the background."""
    name = sha256(database_id(settings.database).encode()).hexdigest()[:16]
    return os.path.join(settings.home, _FOLDER, f"{name}.log")  # noqa: PTH118  # pathlib is slow to import


@contextmanager
def registered(settings: Settings, port: int, secret: str) -> Iterator[None]:
    """Keep a run file of this process. If the data folder cannot be written, do without."""
    assert settings.http is not None
    host = settings.http[0]
    record = RunFile(
        os.getpid(),
        _WILDCARDS.get(host, host),
        port,
        database_id(settings.database),
        secret,
        settings.auth != "off",
        settings.idle_seconds is not None,
    )
    folder = os.path.join(settings.home, _FOLDER)  # noqa: PTH118
    path = os.path.join(folder, os.urandom(8).hex() + _ENDING)  # noqa: PTH118
    try:
        files.make_folders(folder)
        # It gets its name after it was locked: one that is not locked is removed.
        descriptor = os.open(f"{path}.new", files.NEW_FILE, 0o600)
    except OSError:
        yield
        return
    try:
        files.try_lock(descriptor)
        os.write(descriptor, msgspec.json.encode(record))
        os.replace(f"{path}.new", path)  # noqa: PTH105
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108
        os.close(descriptor)


def running_servers(settings: Settings) -> list[RunFile]:
    """Return the servers of the database of these settings. Files that servers have left are removed."""
    folder = os.path.join(settings.home, _FOLDER)  # noqa: PTH118
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []
    wanted = database_id(settings.database)
    paths = [os.path.join(folder, name) for name in names if name.endswith(_ENDING)]  # noqa: PTH118
    found = [record for path in paths if (record := _read(path)) is not None]
    return [record for record in found if record.database == wanted]


def _read(path: str) -> RunFile | None:
    try:
        descriptor = files.open_regular(path)
    except OSError:
        return None
    try:
        if files.try_lock(descriptor):
            os.unlink(path)  # noqa: PTH108
            return None
        return msgspec.json.decode(files.read_open(descriptor, 0, _MAX_BYTES), type=RunFile)
    except (OSError, msgspec.MsgspecError):
        return None
    finally:
        os.close(descriptor)
