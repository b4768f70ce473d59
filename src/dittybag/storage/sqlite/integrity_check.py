"""Examining a SQLite file: whether it is sound, and whether everything that it says twice agrees.

The log says what the tables say, the indexes say what the texts say, and the hash of a content what its bytes
say. So nearly every byte that is not what it was is found, also where SQLite itself has nothing to compare.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote

import apsw
import msgspec
from msgspec import Struct

from dittybag.domain.changes import KINDS, Entity, Kind
from dittybag.storage.sqlite import project_table, prompt_table, resource_table, task_table
from dittybag.storage.sqlite.connections import (
    connect,
    file_identity,
    require_dittybag_file,
    require_same_file,
    translate_errors,
)
from dittybag.storage.sqlite.migrations import NEWEST, steps
from dittybag.storage.sqlite.rows import Row, all_rows, first_row, value

#: Told what is being done now.
ReportProgress: TypeAlias = Callable[[str], Any]

CheckedPart = Literal["structure", "schema", "references", "contents", "log", "index"]

#: So many things of a kind are named, and the others counted.
_MAX_NAMED: Final = 3
#: So many problems of its own are asked of SQLite.
_MAX_PROBLEMS: Final = 10
#: After so many steps SQLite lets Python look for Ctrl-C.
_PROGRESS_STEPS: Final = 200_000
#: One document, beside the sum of their numbers.
_DOCUMENT_UNIT: Final = 1 << 80

_TABLE_MODULES: Final[dict[Kind, ModuleType]] = {
    "project": project_table,
    "prompt": prompt_table,
    "resource": resource_table,
    "task": task_table,
}
_INDEXED: Final[dict[Kind, ModuleType]] = {
    kind: _TABLE_MODULES[kind] for kind in ("prompt", "resource", "task")
}
_INDEX_TABLE: Final = re.compile(r"table (?:main\.|\")(?:prompt|resource|task)_index\b")

#: Since which release of its branches SQLite has no https://sqlite.org/wal.html#walresetbug any more.
_FIXED_RELEASES: Final = {(3, 44): 6, (3, 50): 7, (3, 51): 3}


class IntegrityProblem(Struct, frozen=True):
    """Something that is wrong with a database, as a sentence."""

    part: CheckedPart
    message: str


class LargeEntity(Struct, frozen=True):
    """A prompt or a resource, and how much it holds."""

    project: str
    name: str
    bytes: int


def sqlite_version() -> str:
    """The version of SQLite in this process."""
    return apsw.sqlite_lib_version()


def is_safe_sqlite_version(version: str) -> bool:
    """Whether several processes may write with this SQLite: older ones can damage a file that way."""
    numbers = tuple(int(part) for part in version.split("."))
    branch = numbers[:2]
    return branch > max(_FIXED_RELEASES) or (
        branch in _FIXED_RELEASES and numbers[2] >= _FIXED_RELEASES[branch]
    )


@contextmanager
def open_snapshot(path: str, *, immutable: bool = False) -> Iterator[apsw.Connection]:
    """A connection that sees one point in time and changes nothing, not even a log that others left.

    `immutable`: nobody else has the file, so nothing need be beside it.
    """
    require_dittybag_file(path)
    with translate_errors(path):
        connection = _open_read_only(path, immutable=immutable)
        try:
            yield connection
        finally:
            connection.close()


def _open_read_only(path: str, *, immutable: bool) -> apsw.Connection:
    left = _size(f"{path}-wal")
    if immutable:
        return _begin_read(_immutable(path))
    try:
        return _begin_read(path, leave_log=left > 0)
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        # In a folder that cannot be written to there is no place for what connections share.
        if left:
            raise
        return _begin_read(_immutable(path))


def _begin_read(path: str, *, leave_log: bool = False) -> apsw.Connection:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(leave_log))
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.set_busy_timeout(5000)
        connection.set_progress_handler(lambda: False, _PROGRESS_STEPS)
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _immutable(path: str) -> str:
    return f"file:{quote(os.path.abspath(path))}?immutable=1"  # noqa: PTH100  # pathlib is slow to import


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0


def schema_version(connection: apsw.Connection) -> int:
    """The number of the schema."""
    return int(connection.pragma("user_version"))


def newest_seq(connection: apsw.Connection) -> int:
    """The number of the last change; 0 if there was none."""
    return int(value(connection, "SELECT coalesce(max(seq), 0) FROM changes"))


def journal_mode(connection: apsw.Connection) -> str:
    """How the file protects what is being written."""
    return str(connection.pragma("journal_mode"))


def check_structure(connection: apsw.Connection) -> list[IntegrityProblem]:
    """What is wrong with the pages of a file, and with the tables that it should have."""
    # What the pages of a damaged file lead to may have no end.
    return _run_check("structure", _structure, connection) or _run_check("schema", _schema, connection)


def check_integrity(connection: apsw.Connection, report: ReportProgress) -> list[IntegrityProblem]:
    """Everything that is wrong with a file. Of old ones, only what the migrations leave as it is."""
    report("Checking the pages")
    problems = check_structure(connection)
    if schema_version(connection) != NEWEST or any(problem.part != "index" for problem in problems):
        return problems
    for part, words, check in _CHECKS:
        report(words)
        problems += _run_check(part, check, connection)
    return problems


def _run_check(
    part: CheckedPart,
    check: Callable[[apsw.Connection], Iterable[IntegrityProblem]],
    connection: apsw.Connection,
) -> list[IntegrityProblem]:
    found: list[IntegrityProblem] = []
    try:
        found.extend(check(connection))
    except (apsw.CorruptError, apsw.SQLError, ValueError, TypeError, LookupError, RecursionError) as error:
        # A page or a text that is none, or JSON that is none.
        found.append(IntegrityProblem(part, f"Something cannot be read: {str(error)[:200]}"))
    return found


def _structure(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    try:
        yield from _integrity_check(connection, str(_MAX_PROBLEMS))
    except apsw.CorruptError as error:
        if not _INDEX_TABLE.search(str(error)):
            raise
        # It went no further than the index, which can be made anew if all else is sound.
        yield IntegrityProblem("index", str(error))
        for (table,) in all_rows(
            connection, "SELECT name FROM sqlite_schema WHERE rootpage AND type = 'table'"
        ):
            yield from _integrity_check(connection, f"'{table}'")


def _integrity_check(connection: apsw.Connection, what: str) -> Iterator[IntegrityProblem]:
    """What SQLite finds by itself."""
    for (line,) in connection.execute(f"PRAGMA integrity_check({what})"):
        if line != "ok":
            yield IntegrityProblem("index" if _INDEX_TABLE.search(line) else "structure", line)


def _schema(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    """Whether the tables, indexes and triggers are those that the migrations make."""
    number = schema_version(connection)
    if number > NEWEST:
        # What it should be like is not known here.
        return
    expected = _schema_objects(_build_schema(number))
    found = _schema_objects(connection)
    if number == 0 and not found:
        # Somebody has only begun to make it.
        return
    for kind, name in sorted(expected.keys() - found.keys()):
        yield IntegrityProblem("schema", f"The {kind} {name} is missing")
    for kind, name in sorted(expected.keys() & found.keys()):
        if expected[kind, name] != found[kind, name]:
            yield IntegrityProblem("schema", f"The {kind} {name} is not as Dittybag makes it")
    for kind, name in sorted(found.keys() - expected.keys()):
        # Somebody's own table or index does nothing by itself.
        if kind in ("trigger", "view"):
            yield IntegrityProblem("schema", f"The {kind} {name[:100]!r} is not Dittybag's")


def _build_schema(number: int) -> apsw.Connection:
    """An empty database of this version."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT, applied_at INTEGER)")
    for step, _, sql in steps():
        if step <= number:
            connection.execute(sql)
    return connection


