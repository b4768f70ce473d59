"""The checks of `dittybag doctor`: the database, its surroundings and the libraries."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dittybag import __version__
from dittybag.assembly.automatic_backups import (
    database_option,
    last_error,
    newest_backup,
    restore_command,
    stored_backups,
    unwritable_folder,
)
from dittybag.assembly.backup_names import has_automatic_backups
from dittybag.assembly.mounts import file_system_type
from dittybag.assembly.store_factory import database_name, is_file
from dittybag.assembly.tool_costs import ToolCost, tool_costs
from dittybag.config import Settings
from dittybag.domain.display import format_count, format_moment, format_size
from dittybag.domain.errors import StorageDamaged, StorageError, StorageFailed, StorageForeign
from dittybag.domain.progress import ReportProgress
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from dittybag.storage.sqlite import integrity_check
from dittybag.storage.sqlite.backups import ASIDE_INFIX, TEMPORARY_SUFFIX
from dittybag.storage.sqlite.integrity_check import CheckedPart, IntegrityProblem, LargeEntity
from dittybag.storage.sqlite.migrations.sqlite_migrations import schema_version
from dittybag.storage.sqlite.snapshots import open_snapshot

__all__ = [
    "DoctorReport",
    "Finding",
    "LargeEntity",
    "Level",
    "finding_from_error",
    "rebuild_search_index",
    "run_checks",
    "schema_finding",
]

Level = Literal["ok", "note", "warning", "error"]

_MIB: Final = 1024 * 1024
#: With less free space than this, the next large write may fail.
_LITTLE_ROOM: Final = 100 * _MIB
_NO_ROOM: Final = 5 * _MIB
#: The write-ahead log only grows beyond this while something keeps SQLite from truncating it.
_LONG_LOG: Final = 64 * _MIB
_LARGEST: Final = 5
#: At most this many problems of libraries are reported one by one.
_PROBLEMS: Final = 5
#: At most this many files of a folder are checked.
_MAX_FILES: Final = 10_000

#: The beginnings of the names of file systems that other machines share, as Linux and macOS name them.
_NETWORK_FILE_SYSTEMS: Final = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "afpfs",
    "ceph",
    "glusterfs",
    "ncpfs",
    "davfs",
    "webdav",
    "fuse.sshfs",
    "fuse.rclone",
)
#: Folders that a virtual machine or container shares with the system around it.
_SHARED_FOLDERS: Final = ("virtiofs", "vboxsf", "prl_fs", "vmhgfs", "fuse.vmhgfs", "fuse.grpcfuse", "osxfs")
#: The drives of Windows in WSL 1. In WSL 2, they are 9p or virtiofs.
_WINDOWS_DRIVES: Final = "drvfs"
_WSL_KERNEL: Final = "microsoft"


class Finding(Struct, frozen=True):
    """The result of one check, and how to fix what it found."""

    level: Level
    topic: str
    message: str
    fix: str | None = None
    #: Whether `dittybag doctor --fix` does it.
    can_fix: bool = False


class Fix(Struct, frozen=True):
    """A fix for one or several findings."""

    text: str
    #: The highest level of the findings.
    level: Level
    topics: list[str]


class DoctorReport(Struct, frozen=True):
    """The results of all checks."""

    database: str
    findings: list[Finding]
    costs: list[ToolCost]
    prompts: list[LargeEntity]
    resources: list[LargeEntity]

    @property
    def fixes(self) -> list[Fix]:
        """Each fix once, those of errors first."""
        found: dict[str, Fix] = {}
        for level in ("error", "warning", "note"):
            for finding in self.findings:
                if finding.fix and finding.level == level:
                    fix = found.setdefault(finding.fix, Fix(finding.fix, finding.level, []))
                    if finding.topic not in fix.topics:
                        fix.topics.append(finding.topic)
        return list(found.values())


def rebuild_search_index(settings: Settings) -> None:
    """Rebuild the search index from the stored texts, and the lists of edges and open tasks."""
    integrity_check.rebuild_index(settings.database)


def run_checks(settings: Settings, report: ReportProgress) -> DoctorReport:
    """Run every check. Changes nothing."""
    if not is_file(settings.database):
        return _check_server(settings, report)
    largest: list[list[LargeEntity]] = [[], []]
    findings = [
        *_run_check("dittybag", _program),
        *_run_check("sqlite", _engine),
        *_run_check("database", lambda: _database_or_damage(settings, report, largest)),
        *_run_check("backups", lambda: _backups(settings)),
        *_run_check("space", lambda: _space(settings.database)),
        *_run_check("leftovers", lambda: _leftovers(settings)),
    ]
    report("Reading the libraries")
    findings += _run_check("libraries", lambda: _libraries(settings))
    return DoctorReport(os.path.abspath(settings.database), findings, tool_costs(), *largest)  # noqa: PTH100


def _check_server(settings: Settings, report: ReportProgress) -> DoctorReport:
    """Check whether a PostgreSQL database can be opened, and the libraries."""
    from dittybag.assembly.postgres_checks import database_findings

    report("Connecting to the database")
    findings = [
        *_run_check("dittybag", _program),
        *_run_check("database", lambda: database_findings(settings.database)),
    ]
    report("Reading the libraries")
    findings += _run_check("libraries", lambda: _libraries(settings))
    return DoctorReport(database_name(settings.database), findings, tool_costs(), [], [])


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


# The program


def _program() -> Iterator[Finding]:
    yield Finding("ok", "dittybag", f"Dittybag {__version__} on Python {platform.python_version()}")


def _engine() -> Iterator[Finding]:
    version = integrity_check.sqlite_version()
    if integrity_check.is_safe_sqlite_version(version):
        yield Finding("ok", "sqlite", f"SQLite {version}")
    else:
        message = f"SQLite {version} can damage a database that several programs write to"
        yield Finding("error", "sqlite", message, "pip install --upgrade apsw, then restart all servers")


# The database


def _database_or_damage(
    settings: Settings, report: ReportProgress, largest: list[list[LargeEntity]]
) -> Iterator[Finding]:
    """Check the database; if it cannot be read at all, name the backup to restore."""
    try:
        yield from _database(settings, report, largest)
    except (StorageDamaged, StorageForeign) as error:
        found = finding_from_error("database", error)
        yield found if newest_backup(settings) is None else replace(found, fix=_restore_command(settings))


def _database(
    settings: Settings, report: ReportProgress, largest: list[list[LargeEntity]]
) -> Iterator[Finding]:
    path = settings.database
    if not os.path.lexists(path):
        message = f"There is no database at {path} yet; the first command that writes creates it"
        if newest_backup(settings) is None:
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
    yield from _write_ahead_log(path)
    yield from _inside(settings, report, largest)


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
    kind = file_system_type(path)
    if not kind.startswith((*_NETWORK_FILE_SYSTEMS, *_SHARED_FOLDERS, _WINDOWS_DRIVES)):
        return
    level: Level = "note"
    fix = "Move the database to a local disk, and write backups to the network"
    if kind.startswith(_WINDOWS_DRIVES) or _WSL_KERNEL in platform.release().lower():
        level = "warning"
        where = f"a drive of Windows ({kind})"
        fix = "Move the database into the file system of WSL, such as ~/.local/share/dittybag"
    elif kind.startswith(_SHARED_FOLDERS):
        where = f"a folder that is shared with another system ({kind})"
    else:
        where = f"a network file system ({kind})"
    message = f"{path} is on {where}, where locks are not reliable and SQLite databases can be damaged"
    yield Finding(level, "file system", message, fix)


def _write_ahead_log(path: str) -> Iterator[Finding]:
    log = f"{path}-wal"
    size = os.path.getsize(log) if os.path.exists(log) else 0  # noqa: PTH110, PTH202
    if size > _LONG_LOG:
        message = f"The write-ahead log has {format_size(size)}: a reader keeps it from shrinking"
        yield Finding(
            "warning", "log file", message, "Restart the MCP clients and servers that use this database"
        )


def _inside(
    settings: Settings, report: ReportProgress, largest: list[list[LargeEntity]]
) -> Iterator[Finding]:
    path = settings.database
    with open_snapshot(path) as connection:
        number = schema_version(connection, path)
        yield schema_finding(number, copy="dittybag backup FILE")
        if number and integrity_check.journal_mode(connection) != "wal":
            message = "The database does not use a write-ahead log, so readers and writers block each other"
            command = f'sqlite3 {shlex.quote(path)} "PRAGMA journal_mode = wal"'
            yield Finding("warning", "journal", message, f"While no server runs: {command}")
        flaws = integrity_check.check_integrity(connection, report)
        yield from _part_findings(settings, flaws, complete=number == NEWEST_SCHEMA)
        if number == NEWEST_SCHEMA and not flaws:
            if integrity_check.has_pending_purge(connection):
                message = "A purge was interrupted: purged content may still be in free pages of the file"
                fix = f"dittybag purge --resume{database_option(settings)}"
                yield Finding("warning", "purge", message, fix)
            count, size = integrity_check.orphans(connection)
            if count:
                message = f"{count:,} stored contents ({format_size(size)}) belong to no resource"
                yield Finding(
                    "note", "contents", message, "They are harmless; dittybag export leaves them out"
                )
            largest[:] = integrity_check.largest(connection, _LARGEST)


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


_SOUND: Final[dict[CheckedPart, tuple[str, str]]] = {
    "structure": ("integrity", "The file is intact"),
    "schema": ("schema", "All tables exist"),
    "references": ("references", "All references point to existing rows"),
    "contents": ("contents", "The content of every resource matches its checksum"),
    "log": ("change log", "The change log matches the current data"),
    "index": (
        "search index",
        "The search index matches the texts, and the lists of edges and open tasks match the tasks",
    ),
}


def _part_findings(settings: Settings, flaws: list[IntegrityProblem], *, complete: bool) -> Iterator[Finding]:
    """One finding per flaw, and one for each checked part without a flaw."""
    for flaw in flaws:
        topic = _SOUND[flaw.part][0]
        remedy = _remedy(settings, flaw.part)
        yield Finding("error", topic, flaw.message, remedy, can_fix=flaw.part == "index")
    found = {flaw.part for flaw in flaws}
    if found & {"structure", "schema"}:
        return
    for part, (topic, words) in _SOUND.items():
        if part not in found and (complete or part == "structure"):
            yield Finding("ok", topic, words)


def _remedy(settings: Settings, part: CheckedPart) -> str:
    if part == "index":
        return f"dittybag doctor --fix{database_option(settings)}"
    if part == "structure":
        recover = f"sqlite3 {shlex.quote(settings.database)} .recover"
        return f"{_restore_command(settings)}; without a backup, {recover} prints what is still readable"
    return _restore_command(settings)


def _restore_command(settings: Settings) -> str:
    newest = newest_backup(settings)
    if newest is None:
        return f"dittybag restore BACKUP --force{database_option(settings)} (the current file is kept)"
    made = format_moment(newest.made_at)
    return f"{restore_command(settings, newest)} (the newest backup, from {made}; the current file is kept)"


# Backups


def _backups(settings: Settings) -> Iterator[Finding]:
    found, error = stored_backups(settings), last_error(settings)
    if found:
        size = format_size(sum(backup.bytes for backup in found))
        words = f"{format_count(len(found), 'backup')} in the data folder, {size}; the newest is from"
        message = f"{words} {format_moment(found[0].made_at)}"
    else:
        message = "There are no backups in the data folder"
    by_hand = f"dittybag backup FILE{database_option(settings)} makes a backup"
    if error is not None and settings.auto_backup:
        fix = f"Remove the cause: the next write tries again after an hour. {by_hand}"
        yield Finding("warning", "backups", f"The last automatic backup failed: {error}. {message}", fix)
    elif has_automatic_backups(settings) and (folder := unwritable_folder(settings)):
        fix = f"chmod u+rwx {shlex.quote(folder)}, as its owner, or set DITTYBAG_HOME"
        yield Finding("warning", "backups", f"You cannot write to {folder}, so there are no new backups", fix)
    elif found:
        yield Finding("ok", "backups", message)
    elif not has_automatic_backups(settings):
        reason = "none are made automatically" if settings.auto_backup else "DITTYBAG_AUTO_BACKUP is off"
        yield Finding("note", "backups", f"{message}: {reason}", by_hand)
    elif os.path.lexists(settings.database):
        yield Finding("note", "backups", f"{message} yet", "The next write makes one")


# Disk, leftovers, libraries


def _space(path: str) -> Iterator[Finding]:
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    while not os.path.isdir(folder):  # noqa: PTH112
        folder = os.path.dirname(folder)  # noqa: PTH120
    free = shutil.disk_usage(folder).free
    words = f"{format_size(free)} free in {folder}"
    if free > _LITTLE_ROOM:
        yield Finding("ok", "space", words)
    else:
        level: Level = "error" if free < _NO_ROOM else "warning"
        yield Finding(
            level, "space", words, "Free some space, or move the database: dittybag backup, then --db"
        )


def _leftovers(settings: Settings) -> Iterator[Finding]:
    from dittybag.library import install_records

    folder = os.path.dirname(os.path.abspath(settings.database))  # noqa: PTH100, PTH120
    files = _sizes(folder)
    if parts := [name for name in files if TEMPORARY_SUFFIX in name]:
        message = f"{_summary(parts, files)} left over from unfinished backups in {folder}"
        fix = f"If no backup is running: rm {' '.join(shlex.quote(_at(folder, name)) for name in parts)}"
        yield Finding("note", "leftovers", message, fix)
    if aside := [name for name in files if ASIDE_INFIX in name]:
        message = f"{_summary(aside, files)} kept by dittybag restore in {folder}"
        fix = f"When you no longer need them: rm {' '.join(shlex.quote(_at(folder, name)) for name in aside)}"
        yield Finding("note", "leftovers", message, fix)
    records = install_records.records_folder(settings.home)
    if os.path.isdir(records) and any(name.startswith("work-") for name in os.listdir(records)):  # noqa: PTH112, PTH208
        message = f"A library update is running or was interrupted in {records}"
        yield Finding("note", "leftovers", message, "dittybag library update finishes it")


def _sizes(folder: str) -> dict[str, int]:
    """The files of a folder and their sizes, ordered by name."""
    found: dict[str, int] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    found[entry.name] = entry.stat(follow_symlinks=False).st_size
                if len(found) == _MAX_FILES:
                    break
    except FileNotFoundError:
        return {}
    return dict(sorted(found.items()))


def _summary(names: list[str], sizes: dict[str, int]) -> str:
    total = sum(sizes[name] for name in names)
    return f"{format_count(len(names), 'file')}, {format_size(total)}"


def _at(folder: str, name: str) -> str:
    return os.path.join(folder, name)  # noqa: PTH118


def _libraries(settings: Settings) -> Iterator[Finding]:
    from dittybag.assembly.local_libraries import with_libraries

    reports = with_libraries(
        settings.home, lambda libraries: libraries.check(), extra=settings.known_libraries
    )
    problems = [(report, problem) for report in reports for problem in report.problems]
    for report, problem in problems[:_PROBLEMS]:
        place = _at(report.folder, problem.file).rstrip(os.sep)
        fix = (
            f"dittybag library check {shlex.quote(report.name)}" if report.name else "dittybag library check"
        )
        yield Finding(problem.level, "libraries", f"{place}: {problem.message}", fix)
    if len(problems) > _PROBLEMS:
        rest = problems[_PROBLEMS:]
        level: Level = "error" if any(problem.level == "error" for _, problem in rest) else "warning"
        yield Finding(level, "libraries", f"{len(rest)} more problems in libraries", "dittybag library check")
    if not problems:
        prompts = sum(report.prompts for report in reports)
        libraries = format_count(len(reports), "library", "libraries")
        yield Finding("ok", "libraries", f"{libraries} with {format_count(prompts, 'prompt')}")
