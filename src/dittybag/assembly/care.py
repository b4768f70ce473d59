"""The care of a workspace: backups, and findings about everything that could be wrong with it."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, cast

from msgspec import Struct

from dittybag import __version__
from dittybag.config import DEFAULT_WORKSPACE, Settings
from dittybag.domain.errors import StorageError, StorageFailed
from dittybag.storage.sqlite import backups, integrity_check
from dittybag.storage.sqlite.backups import ASIDE, PART, Backup, FileRefused, Reason, Restored
from dittybag.storage.sqlite.integrity_check import Flaw, Large, Part, Tell
from dittybag.storage.sqlite.migrations import NEWEST
from dittybag.storage.sqlite.project_table import ProjectTable
from dittybag.storage.sqlite.writer import run_to_end

__all__ = [
    "Backup",
    "Cost",
    "FileRefused",
    "Finding",
    "Health",
    "Large",
    "Level",
    "Reason",
    "Restored",
    "back_up",
    "examined",
    "finding_of",
    "mend",
    "project_names",
    "restore",
]

Level = Literal["ok", "note", "warning", "error"]

_MIB: Final = 1024 * 1024
#: With less room than this, the next large write may fail.
_LITTLE_ROOM: Final = 100 * _MIB
_NO_ROOM: Final = 5 * _MIB
#: A log is this long only if something keeps SQLite from emptying it.
_LONG_LOG: Final = 64 * _MIB
#: A model reads about this many bytes of JSON as one token.
_BYTES_A_TOKEN: Final = 4
_LARGEST: Final = 5
#: So many problems of libraries are told one by one.
_PROBLEMS: Final = 5
#: More files of a folder are not looked at.
_MAX_FILES: Final = 10_000

#: File systems on other machines, as Linux names them.
_FAR: Final = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "ceph",
    "glusterfs",
    "ncpfs",
    "davfs",
    "fuse.sshfs",
    "fuse.rclone",
)


class Finding(Struct, frozen=True):
    """One thing that was looked at, and what to do about it."""

    level: Level
    topic: str
    message: str
    fix: str | None = None


class Cost(Struct, frozen=True):
    """What the tools of a profile cost whoever reads their list."""

    profile: str
    tools: int
    bytes: int
    #: About.
    tokens: int


class Health(Struct, frozen=True):
    """Everything that was looked at."""

    database: str
    findings: list[Finding]
    costs: list[Cost]
    prompts: list[Large]
    resources: list[Large]


def back_up(settings: Settings, file: str, *, force: bool, tell: Tell) -> Backup:
    """Copy the database into a file, whoever is writing to it. Raises `FileRefused` and `StorageError`."""
    return backups.back_up(settings.database, file, force=force, tell=tell)


def restore(settings: Settings, file: str, *, force: bool, tell: Tell) -> Restored:
    """Make the database what it was in a backup. Raises `FileRefused` and `StorageError`."""
    return backups.restore(file, settings.database, force=force, tell=tell)


def mend(settings: Settings) -> None:
    """Make the search index anew."""
    integrity_check.rebuild_index(settings.database)


def project_names(settings: Settings, prefix: str, most: int) -> list[str]:
    """The projects that begin so. Nothing is made or changed for it."""
    with integrity_check.looking(settings.database) as connection:
        return run_to_end(ProjectTable(connection).names(prefix, most))


def examined(settings: Settings, tell: Tell) -> Health:
    """Look at everything, and change nothing."""
    largest: list[list[Large]] = [[], []]
    findings = [
        *_guarded("dittybag", _program),
        *_guarded("sqlite", _engine),
        *_guarded("database", lambda: _database(settings, tell, largest)),
        *_guarded("space", lambda: _space(settings.database)),
        *_guarded("leftovers", lambda: _leftovers(settings)),
    ]
    tell("Reading the libraries")
    findings += _guarded("libraries", lambda: _libraries(settings.home))
    return Health(os.path.abspath(settings.database), findings, costs(), *largest)  # noqa: PTH100


def finding_of(topic: str, error: Exception) -> Finding:
    """What an error says, as a finding."""
    if not isinstance(error, StorageError):
        message = f"This cannot be looked at: {str(error)[:200] or type(error).__name__}"
        return Finding(
            "error", topic, message, "Mend what else is found first, then run dittybag doctor again"
        )
    # Its words are what happened and what to do.
    words = str(error).removesuffix(error.advice).strip().rstrip(".")
    detail = f" ({error.problem})" if isinstance(error, StorageFailed) and error.problem else ""
    return Finding("error", topic, f"{error.where}: {words}{detail}", error.advice)


def _guarded(topic: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(look())
    except Exception as error:  # noqa: BLE001  # whatever is wrong with one thing, the others are looked at
        found.append(finding_of(topic, error))
    return found


# The program


def _program() -> Iterator[Finding]:
    yield Finding("ok", "dittybag", f"Dittybag {__version__} on Python {platform.python_version()}")


def _engine() -> Iterator[Finding]:
    version = integrity_check.engine()
    if integrity_check.engine_is_safe(version):
        yield Finding("ok", "sqlite", f"SQLite {version}")
    else:
        message = f"SQLite {version} can damage a database that several programs write to"
        yield Finding("error", "sqlite", message, "pip install --upgrade apsw, then restart all servers")


# The database


def _database(settings: Settings, tell: Tell, largest: list[list[Large]]) -> Iterator[Finding]:
    path = settings.database
    if not os.path.lexists(path):
        message = f"There is no database at {path} yet: it is made when it is first used"
        yield Finding("note", "database", message, "Add something, or try dittybag demo")
        return
    if not os.path.isfile(path):  # noqa: PTH113  # pathlib is slow to import
        yield Finding(
            "error", "database", f"{path} is not a file", "Move it away, or give another name with --db"
        )
        return
    size = os.path.getsize(path)  # noqa: PTH202
    if size == 0:
        message = f"{path} is empty, and will be filled when it is used"
        yield Finding("warning", "database", message, f"If there was something in it: {_restoring(settings)}")
        return
    yield Finding("ok", "database", f"{path}, {size / _MIB:,.1f} MiB")
    yield from _permissions(path)
    yield from _file_system(path)
    yield from _write_ahead_log(path)
    yield from _inside(settings, tell, largest)


def _permissions(path: str) -> Iterator[Finding]:
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    if not os.access(path, os.R_OK):
        message = f"{path} cannot be read by you"
        yield Finding("error", "permissions", message, f"chmod u+rw {shlex.quote(path)}, as its owner")
    elif not (os.access(path, os.W_OK) and os.access(folder, os.W_OK)):
        message = f"{path} or its folder cannot be written to by you"
        fix = f"chmod u+rw {shlex.quote(path)} and chmod u+rwx {shlex.quote(folder)}, as their owner"
        yield Finding("warning", "permissions", message, fix)
    reachable = stat.S_IMODE(os.stat(folder).st_mode) & 0o011  # noqa: PTH116
    if reachable and stat.S_IMODE(os.stat(path).st_mode) & 0o044:  # noqa: PTH116
        message = f"Other users of this machine can read {path}"
        yield Finding("note", "permissions", message, f"chmod 600 {shlex.quote(path)}, unless they should")


def _file_system(path: str) -> Iterator[Finding]:
    kind = _kind_of_file_system(path)
    if kind.startswith(_FAR):
        message = f"{path} is on a file system of another machine ({kind}), where databases can be damaged"
        yield Finding(
            "note", "file system", message, "Keep it on a disk of this machine, and back it up there"
        )


def _kind_of_file_system(path: str) -> str:
    """What Linux calls the file system; nothing elsewhere."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            mounts = [line.split(" ") for line in file]
    except OSError:
        return ""
    real = os.path.realpath(path)
    best, kind = "", ""
    for fields in mounts:
        # https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html: spaces are written as \040.
        point = fields[4].replace("\\040", " ")
        if len(point) >= len(best) and os.path.join(real, "").startswith(os.path.join(point, "")):  # noqa: PTH118
            best, kind = point, fields[fields.index("-") + 1]
    return kind


