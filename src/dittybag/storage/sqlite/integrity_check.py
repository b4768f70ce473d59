"""Integrity checks of a SQLite file: its pages and indexes, its schema, references and checksums."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, Final, Literal

import apsw
from msgspec import Struct

from dittybag.domain.progress import ReportProgress
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from dittybag.storage.sql.unheld_tasks import unheld_tasks_query
from dittybag.storage.sqlite.migrations.sqlite_migrations import create_schema

#: The parts of a file, as `dittybag doctor` names them.
CheckedPart = Literal["integrity", "schema", "references", "contents", "search index"]

#: A message names at most this many entities, and counts the others.
_MAX_NAMED: Final = 3
#: Maximum number of problems that `PRAGMA quick_check` reports.
_MAX_PROBLEMS: Final = 10

_INDEX_TABLE: Final = re.compile(r"table (?:main\.|\")(?:prompt|resource|task|word)_index\b")


class IntegrityProblem(Struct, frozen=True):
    """A problem that an integrity check found."""

    part: CheckedPart
    message: str


def sqlite_version() -> str:
    """Return the version of SQLite in this process."""
    return apsw.sqlite_lib_version()


def has_pending_purge(connection: apsw.Connection) -> bool:
    """Whether a purge was interrupted before the file was scrubbed."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM pending_purges)").get)


def unheld_tasks(connection: apsw.Connection) -> list[int]:
    """Return the tasks in work that were claimed and whose claim is gone."""
    return [task for (task,) in connection.execute(unheld_tasks_query())]


def check_structure(connection: apsw.Connection) -> list[IntegrityProblem]:
    """Check the pages of a file, and then its schema."""
    # Following the pages of a damaged file may never end, so the schema is read only if they are intact.
    return _run_check("integrity", _structure, connection) or _run_check("schema", _schema, connection)


def check_integrity(connection: apsw.Connection, report: ReportProgress) -> list[IntegrityProblem]:
    """Run all checks. For an older schema, only those of `check_structure`."""
    report("Checking the file structure")
    problems = check_structure(connection)
    is_newest = connection.pragma("user_version") == NEWEST_SCHEMA
    if not is_newest or any(problem.part != "search index" for problem in problems):
        return problems
    report("Checking references and contents")
    return [
        *problems,
        *_run_check("references", _references, connection),
        *_run_check("contents", _contents, connection),
    ]


def _run_check(
    part: CheckedPart,
    check: Callable[[apsw.Connection], Iterable[IntegrityProblem]],
    connection: apsw.Connection,
) -> list[IntegrityProblem]:
    found: list[IntegrityProblem] = []
    try:
        found.extend(check(connection))
    except (apsw.CorruptError, apsw.SQLError, ValueError, TypeError, LookupError, RecursionError) as error:
        # A damaged page, or text or JSON that is not valid.
        found.append(IntegrityProblem(part, f"Some data cannot be read: {str(error)[:200]}"))
    return found


def _structure(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    try:
        yield from _quick_check(connection, str(_MAX_PROBLEMS))
    except apsw.CorruptError as error:
        if not _INDEX_TABLE.search(str(error)):
            raise
        # Only the search index is damaged so far. It can be rebuilt if the tables are intact.
        yield IntegrityProblem("search index", str(error))
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE rootpage AND type = 'table'")
        for (table,) in tables.fetchall():
            yield from _quick_check(connection, f"'{table}'")


def _quick_check(connection: apsw.Connection, argument: str) -> Iterator[IntegrityProblem]:
    """Return the findings of `PRAGMA quick_check`."""
    for (line,) in connection.execute(f"PRAGMA quick_check({argument})"):
        if line != "ok":
            yield IntegrityProblem("search index" if _INDEX_TABLE.search(line) else "integrity", line)


def _schema(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    """Compare tables, indexes and triggers with those that the migrations create."""
    number = int(connection.pragma("user_version"))
    if number > NEWEST_SCHEMA:
        # A newer schema cannot be checked.
        return
    with closing(apsw.Connection(":memory:")) as empty:
        create_schema(empty, number)
        expected = _schema_objects(empty)
    found = _schema_objects(connection)
    if number == 0 and not found:
        # Another process has just created the file.
        return
    for kind, name in sorted(expected.keys() - found.keys()):
        yield IntegrityProblem("schema", f"The {kind} {name} is missing")
    for kind, name in sorted(expected.keys() & found.keys()):
        if expected[kind, name] != found[kind, name]:
            yield IntegrityProblem("schema", f"The {kind} {name} differs from its definition in Dittybag")
    for kind, name in sorted(found.keys() - expected.keys()):
        # Additional tables and indexes are harmless.
        if kind in ("trigger", "view"):
            yield IntegrityProblem("schema", f"The {kind} {name[:100]!r} was not created by Dittybag")


def _schema_objects(connection: apsw.Connection) -> dict[tuple[str, str], str]:
    """Return the SQL of all schema objects except those of SQLite."""
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    return {(kind, name): " ".join((sql or "").split()) for kind, name, sql in rows}


def _references(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    broken = Counter((row[0], row[2]) for row in connection.execute("PRAGMA foreign_key_check"))
    for (table, parent), count in broken.items():
        yield IntegrityProblem("references", f"{count} rows of {table} refer to missing {parent}")


def _contents(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    """Check that the contents of current and past resources match their checksums and sizes."""
    from hashlib import sha256

    wrong = [
        digest
        for digest, content in connection.execute("SELECT sha256, bytes FROM contents")
        if sha256(content).hexdigest() != digest
    ]
    if wrong:
        message = f"The contents {summarise(wrong)} do not match their SHA-256 checksums"
        yield IntegrityProblem("contents", message)
    sizes = connection.execute(
        "SELECT name FROM resources JOIN contents USING (sha256) WHERE size <> octet_length(bytes)"
    )
    if wrong := [name for (name,) in sizes]:
        yield IntegrityProblem("contents", f"The stored sizes of the resources {summarise(wrong)} are wrong")


def summarise(items: Iterable[Any]) -> str:
    """Return the first few items as text, and the number of the others."""
    texts = list(map(str, items))
    more = f" and {len(texts) - _MAX_NAMED} more" if len(texts) > _MAX_NAMED else ""
    return ", ".join(texts[:_MAX_NAMED]) + more