def _schema_objects(connection: apsw.Connection) -> dict[tuple[str, str], str]:
    """What a schema consists of, but for what SQLite adds by itself, and the record of the migrations."""
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    return {
        (kind, name): "" if name == "migrations" else " ".join((sql or "").split())
        for kind, name, sql in rows
    }


def _references(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    broken = Counter((row[0], row[2]) for row in connection.execute("PRAGMA foreign_key_check"))
    for (table, parent), count in broken.items():
        yield IntegrityProblem("references", f"{count} rows of {table} refer to {parent} that are not there")


def _contents(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    """Whether the bytes of resources are there and what their hashes say, for those in the log too."""
    from hashlib import sha256

    wrong = [
        digest
        for digest, content in connection.execute("SELECT sha256, bytes FROM contents")
        if sha256(content).hexdigest() != digest
    ]
    if wrong:
        yield IntegrityProblem(
            "contents", f"{_summarise(wrong)}: the bytes are not what was stored under these hashes"
        )
    sizes = connection.execute(
        """SELECT name FROM resources JOIN contents USING (sha256) WHERE size <> octet_length(bytes)"""
    )
    if wrong := [row[0] for row in sizes]:
        yield IntegrityProblem("contents", f"Resources {_summarise(wrong)} do not have the size they say")
    lost = connection.execute(
        """SELECT DISTINCT digest FROM (
               SELECT before ->> 'sha256' AS digest FROM changes WHERE kind = 'resource'
               UNION SELECT after ->> 'sha256' FROM changes WHERE kind = 'resource')
           WHERE digest IS NOT NULL AND digest NOT IN (SELECT sha256 FROM contents)"""
    )
    if wrong := [row[0] for row in lost]:
        yield IntegrityProblem("contents", f"{_summarise(wrong)}: contents that the log names are missing")


def orphans(connection: apsw.Connection) -> tuple[int, int]:
    """How many contents belong to nothing, neither now nor in the log, and how many bytes they take."""
    row = first_row(
        connection,
        """SELECT count(*), coalesce(sum(octet_length(bytes)), 0) FROM contents
           WHERE sha256 NOT IN (SELECT sha256 FROM resources)
             AND sha256 NOT IN (
                 SELECT coalesce(before ->> 'sha256', '') FROM changes WHERE kind = 'resource'
                 UNION SELECT coalesce(after ->> 'sha256', '') FROM changes WHERE kind = 'resource')""",
    )
    assert row is not None
    return row[0], row[1]


def _log(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    """The log, read from its beginning, must lead to the tables."""
    state: dict[tuple[Kind, str], int] = {}
    torn = []
    for seq, kind, entity, before, after in connection.execute(
        "SELECT seq, kind, entity, before, after FROM changes ORDER BY seq"
    ):
        key = (kind, entity)
        if state.pop(key, None) != _digest(kind, before):
            torn.append(seq)
        if after is not None:
            state[key] = _digest(kind, after) or 0
    if torn:
        yield IntegrityProblem("log", f"Changes {_summarise(torn)} do not begin where the thing was before")
    for kind, module in _TABLE_MODULES.items():
        differing = [
            entity.id
            for entity, _ in _entities(connection, kind, module)
            if state.pop((kind, str(entity.id)), None) != hash(msgspec.json.encode(entity))
        ]
        if differing:
            yield IntegrityProblem(
                "log", f"{module.TABLE.name} {_summarise(differing)} are not what the log says"
            )
    if state:
        missing = [f"{kind} {entity}" for kind, entity in state]
        yield IntegrityProblem("log", f"The log knows of {_summarise(missing)}, which are not there")


def _digest(kind: Kind, text: str | None) -> int | None:
    """A number for a thing in the log: equal things have equal numbers, whoever wrote them."""
    if text is None:
        return None
    return hash(msgspec.json.encode(msgspec.json.decode(text, type=KINDS[kind])))


def _entities(
    connection: apsw.Connection, kind: Kind, module: ModuleType
) -> Iterator[tuple[Entity, dict[str, Any]]]:
    """What is in a table, each with its row."""
    cursor = connection.execute(f"SELECT * FROM {module.TABLE.name}")
    names: list[str] = []
    for values in cursor:
        names = names or [name for name, _ in cursor.get_description()]
        row = dict(zip(names, values, strict=True))
        lists: dict[str, Any] = {
            name: msgspec.json.decode(row[name], type=list) for name in ("tags", "arguments") if name in row
        }
        yield msgspec.convert({**row, **lists}, KINDS[kind]), row


def _indexes(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    """Each index must hold the trigrams of the texts and no others; likewise for tags and folded texts."""
    for kind, module in _INDEXED.items():
        expected: defaultdict[str, int] = defaultdict(int)
        numbers = set()
        unfolded = []
        for entity, row in _entities(connection, kind, module):
            number = row[module.TABLE.key]
            numbers.add(number)
            for trigram in _trigrams(module.index_text(connection, entity)):
                expected[trigram] += _DOCUMENT_UNIT + number
            if any(row[name] != folded for name, folded in _folded(connection, module, entity).items()):
                unfolded.append(number)
        differing = {
            trigram for trigram, _ in expected.items() ^ _indexed_trigrams(connection, module.INDEX).items()
        }
        if differing:
            places = f"{len(differing)} places" if len(differing) > 1 else "one place"
            yield IntegrityProblem(
                "index", f"The search index of {module.TABLE.name} differs from the texts in {places}"
            )
        if (
            wrong := {row[0] for row in connection.execute(f"SELECT id FROM {module.INDEX}_docsize")}
            ^ numbers
        ):
            yield IntegrityProblem(
                "index", f"The search index of {module.TABLE.name} is wrong about {_summarise(sorted(wrong))}"
            )
        if unfolded:
            yield IntegrityProblem(
                "index",
                f"What searches compare of {module.TABLE.name} {_summarise(unfolded)} is not the text",
            )
    if all_rows(connection, _TAGS_CARRIED) != all_rows(connection, _TAGS_LISTED):
        yield IntegrityProblem("index", "The index of tags is not what the prompts say")


_TAGS_CARRIED: Final = """SELECT project, value, updated_at, number FROM prompts, json_each(prompts.tags)
                          ORDER BY 1, 2, 3, 4"""
_TAGS_LISTED: Final = "SELECT project, tag, updated_at, prompt FROM prompt_tags ORDER BY 1, 2, 3, 4"


def _indexed_trigrams(connection: apsw.Connection, index: str) -> dict[str, int]:
    """In how many documents an index has each trigram, and in which: a number of both."""
    for name in ("row", "instance"):
        connection.execute(f"CREATE VIRTUAL TABLE temp.{index}_{name} USING fts5vocab(main, {index}, {name})")
    rows = connection.execute(
        f"""SELECT term, doc, (SELECT sum(doc) FROM temp.{index}_instance AS one WHERE one.term = every.term)
            FROM temp.{index}_row AS every"""
    )
    found = {term: count * _DOCUMENT_UNIT + numbers for term, count, numbers in rows}
    for name in ("row", "instance"):
        connection.execute(f"DROP TABLE temp.{index}_{name}")
    return found


def _trigrams(text: str) -> set[str]:
    return set(map("".join, zip(text, text[1:], text[2:], strict=False)))


def _folded(connection: apsw.Connection, module: ModuleType, entity: Entity) -> dict[str, Any]:
    values: dict[str, Any] = module.row_values(connection, entity)
    return {name: folded for name, folded in values.items() if name.startswith("folded_")}


_CHECKS: Final[
    tuple[tuple[CheckedPart, str, Callable[[apsw.Connection], Iterable[IntegrityProblem]]], ...]
] = (
    ("references", "Checking what refers to what", _references),
    ("contents", "Checking the bytes of resources", _contents),
    ("log", "Comparing the log with what is there", _log),
    ("index", "Comparing the search index with the texts", _indexes),
)


def _summarise(things: Iterable[Any]) -> str:
    """A few things, and how many more there are."""
    every = list(map(str, things))
    more = f" and {len(every) - _MAX_NAMED} more" if len(every) > _MAX_NAMED else ""
    return ", ".join(every[:_MAX_NAMED]) + more


def largest(connection: apsw.Connection, most: int) -> tuple[list[LargeEntity], list[LargeEntity]]:
    """The largest prompts and the largest resources."""
    prompts_found = all_rows(
        connection,
        """SELECT projects.name, prompts.name, octet_length(content) FROM prompts
           JOIN projects ON projects.id = prompts.project ORDER BY 3 DESC, number LIMIT ?""",
        (most,),
    )
    resources_found = all_rows(
        connection,
        """SELECT projects.name, resources.name, size FROM resources
           JOIN projects ON projects.id = resources.project ORDER BY 3 DESC, number LIMIT ?""",
        (most,),
    )
    return [_large_entity(row) for row in prompts_found], [_large_entity(row) for row in resources_found]


def _large_entity(row: Row) -> LargeEntity:
    return LargeEntity(row[0], row[1], row[2])


def rebuild_index(path: str) -> None:
    """Make the indexes of texts and tags anew. Readers see the old ones meanwhile."""
    connection = connect(path, writable=True)
    try:
        with translate_errors(path):
            opened = file_identity(path)
            connection.execute("BEGIN IMMEDIATE")
            for kind, module in _INDEXED.items():
                _rebuild(connection, kind, module)
            connection.execute("DELETE FROM prompt_tags")
            connection.execute(f"INSERT INTO prompt_tags {_TAGS_CARRIED}")
            require_same_file(path, opened)
            connection.execute("COMMIT")
    finally:
        # What is not committed is rolled back.
        connection.close()


def _rebuild(connection: apsw.Connection, kind: Kind, module: ModuleType) -> None:
    corrections = []
    for entity, row in _entities(connection, kind, module):
        number = row[module.TABLE.key]
        folded = _folded(connection, module, entity)
        if any(row[name] != text for name, text in folded.items()):
            corrections.append((folded, number))
    for folded, number in corrections:
        assignments = ", ".join(f"{name} = ?" for name in folded)
        sql = f"UPDATE {module.TABLE.name} SET {assignments} WHERE {module.TABLE.key} = ?"
        connection.execute(sql, (*folded.values(), number))
    connection.execute(f"INSERT INTO {module.INDEX} ({module.INDEX}) VALUES ('delete-all')")
    for entity, row in _entities(connection, kind, module):
        connection.execute(
            f"INSERT INTO {module.INDEX} (rowid, text) VALUES (?, ?)",
            (row[module.TABLE.key], module.index_text(connection, entity)),
        )
