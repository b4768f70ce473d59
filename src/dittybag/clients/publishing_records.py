"""Records of published files: what was written, and what was created for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from dittybag import files
from dittybag.clients.client_errors import ClientFileBusy
from dittybag.clients.config_files import wrap_os_errors, write_private

#: The folder of the records in the data folder. Servers look for it without importing this module.
FOLDER: Final = "publish"
_LOCK_TIMEOUT_SECONDS: Final = 10.0


class PublishingSource(Struct, frozen=True, kw_only=True):
    """Where a file is published from, and the folder that it belongs to."""

    #: The path of the database, or its URL without the password.
    database: str
    #: The id of the project; its name may change.
    project: int
    #: The folder of the project whose files are written, or that of the user.
    root: str
    is_user: bool = False


class PublishingRecord(Struct, frozen=True, kw_only=True):
    """A file, or a section of one, that was written for a prompt or a skill."""

    target: str
    #: The name of the prompt or skill in the store.
    item: str
    file: str
    #: The name of the section; empty for a whole file.
    section: str = ""
    #: What was written, newest first. Two if a process was interrupted between its two writes of a record.
    versions: tuple[bytes, ...]
    #: What stands before a section so that it begins on a line of its own.
    gap: str = ""
    with_file: bool = False
    #: `None` in records that do not say it: servers leave these files alone.
    source: PublishingSource | None = None
    with_folders: tuple[str, ...] = ()


class PublishingRecords:
    """The folder with the records."""

    def __init__(self, home: str, *, lock_seconds: float = _LOCK_TIMEOUT_SECONDS) -> None:
        """`lock_seconds`: how long to wait for other processes."""
        self.folder = Path(home, FOLDER)
        self._lock_seconds = lock_seconds

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other Dittybag processes from publishing. Raises `ClientFileBusy`."""
        try:
            with wrap_os_errors(self.folder):
                files.make_folders(self.folder)
                with files.locked(self.folder / "lock", self._lock_seconds):
                    yield
        except files.LockTimeout:
            raise ClientFileBusy(str(self.folder), "another dittybag publish is running") from None

    def read(self, file: Path, section: str = "") -> PublishingRecord | None:
        """The record of a file or of a section in it."""
        record = _read(self._path(str(file), section))
        return (
            record if record is not None and (record.file, record.section) == (str(file), section) else None
        )

    def all(self) -> list[PublishingRecord]:
        """All records that can be read."""
        records = (_read(path) for path in sorted(self.folder.glob("*.json")))
        return [record for record in records if record is not None]

    def of_database(self, database: str) -> list[PublishingRecord]:
        """The records of files that were published from a database."""
        return [
            record
            for record in self.all()
            if record.source is not None and record.source.database == database
        ]

    def of_item(self, target: str, item: str, root: Path) -> list[PublishingRecord]:
        """The records of a prompt or skill in a folder."""
        return [
            record
            for record in self.all()
            if (record.target, record.item) == (target, item) and Path(record.file).is_relative_to(root)
        ]

    def save(self, record: PublishingRecord) -> None:
        write_private(self._path(record.file, record.section), msgspec.json.encode(record))

    def delete(self, record: PublishingRecord) -> None:
        with wrap_os_errors(self.folder):
            self._path(record.file, record.section).unlink(missing_ok=True)

    def _path(self, file: str, section: str) -> Path:
        key = os.fsencode(file) + b"\n" + section.encode()
        return self.folder / f"{sha256(key).hexdigest()[:32]}.json"


def _read(path: Path) -> PublishingRecord | None:
    """The record in a file; `None` if it does not exist or is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=PublishingRecord)
    except (OSError, msgspec.MsgspecError):
        return None
