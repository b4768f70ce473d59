"""What Dittybag has done to configuration files: a record of each edit, and copies from before it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from dittybag.clients.client_errors import Busy
from dittybag.clients.config_files import reaching, write_private
from dittybag.clients.reversible_edits import Splice

_PATIENCE_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05


class Edit(Struct, frozen=True, kw_only=True):
    """How an entry got into a file, so that it gets out of it again without a trace."""

    file: str
    name: str
    #: What was put in, counted from where the entry begins.
    splices: tuple[Splice, ...] = ()
    #: How an entry of this name was written before, if there was one.
    previous: str | None = None
    #: What had to be made for it.
    with_container: bool = False
    with_root: bool = False
    with_file: bool = False
    with_folders: tuple[str, ...] = ()


class Records:
    """The folder in which edits and copies are kept."""

    def __init__(self, home: str) -> None:
        self.folder = Path(home, "connect")

    @contextmanager
    def locked(self, file: Path) -> Iterator[None]:
        """No other process of Dittybag's edits configuration files meanwhile. Raises `Busy`."""
        import fcntl

        end = time.monotonic() + _PATIENCE_SECONDS
        with reaching(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (self.folder / "lock").open("ab")
        with lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= end:
                        raise Busy(str(file), "another dittybag connect is at work") from None
                    time.sleep(_POLL_SECONDS)
            yield

    def edits(self, file: Path, name: str) -> tuple[Edit, ...]:
        """What was done to an entry of a file, the latest first.

        There are two only if a process was stopped before it could say that the second one is done.
        """
        try:
            data = self._record(file, name).read_bytes()
            edits = msgspec.json.decode(data, type=tuple[Edit, ...])
        except (OSError, msgspec.MsgspecError):
            # Without a record, an entry is still taken out; only not to the byte.
            return ()
        return tuple(edit for edit in edits if (edit.file, edit.name) == (str(file), name))

    def keep(self, edits: Sequence[Edit]) -> None:
        """Write down what is being done to an entry."""
        write_private(self._record(Path(edits[0].file), edits[0].name), msgspec.json.encode(edits))

    def forget(self, file: Path, name: str) -> None:
        with reaching(self.folder):
            self._record(file, name).unlink(missing_ok=True)

    def back_up(self, file: Path, data: bytes, label: str) -> Path:
        """Put a copy of a file aside."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        number = 1
        while True:
            again = "" if number == 1 else f"-{number}"
            copy = self.folder / "backups" / f"{stamp}{again}-{label}-{file.name.lstrip('.')}"
            if not copy.exists():
                write_private(copy, data)
                return copy
            number += 1

    def _record(self, file: Path, name: str) -> Path:
        place = sha256(os.fsencode(file)).hexdigest()[:24]
        return self.folder / f"{name}-{place}.json"
