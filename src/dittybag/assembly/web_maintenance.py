"""Backups, checks, exports and imports for the web UI, each in a thread."""

from __future__ import annotations

import os
import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from dittybag.protocol.lazy_asyncio import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag import files
from dittybag.assembly.store_factory import is_file
from dittybag.assembly.stored_backups import BackupFolder, has_automatic_backups, stored_backups
from dittybag.config import Settings
from dittybag.domain.display import format_count, format_size
from dittybag.domain.errors import DittybagError, Invalid, LibraryEdited
from dittybag.domain.health import Finding, StoredBackup
from dittybag.domain.imports import ImportOptions, ImportResult
from dittybag.web.web_context import MaintenanceFailed

T = TypeVar("T")

#: At most this many backups are made by hand.
_MAX_HAND_MADE: Final = 20
#: A larger database is exported on the command line.
_MAX_EXPORTED: Final = 1024 * 1024 * 1024
#: At most this many uploaded files are kept; a new one replaces the oldest.
_MAX_UPLOADS: Final = 4
#: The endings of files that can be uploaded; those of prompts are for the command line.
_ENDINGS: Final = ("json", "csv", "db", "sqlite", "sqlite3")
#: At most this many notes of an import are shown.
_MAX_NOTES: Final = 20


class LocalMaintenance:
    """The data of this server. See `dittybag.web.web_context.Maintenance`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.has_file = is_file(settings.database)
        self._is_busy = False
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._uploads: OrderedDict[str, str] = OrderedDict()

    @property
    def makes_automatic_backups(self) -> bool:
        return has_automatic_backups(self._settings)

    async def _run(self, work: Callable[[], T]) -> T:
        """Run one piece of work at a time in a thread. Raises `MaintenanceFailed`."""
        if self._is_busy:
            raise MaintenanceFailed(
                "A backup, check, export or import is running. Try again when it has finished"
            )
        self._is_busy = True
        try:
            return await asyncio.to_thread(work)
        except Invalid as error:
            raise MaintenanceFailed("; ".join(problem.message for problem in error.problems)) from error
        except DittybagError as error:
            raise MaintenanceFailed(str(error)) from error
        except OSError as error:
            reason = files.describe(error)
            raise MaintenanceFailed(f"A file could not be read or written: {reason}") from error
        finally:
            self._is_busy = False

    # Backups

    async def backups(self) -> Sequence[StoredBackup]:
        return await asyncio.to_thread(self._backups)

    def _backups(self) -> list[StoredBackup]:
        return stored_backups(self._settings) if self.has_file else []

    async def back_up(self) -> StoredBackup:
        return await self._run(self._back_up)

    def _back_up(self) -> StoredBackup:
        from dittybag.assembly.backup_files import FileRefused, back_up

        if not self.has_file:
            raise MaintenanceFailed("Back up PostgreSQL with its own tools, such as pg_dump")
        made = [backup for backup in self._backups() if not backup.is_automatic]
        if len(made) >= _MAX_HAND_MADE:
            raise MaintenanceFailed(
                f"There are {len(made)} backups that were made by hand. Delete some of them first"
            )
        folder = BackupFolder(self._settings)
        files.make_folders(folder.path)
        if problem := folder.lack_of_room(self._settings.database):
            raise MaintenanceFailed(problem)
        file = folder.hand_made()
        try:
            back_up(self._settings, file, force=False, report=lambda step, done=0, total=0, /: None)
        except FileRefused as error:
            raise MaintenanceFailed(f"{error.path}: {'; '.join((error.reason, *error.details))}") from error
        return next(backup for backup in self._backups() if backup.file == file)

    async def backup_file(self, name: str) -> str | None:
        return next((backup.file for backup in await self.backups() if backup.name == name), None)

    # Checks

    async def check(self) -> list[Finding]:
        return await self._run(self._check)

    def _check(self) -> list[Finding]:
        from dittybag.assembly.doctor_checks import run_checks

        if not self.has_file:
            raise MaintenanceFailed("The checks are for SQLite files; PostgreSQL checks itself")
        return run_checks(self._settings, lambda step, done=0, total=0, /: None).findings

    # Export and import

    async def export(self) -> str:
        return await self._run(self._export)

    def _export(self) -> str:
        from dittybag.assembly.import_export import export

        if self.has_file and _size(self._settings.database) > _MAX_EXPORTED:
            raise MaintenanceFailed(
                f"The database is larger than {format_size(_MAX_EXPORTED)}. On the server, run: "
                "dittybag export FILE.json"
            )
        path = os.path.join(self._temporary_folder(), f"{os.urandom(16).hex()}.json")  # noqa: PTH118
        export(self._settings, path, folder=False, project=None)
        return path

    def _temporary_folder(self) -> str:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="dittybag-web-", ignore_cleanup_errors=True)
        return self._folder.name

    async def keep_upload(self, name: str, content: bytes) -> str:
        ending = name.lower().rpartition(".")[2]
        if ending not in _ENDINGS:
            raise MaintenanceFailed(
                "Choose an export (JSON), a CSV file of prompts or a SQLite database. Files and folders of "
                "prompts are imported on the command line: dittybag import FOLDER"
            )
        key = os.urandom(16).hex()

        def write() -> str:
            path = os.path.join(self._temporary_folder(), f"{key}.{ending}")  # noqa: PTH118
            with files.atomic_write(path, durable=False) as file:
                file.write(content)
            return path

        self._uploads[key] = await asyncio.to_thread(write)
        while len(self._uploads) > _MAX_UPLOADS:
            _, oldest = self._uploads.popitem(last=False)
            os.unlink(oldest)  # noqa: PTH108
        return key

    async def import_upload(self, key: str, project: str, actor: str, *, dry_run: bool) -> ImportResult:
        path = self._uploads.get(key) if re.fullmatch(r"[0-9a-f]{32}", key) else None
        if path is None:
            raise MaintenanceFailed("The file is no longer there. Choose it again")
        options = ImportOptions(actor=actor, default_project=project, on_conflict="skip", dry_run=dry_run)
        preview = await self._run(lambda: self._import(path, options))
        if not dry_run:
            del self._uploads[key]
            os.unlink(path)  # noqa: PTH108
        return preview

    def _import(self, path: str, options: ImportOptions) -> ImportResult:
        from dittybag.assembly.import_export import import_data

        result = import_data(self._settings, path, options)
        notes = (str(note).replace(path, "the file") for note in (*result.conflicts, *result.notes))
        return replace(result, renamed=result.renamed[:_MAX_NOTES], notes=list(notes)[:_MAX_NOTES])

    # Libraries

    async def update_libraries(self, name: str) -> str:
        return await self._run(lambda: self._update_libraries(name))

    def _update_libraries(self, name: str) -> str:
        from dittybag.assembly.local_libraries import install_records, installer

        records = install_records.read_records(self._settings.home)
        names = [name] if name else [key for key, record in records.items() if _has_source(record.kind)]
        failures = []
        for library in names:
            try:
                if note := installer.update(self._settings.home, library).note:
                    failures.append(f"{library} {note}")
            except LibraryEdited as error:
                way_on = f"dittybag library update {library} --overwrite moves yours away and updates it"
                failures.append(f"{error}; {way_on}")
            except DittybagError as error:
                failures.append(f"{library}: {error}")
        if failures:
            raise MaintenanceFailed("; ".join(failures))
        return f"Updated {name or format_count(len(names), 'library', 'libraries')}"


def _has_source(kind: str) -> bool:
    return kind not in ("link", "new")


def _size(database: str) -> int:
    return sum(os.path.getsize(path) for path in (database, f"{database}-wal") if os.path.exists(path))  # noqa: PTH110, PTH202