def _write_ahead_log(path: str) -> Iterator[Finding]:
    log = f"{path}-wal"
    if os.path.exists(log) and os.path.getsize(log) > _LONG_LOG:  # noqa: PTH110, PTH202
        message = (
            f"The write-ahead log has {os.path.getsize(log) / _MIB:,.0f} MiB: a program reads without an end"  # noqa: PTH202
        )
        yield Finding(
            "warning", "log file", message, "Restart the MCP clients and servers that use this database"
        )


def _inside(settings: Settings, tell: Tell, largest: list[list[Large]]) -> Iterator[Finding]:
    path = settings.database
    with integrity_check.looking(path) as connection:
        number = integrity_check.version(connection)
        yield from _schema_version(number)
        if number and integrity_check.journal(connection) != "wal":
            message = "The database has no write-ahead log, so that readers and writers wait for each other"
            command = f'sqlite3 {shlex.quote(path)} "PRAGMA journal_mode = wal"'
            yield Finding("warning", "journal", message, f"While no server runs: {command}")
        flaws = integrity_check.examine(connection, tell)
        yield from _flaws(settings, flaws, complete=number == NEWEST)
        if number == NEWEST and not flaws:
            count, size = integrity_check.orphans(connection)
            if count:
                message = f"{count:,} contents of {size / _MIB:,.1f} MiB belong to nothing"
                yield Finding("note", "contents", message, "They do no harm; dittybag export leaves them out")
            largest[:] = integrity_check.largest(connection, _LARGEST)


