"""The checks of `dittybag doctor`: the database, its surroundings and the libraries."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag import __version__
from dittybag.assembly.mounts import shared_file_system
from dittybag.assembly.store_factory import database_name, is_file
from dittybag.assembly.stored_backups import (
    database_option,
    has_automatic_backups,
    newest_restore,
    stored_backups,
)
from dittybag.config import Settings
from dittybag.domain.display import format_count, format_moment, format_size
from dittybag.domain.errors import StorageDamaged, StorageError, StorageFailed, StorageForeign
from dittybag.domain.health import Finding
from dittybag.domain.progress import ReportProgress
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from dittybag.storage.sqlite import integrity_check
from dittybag.storage.sqlite.index_rebuild import rebuild_indexes
from dittybag.storage.sqlite.migrations.sqlite_migrations import schema_version
from dittybag.storage.sqlite.snapshots import open_snapshot

#: With less free space than this, the next large write may fail.
_LITTLE_ROOM: Final = 100 * 1024 * 1024


class DoctorReport(Struct, frozen=True):
    """The results of all checks."""

    database: str
    findings: list[Finding]


def rebuild_search_index(settings: Settings) -> list[Finding]:
    """Rebuild the search indexes and the lists that follow from prompts and tasks; return what failed."""

    def rebuild() -> Iterable[Finding]:
        rebuild_indexes(settings.database)
        return ()

    return _run_check("search index", rebuild)


def run_checks(settings: Settings, report: ReportProgress) -> DoctorReport:
    """Run every check. Changes nothing."""
    versions = (
        f"Dittybag {__version__}",
        f"Python {platform.python_version()}",
        f"SQLite {integrity_check.sqlite_version()}",
        platform.platform(),
    )
    findings = [Finding("ok", "versions", ", ".join(versions))]
    if is_file(settings.database):
        name = os.path.abspath(settings.database)  # noqa: PTH100  # pathlib is slow to import
        findings += _run_check("database", lambda: _database_or_damage(settings, report))
        findings += _run_check("backups", lambda: _backups(settings))
        findings += _run_check("space", lambda: _space(settings.database))
    else:
        from dittybag.assembly.postgres_checks import database_findings

        name = database_name(settings.database)
        report("Connecting to the database")
        findings += _run_check("database", lambda: database_findings(settings))
    report("Reading the libraries")
    findings += _run_check("libraries", lambda: _libraries(settings))
    return DoctorReport(name, findings)


def finding_from_error(topic: str, error: Exception) -> Finding:
    """Turn an exception into a finding."""
    if not isinstance(error, StorageError):
        message = f"This check failed: {str(error)[:200] or type(error).__name__}"
        return Finding(
            "error", topic, message, "Fix the other findings first, then run dittybag doctor again"
        )
    detail = f" ({error.problem})" if isinstance(error, StorageFailed) and error.problem else ""
    return Finding("error", topic, f"{error.where}: {error.summary}{detail}", error.advice)


def _run_check(topic: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(check())
    except Exception as error:  # noqa: BLE001  # a check that fails must not stop the others
        found.append(finding_from_error(topic, error))
    return found


# The database


def _database_or_damage(settings: Settings, report: ReportProgress) -> Iterator[Finding]:
    """Check the database; if it cannot be read at all, name the backup to restore."""
    try:
        yield from _database(settings, report)
    except (StorageDamaged, StorageForeign) as error:
        found = finding_from_error("database", error)
        yield found if newest_restore(settings) is None else replace(found, fix=_restore_command(settings))


def _database(settings: Settings, report: ReportProgress) -> Iterator[Finding]:
    path = settings.database
    if not os.path.lexists(path):
        message = f"There is no database at {path} yet; the first command that writes creates it"
        if newest_restore(settings) is None:
            yield Finding("note", "database", message, "Add something, or try dittybag demo")
        else:
            message = f"There is no database at {path}, but there are backups of it"
            yield Finding("warning", "database", message, _restore_command(settings))
        return
    if not os.path.isfile(path):  # noqa: PTH113  # pathlib is slow to import
        yield Finding(
            "error", "database", f"{path} is not a file", "Move it away, or name another file with --db"
        )
        return
    size = os.path.getsize(path)  # noqa: PTH202
    if size == 0:
        message = f"{path} is empty; the next command that writes creates the tables"
        yield Finding("warning", "database", message, f"If it had data before: {_restore_command(settings)}")
        return
    yield Finding("ok", "database", f"{path}, {format_size(size)}")
    yield from _permissions(path)
    yield from _file_system(path)
    yield from _inside(settings, report)


def _permissions(path: str) -> Iterator[Finding]:
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    if not os.access(path, os.R_OK):
        message = f"You cannot read {path}"
        yield Finding("error", "permissions", message, f"chmod u+rw {shlex.quote(path)}, as its owner")
    elif not (os.access(path, os.W_OK) and os.access(folder, os.W_OK)):
        message = f"You cannot write to {path} or its folder"
        fix = f"chmod u+rw {shlex.quote(path)} and chmod u+rwx {shlex.quote(folder)}, as their owner"
        yield Finding("warning", "permissions", message, fix)
    reachable = stat.S_IMODE(os.stat(folder).st_mode) & 0o011  # noqa: PTH116
    if reachable and stat.S_IMODE(os.stat(path).st_mode) & 0o044:  # noqa: PTH116
        message = f"Other users of this machine can read {path}"
        yield Finding(
            "note", "permissions", message, f"chmod 600 {shlex.quote(path)}, unless that is intended"
        )


def _file_system(path: str) -> Iterator[Finding]:
    if where := shared_file_system(path):
        message = f"{path} is on {where}, where locks are not reliable and SQLite databases can be damaged"
        fix = "Move the database to a local disk, in WSL below ~/.local/share, and back up to the network"
        yield Finding("note", "file system", message, fix)


def _inside(settings: Settings, report: ReportProgress) -> Iterator[Finding]:
    path = settings.database
    with open_snapshot(path) as connection:
        number = schema_version(connection, path)
        yield schema_finding(number, copy="dittybag backup create FILE")
        flaws = integrity_check.check_integrity(connection, report)
        yield from _part_findings(settings, flaws, complete=number == NEWEST_SCHEMA)
        if number != NEWEST_SCHEMA or flaws:
            return
        if integrity_check.has_pending_purge(connection):
            message = "A purge was interrupted: purged content may still be in free pages of the file"
            fix = f"dittybag purge --resume{database_option(settings)}"
            yield Finding("warning", "purge", message, fix)
        yield from task_findings(integrity_check.unheld_tasks(connection), settings)


def task_findings(unheld: list[int], settings: Settings) -> Iterator[Finding]:
    """Name the tasks in work whose claims are gone."""
    if unheld:
        message = (
            f"Nobody is given these tasks in work, whose claims are gone: {integrity_check.summarise(unheld)}"
        )
        fix = f"dittybag task release {unheld[0]}{database_option(settings)}, and so on"
        yield Finding("warning", "tasks", message, fix)


def schema_finding(number: int, *, copy: str) -> Finding:
    """Compare a schema version with that of this program. `copy`: the command that copies the database."""
    if number > NEWEST_SCHEMA:
        message = f"The database has schema {number}; Dittybag {__version__} knows up to {NEWEST_SCHEMA}"
        return Finding("error", "schema", message, "Upgrade Dittybag: a newer version wrote this database")
    if number < NEWEST_SCHEMA:
        message = (
            f"The database has schema {number}; the next server or command upgrades it to {NEWEST_SCHEMA}"
        )
        return Finding("note", "schema", message, f"To keep a copy of the old version: {copy}")
    return Finding("ok", "schema", f"Schema {number}, the newest")


_SOUND: Final[dict[integrity_check.CheckedPart, str]] = {
    "integrity": "The file is intact",
    "schema": "All tables exist",
    "references": "All references point to existing rows",
    "contents": "The content of every resource matches its checksum",
    "search index": "The search index is intact",
}


def _part_findings(
    settings: Settings, flaws: list[integrity_check.IntegrityProblem], *, complete: bool
) -> Iterator[Finding]:
    """One finding per flaw, and one for each checked part without a flaw."""
    rebuild = f"dittybag doctor --fix{database_option(settings)}"
    for flaw in flaws:
        remedy = rebuild if flaw.part == "search index" else _restore_command(settings)
        yield Finding("error", flaw.part, flaw.message, remedy)
    found = {flaw.part for flaw in flaws}
    if found.isdisjoint(("integrity", "schema")):
        for part, words in _SOUND.items():
            if part not in found and (complete or part == "integrity"):
                yield Finding("ok", part, words)


def _restore_command(settings: Settings) -> str:
    newest = newest_restore(settings)
    if newest is None:
        return f"dittybag backup restore BACKUP --force{database_option(settings)} (the current file is kept)"
    made, command = newest
    return f"{command} (the newest backup, from {made}; the current file is kept)"


# Backups, disk, libraries


def _backups(settings: Settings) -> Iterator[Finding]:
    found = stored_backups(settings)
    if found:
        size = format_size(sum(backup.bytes for backup in found))
        words = f"{format_count(len(found), 'backup')} in the data folder, {size}; the newest is from"
        yield Finding("ok", "backups", f"{words} {format_moment(found[0].made_at)}")
    elif os.path.lexists(settings.database):
        message = "There are no backups in the data folder"
        if has_automatic_backups(settings):
            message += " yet; a server makes one a day"
        fix = f"dittybag backup create FILE{database_option(settings)} makes a backup"
        yield Finding("note", "backups", message, fix)


def _space(path: str) -> Iterator[Finding]:
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    while not os.path.isdir(folder):  # noqa: PTH112
        folder = os.path.dirname(folder)  # noqa: PTH120
    free = shutil.disk_usage(folder).free
    words = f"{format_size(free)} free in {folder}"
    if free > _LITTLE_ROOM:
        yield Finding("ok", "space", words)
    else:
        fix = "Free some space, or move the database: dittybag backup create, then --db"
        yield Finding("warning", "space", words, fix)


def _libraries(settings: Settings) -> Iterator[Finding]:
    """One finding per library with problems."""
    from dittybag.assembly.local_libraries import with_libraries

    reports = with_libraries(
        settings.home, lambda libraries: libraries.check(), extra=settings.known_libraries
    )
    for report in reports:
        # Errors before warnings.
        if problems := sorted(report.problems, key=lambda problem: problem.level):
            place = os.path.join(report.folder, problems[0].file).rstrip(os.sep)  # noqa: PTH118
            more = f", and {format_count(len(problems) - 1, 'more problem')}" if len(problems) > 1 else ""
            fix = f"dittybag library check {shlex.quote(report.name) if report.name else ''}".rstrip()
            yield Finding(problems[0].level, "libraries", f"{place}: {problems[0].message}{more}", fix)
    if not any(report.problems for report in reports):
        prompts = sum(report.prompts for report in reports)
        libraries = format_count(len(reports), "library", "libraries")
        yield Finding("ok", "libraries", f"{libraries} with {format_count(prompts, 'prompt')}")
