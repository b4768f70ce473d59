"""Records of edits to configuration files, and backups of the files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from dittybag import files
from dittybag.clients.client_errors import ClientFileBusy
from dittybag.clients.config_files import wrap_os_errors, write_private
from dittybag.clients.reversible_edits import AppliedEdit

_LOCK_TIMEOUT_SECONDS: Final = 10.0


class EditRecord(Struct, frozen=True, kw_only=True):
    """How an entry was written to a file, so that removing it restores the file exactly."""

    file: str
    name: str
    #: The edits, with positions relative to the start of the entry.
    applied: tuple[AppliedEdit, ...] = msgspec.field(default=(), name="splices")
    #: The source text of the entry that had this name before, or `None`.
    previous: str | None = None
    #: What was created for the entry: the objects around it (from the innermost outwards), file and folders.
    created: int = 0
    with_file: bool = False
    with_folders: tuple[str, ...] = ()


class EditRecords:
    """The folder with the records and backups."""

    def __init__(self, home: str) -> None:
        self.folder = Path(home, "connect")

    @contextmanager
    def lock(self, file: Path) -> Iterator[None]:
        """Keep other Dittybag processes from editing configuration files. Raises `ClientFileBusy`."""
        try:
            with wrap_os_errors(self.folder):
                files.make_folders(self.folder)
                with files.locked(self.folder / "lock", _LOCK_TIMEOUT_SECONDS):
                    yield
        except files.LockTimeout:
            raise ClientFileBusy(str(file), "another dittybag connect is running") from None

    def read(self, file: Path, name: str) -> tuple[EditRecord, ...]:
        """The records of an entry, newest first.

        There are two if a process was interrupted between its two writes of the second record.
        """
        # Without a record the entry can still be removed, but the file may not match byte for byte.
        records = _read_records(self._record_path(file, name))
        return tuple(record for record in records if (record.file, record.name) == (str(file), name))

    def created_paths(self, file: Path) -> set[Path]:
        """The file and its folders, as far as they were created for an entry."""
        paths = self.folder.glob(f"*-{_digest(file)}.json")
        records = [record for path in paths for record in _read_records(path) if record.file == str(file)]
        folders = {Path(folder) for record in records for folder in record.with_folders}
        return folders | {file for record in records if record.with_file}

    def save(self, records: Sequence[EditRecord]) -> None:
        """Write the records of an entry."""
        path = self._record_path(Path(records[0].file), records[0].name)
        write_private(path, msgspec.json.encode(records))

    def delete(self, file: Path, name: str) -> None:
        with wrap_os_errors(self.folder):
            self._record_path(file, name).unlink(missing_ok=True)

    def back_up(self, file: Path, data: bytes, label: str) -> Path:
        """Write a backup of a file. Returns its path."""
        names = files.timestamped_names(f"{self.folder}/backups/", f"-{label}-{file.name.lstrip('.')}")
        copy = next(path for path in map(Path, names) if not path.exists())
        write_private(copy, data)
        return copy

    def _record_path(self, file: Path, name: str) -> Path:
        return self.folder / f"{name}-{_digest(file)}.json"


def _digest(file: Path) -> str:
    return sha256(os.fsencode(file)).hexdigest()[:24]


def _read_records(path: Path) -> tuple[EditRecord, ...]:
    """The records in a file; none if it does not exist or is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[EditRecord, ...])
    except (OSError, msgspec.MsgspecError):
        return ()