def _schema_version(number: int) -> Iterator[Finding]:
    if number > NEWEST:
        message = (
            f"The schema is number {number}, and this Dittybag knows {NEWEST}: a newer one has written it"
        )
        yield Finding(
            "error", "schema", message, "Install the newest Dittybag: pip install --upgrade dittybag"
        )
    elif number < NEWEST:
        message = f"The schema is number {number}; it becomes {NEWEST} when the database is next used"
        yield Finding("note", "schema", message, "dittybag backup FILE first keeps it as it is")
    else:
        yield Finding("ok", "schema", f"Schema number {number}, the newest")


_SOUND: Final[dict[Part, tuple[str, str]]] = {
    "structure": ("integrity", "The file is sound"),
    "schema": ("schema", "All tables are there"),
    "references": ("references", "Everything that is referred to is there"),
    "contents": ("contents", "The bytes of all resources are what was stored"),
    "log": ("change log", "The log leads to what is there"),
    "index": ("search index", "The index holds what the texts say"),
}


def _flaws(settings: Settings, flaws: list[Flaw], *, complete: bool) -> Iterator[Finding]:
    """Findings for every part of a database; of parts that were not looked at, none."""
    for flaw in flaws:
        topic = _SOUND[flaw.part][0]
        yield Finding("error", topic, flaw.message, _remedy(settings, flaw.part))
    found = {flaw.part for flaw in flaws}
    if found & {"structure", "schema"}:
        return
    for part, (topic, words) in _SOUND.items():
        if part not in found and (complete or part == "structure"):
            yield Finding("ok", topic, words)


def _remedy(settings: Settings, part: Part) -> str:
    if part == "index":
        return f"dittybag doctor --fix{_same(settings)}"
    if part == "structure":
        recovering = f"sqlite3 {shlex.quote(settings.database)} .recover"
        return f"{_restoring(settings)}; without a backup, {recovering} shows what can still be read"
    return _restoring(settings)


def _restoring(settings: Settings) -> str:
    return f"dittybag restore BACKUP --force{_same(settings)} (what is there now is kept)"


def _same(settings: Settings) -> str:
    """The option that names this database, unless it is the usual one."""
    usual = os.path.join(settings.home, f"{DEFAULT_WORKSPACE}.db")  # noqa: PTH118
    return "" if settings.database == usual else f" --db {shlex.quote(settings.database)}"


# Its surroundings


def _space(path: str) -> Iterator[Finding]:
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    while not os.path.isdir(folder):  # noqa: PTH112
        folder = os.path.dirname(folder)  # noqa: PTH120
    free = shutil.disk_usage(folder).free
    words = f"{free / _MIB:,.0f} MiB are free in {folder}"
    if free > _LITTLE_ROOM:
        yield Finding("ok", "space", words)
    else:
        level: Level = "error" if free < _NO_ROOM else "warning"
        yield Finding(level, "space", words, "Make room, or move the database: dittybag backup and --db")


def _leftovers(settings: Settings) -> Iterator[Finding]:
    from dittybag.library import install_records

    folder = os.path.dirname(os.path.abspath(settings.database))  # noqa: PTH100, PTH120
    files = _sizes(folder)
    if parts := [name for name in files if PART in name]:
        message = f"{_summary(parts, files)} of copies that were not finished, in {folder}"
        fix = f"If no backup is being made: rm {' '.join(shlex.quote(_at(folder, name)) for name in parts)}"
        yield Finding("note", "leftovers", message, fix)
    if aside := [name for name in files if ASIDE in name]:
        message = f"{_summary(aside, files)} that dittybag restore has put aside, in {folder}"
        fix = f"When nobody misses them: rm {' '.join(shlex.quote(_at(folder, name)) for name in aside)}"
        yield Finding("note", "leftovers", message, fix)
    records = install_records.records_folder(settings.home)
    if os.path.isdir(records) and any(name.startswith("work-") for name in os.listdir(records)):  # noqa: PTH112, PTH208
        message = f"A change of the libraries is going on, or was interrupted, in {records}"
        yield Finding("note", "leftovers", message, "dittybag library update puts it in order")


def _sizes(folder: str) -> dict[str, int]:
    """The files of a folder, in order, with their sizes."""
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
    return f"{len(names)} file{'s' if len(names) > 1 else ''}, {total / _MIB:,.1f} MiB,"


def _at(folder: str, name: str) -> str:
    return os.path.join(folder, name)  # noqa: PTH118


def _libraries(home: str) -> Iterator[Finding]:
    from dittybag.assembly.local_libraries import with_libraries

    reports = with_libraries(home, lambda shelf: shelf.check())
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
        libraries = f"{len(reports)} librar{'y' if len(reports) == 1 else 'ies'}"
        yield Finding("ok", "libraries", f"{libraries} with {prompts} prompt{'' if prompts == 1 else 's'}")


# What it costs


def costs() -> list[Cost]:
    """What the list of tools costs, profile by profile."""
    from dittybag.contracts.profiles import PROFILES

    return [_cost(profile) for profile in PROFILES.values()]


def _cost(profile: Any) -> Cost:
    from dittybag.contracts.profiles import shown_tools
    from dittybag.contracts.tool_specs import Place
    from dittybag.protocol import Server
    from dittybag.protocol.eras import NEWEST_HANDSHAKE, REVISIONS
    from dittybag.protocol.jsonrpc import encode

    server = Server(profile.server_name, profile.server_version)
    # Where it works makes no difference to how a tool is listed.
    nowhere = cast("Place", None)
    for tool in shown_tools(profile, read_only=False, toolsets=()):
        server.add(tool.at(nowhere))
    revision = REVISIONS[NEWEST_HANDSHAKE]
    listed = [server.tool_info(tool, revision) for tool in server.tools.values()]
    size = len(encode(listed)) if listed else 0
    return Cost(profile.name, len(listed), size, -(-size // _BYTES_A_TOKEN))
