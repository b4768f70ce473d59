"""Integrity checks of a SQLite file.

Most data is stored twice: the change log leads to the tables, the indexes follow from the texts, and each
content has a checksum. Comparing both finds damage that SQLite's own checks cannot see.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, Final, Literal

import apsw
import msgspec
from msgspec import Struct

from dittybag.domain.entities import ENTITY_TYPES, JSON_FORMATS, Entity, Kind
from dittybag.domain.progress import ReportProgress
from dittybag.domain.ranked_search import STORED_KINDS, columns_of, searched_texts
from dittybag.domain.resources import Resource
from dittybag.storage.sql.content_table import ContentTable
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from dittybag.storage.sql.row_mapping import PURGED_JSON
from dittybag.storage.sqlite.kept_counts import rebuild_counts, wrong_counts
from dittybag.storage.sqlite.migrations.sqlite_migrations import create_schema
from dittybag.storage.sqlite.sqlite_connections import (
    OpenFiles,
    connect,
    translate_errors,
)
from dittybag.storage.sqlite.sqlite_driver import SqliteDriver, run_synchronously
from dittybag.storage.sqlite.sqlite_text_search import (
    INDEXES,
    WORD_COLUMNS,
    WORD_INDEX,
    folded_texts,
    index_text,
)
from dittybag.storage.sqlite.task_tables import rebuild_task_tables, wrong_rows
from dittybag.storage.sqlite.word_index import entity_of, fill_word_index, row_id

CheckedPart = Literal["structure", "schema", "references", "contents", "log", "index"]

#: A message names at most this many entities, and counts the others.
_MAX_NAMED: Final = 3
#: Maximum number of problems that `PRAGMA integrity_check` reports.
_MAX_PROBLEMS: Final = 10
#: Adds 1 to a document count in the same integer as a sum of row numbers.
_DOCUMENT_UNIT: Final = 1 << 80

_INDEX_TABLE: Final = re.compile(r"table (?:main\.|\")(?:prompt|resource|task|word)_index\b")

#: The first release of each branch with the fix for https://sqlite.org/wal.html#walresetbug.
_FIXED_RELEASES: Final = {(3, 44): 6, (3, 50): 7, (3, 51): 3}


class IntegrityProblem(Struct, frozen=True):
    """A problem that an integrity check found."""

    part: CheckedPart
    message: str


class LargeEntity(Struct, frozen=True):
    """A prompt or resource, and its size."""

    project: str
    name: str
    bytes: int


def sqlite_version() -> str:
    """Return the version of SQLite in this process."""
    return apsw.sqlite_lib_version()


def is_safe_sqlite_version(version: str) -> bool:
    """Whether several processes can write with this version of SQLite without damaging the file."""
    numbers = tuple(int(part) for part in version.split("."))
    branch = numbers[:2]
    return branch > max(_FIXED_RELEASES) or (
        branch in _FIXED_RELEASES and numbers[2] >= _FIXED_RELEASES[branch]
    )


def newest_seq(connection: apsw.Connection) -> int:
    """Return the `seq` of the last change; 0 if there is none."""
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM changes").get)


def has_pending_purge(connection: apsw.Connection) -> bool:
    """Whether a purge was interrupted before the file was scrubbed."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM pending_purges)").get)


def journal_mode(connection: apsw.Connection) -> str:
    """Return the journal mode."""
    return str(connection.pragma("journal_mode"))


def check_structure(connection: apsw.Connection) -> list[IntegrityProblem]:
    """Check the pages of a file, and then its schema."""
    # Following the pages of a damaged file may never end, so the schema is read only if they are intact.
    return _run_check("structure", _structure, connection) or _run_check("schema", _schema, connection)


def check_integrity(connection: apsw.Connection, report: ReportProgress) -> list[IntegrityProblem]:
    """Run all checks. For an older schema, only those of `check_structure`."""
    report("Checking the file structure")
    problems = check_structure(connection)
    is_newest = connection.pragma("user_version") == NEWEST_SCHEMA
    if not is_newest or any(problem.part != "index" for problem in problems):
        return problems
    for part, label, check in _CHECKS:
        report(label)
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
        # A damaged page, or text or JSON that is not valid.
        found.append(IntegrityProblem(part, f"Some data cannot be read: {str(error)[:200]}"))
    return found


def _structure(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    try:
        yield from _integrity_check(connection, str(_MAX_PROBLEMS))
    except apsw.CorruptError as error:
        if not _INDEX_TABLE.search(str(error)):
            raise
        # Only the search index is damaged so far. It can be rebuilt if the tables are intact.
        yield IntegrityProblem("index", str(error))
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE rootpage AND type = 'table'")
        for (table,) in tables.fetchall():
            yield from _integrity_check(connection, f"'{table}'")


def _integrity_check(connection: apsw.Connection, argument: str) -> Iterator[IntegrityProblem]:
    """Return the findings of `PRAGMA integrity_check`."""
    for (line,) in connection.execute(f"PRAGMA integrity_check({argument})"):
        if line != "ok":
            yield IntegrityProblem("index" if _INDEX_TABLE.search(line) else "structure", line)


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
    """Check that the contents of current and past resources exist and match their checksums."""
    from hashlib import sha256

    wrong = [
        digest
        for digest, content in connection.execute("SELECT sha256, bytes FROM contents")
        if sha256(content).hexdigest() != digest
    ]
    if wrong:
        yield IntegrityProblem(
            "contents", f"The contents {_summarise(wrong)} do not match their SHA-256 checksums"
        )
    sizes = connection.execute(
        """SELECT name FROM resources JOIN contents USING (sha256) WHERE size <> octet_length(bytes)"""
    )
    if wrong := [row[0] for row in sizes]:
        yield IntegrityProblem("contents", f"The stored sizes of the resources {_summarise(wrong)} are wrong")
    lost = connection.execute(
        """SELECT DISTINCT digest FROM (
               SELECT before ->> 'sha256' AS digest FROM changes WHERE kind = 'resource'
               UNION SELECT after ->> 'sha256' FROM changes WHERE kind = 'resource')
           WHERE digest IS NOT NULL AND digest NOT IN (SELECT sha256 FROM contents)"""
    )
    if wrong := [row[0] for row in lost]:
        yield IntegrityProblem("contents", f"The change log refers to missing contents: {_summarise(wrong)}")


def orphans(connection: apsw.Connection) -> tuple[int, int]:
    """Return the number and total size of contents that neither a resource nor the change log uses."""
    number, size = connection.execute(
        """SELECT count(*), coalesce(sum(octet_length(bytes)), 0) FROM contents
           WHERE sha256 NOT IN (SELECT sha256 FROM resources)
             AND sha256 NOT IN (
                 SELECT coalesce(before ->> 'sha256', '') FROM changes WHERE kind = 'resource'
                 UNION SELECT coalesce(after ->> 'sha256', '') FROM changes WHERE kind = 'resource')""",
    ).get
    return number, size


def _log(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    """Check that replaying the change log leads to the tables."""
    #: Hashes of the current states; `None` for one that was purged, which fits anything.
    state: dict[tuple[Kind, str], int | None] = {}
    inconsistent = []
    for seq, kind, entity, before, after in connection.execute(
        "SELECT seq, kind, entity, before, after FROM changes ORDER BY seq"
    ):
        key = (kind, entity)
        current, replaced = state.pop(key, 0), _digest(kind, before)
        if None not in (current, replaced) and current != replaced:
            inconsistent.append(seq)
        if after is not None:
            state[key] = _digest(kind, after)
    if inconsistent:
        yield IntegrityProblem(
            "log", f"The changes {_summarise(inconsistent)} do not match the previous state of their entities"
        )
    for kind, described in ENTITY_TYPES.items():
        differing = [
            entity.id
            for entity, _ in _entities(connection, kind)
            if state.pop((kind, str(entity.id)), 0) not in (None, hash(msgspec.json.encode(entity)))
        ]
        if differing:
            yield IntegrityProblem(
                "log", f"The {described.table} {_summarise(differing)} differ from the change log"
            )
    if missing := [f"{kind} {entity}" for (kind, entity), digest in state.items() if digest is not None]:
        yield IntegrityProblem(
            "log", f"The change log contains {_summarise(missing)}, which the tables do not"
        )


def _digest(kind: Kind, text: str | None) -> int | None:
    """Return a hash of an entity in the log, 0 if it does not exist, or `None` if it was purged.

    The hash does not depend on how the JSON is formatted.
    """
    if text is None:
        return 0
    if text.startswith(PURGED_JSON):
        return None
    return hash(msgspec.json.encode(msgspec.json.decode(text, type=ENTITY_TYPES[kind].struct)))


def _entities(connection: apsw.Connection, kind: Kind) -> Iterator[tuple[Entity, dict[str, Any]]]:
    """Yield the entities of a table, each with its row."""
    described = ENTITY_TYPES[kind]
    cursor = connection.execute(f"SELECT * FROM {described.table}")
    listed = [
        field.name for field in described.edited if field.format == "list" or field.format in JSON_FORMATS
    ]
    names: list[str] = []
    for values in cursor:
        names = names or [name for name, _ in cursor.get_description()]
        row = dict(zip(names, values, strict=True))
        lists: dict[str, Any] = {
            name: msgspec.json.decode(row[name], type=list) for name in listed if name in row
        }
        yield msgspec.convert({**row, **lists}, described.struct), row


def _indexes(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    """Check that the search indexes, the folded texts and the tag index match the texts.

    The kept counts and the tables that follow from tasks are checked, too.
    """
    for kind, index in INDEXES.items():
        table, key = ENTITY_TYPES[kind].table, ENTITY_TYPES[kind].key
        expected: defaultdict[str, int] = defaultdict(int)
        numbers = set()
        unfolded = []
        for entity, row in _entities(connection, kind):
            numbers.add(row[key])
            text = _content(connection, entity)
            for trigram in _trigrams(index_text(kind, entity, text)):
                expected[trigram] += _DOCUMENT_UNIT + row[key]
            if _outdated_texts(kind, entity, text, row):
                unfolded.append(row[key])
        differing = {
            trigram for trigram, _ in expected.items() ^ _indexed_trigrams(connection, index).items()
        }
        if differing:
            places = f"{len(differing)} places" if len(differing) > 1 else "one place"
            yield IntegrityProblem("index", f"The search index of {table} differs from the texts in {places}")
        listed = {row[0] for row in connection.execute(f"SELECT id FROM {index}_docsize")}
        if wrong := sorted(listed ^ numbers):
            yield IntegrityProblem(
                "index", f"The search index of {table} lists the wrong rows: {_summarise(wrong)}"
            )
        if unfolded:
            yield IntegrityProblem(
                "index", f"The folded texts of the {table} {_summarise(unfolded)} are outdated"
            )
    yield from _word_index(connection)
    carried, listed_tags = (connection.execute(sql).fetchall() for sql in (_TAGS_CARRIED, _TAGS_LISTED))
    if carried != listed_tags:
        yield IntegrityProblem("index", "The tag index does not match the prompts")
    for counted in wrong_counts(connection):
        yield IntegrityProblem("index", f"The kept counts of {counted} do not match the prompts")
    for wrong_table in wrong_rows(connection):
        message = f"The {wrong_table.label} do not match the tasks {_summarise(wrong_table.tasks)}"
        yield IntegrityProblem("index", message)


def _word_index(connection: apsw.Connection) -> Iterator[IntegrityProblem]:
    """Check that the index of stems matches the texts."""
    expected: defaultdict[str, int] = defaultdict(int)
    rows = set()
    for kind in STORED_KINDS:
        for entity, row in _entities(connection, kind):
            number = row_id(kind, row[ENTITY_TYPES[kind].key])
            rows.add(number)
            columns = columns_of(searched_texts(entity, _content(connection, entity)))
            for place, stem in ((place, stem) for place, column in enumerate(columns, 1) for stem in column):
                expected[stem] += _DOCUMENT_UNIT + number * place
    found = _indexed_stems(connection)
    if differing := {stem for stem, _ in expected.items() ^ found.items()}:
        places = f"{len(differing)} places" if len(differing) > 1 else "one place"
        yield IntegrityProblem("index", f"The index of words differs from the texts in {places}")
    listed = {row[0] for row in connection.execute(f"SELECT id FROM {WORD_INDEX}_docsize")}
    if wrong := sorted(listed ^ rows):
        named = _summarise(" ".join(map(str, entity_of(row))) for row in wrong)
        yield IntegrityProblem("index", f"The index of words lists the wrong rows: {named}")


def _indexed_stems(connection: apsw.Connection) -> dict[str, int]:
    """Return the stems of the index, each with the count and a sum of its places in one integer."""
    connection.execute(
        f"CREATE VIRTUAL TABLE temp.{WORD_INDEX}_places USING fts5vocab(main, {WORD_INDEX}, instance)"
    )
    column = " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(WORD_COLUMNS, 1))
    rows = connection.execute(
        f"""SELECT term, count(*), sum(doc * CASE col {column} END) FROM temp.{WORD_INDEX}_places
            GROUP BY term"""
    )
    found = {term: count * _DOCUMENT_UNIT + places for term, count, places in rows}
    connection.execute(f"DROP TABLE temp.{WORD_INDEX}_places")
    return found


_TAGS_CARRIED: Final = """SELECT project, value, updated_at, number FROM prompts, json_each(prompts.tags)
                          ORDER BY 1, 2, 3, 4"""
_TAGS_LISTED: Final = "SELECT project, tag, updated_at, prompt FROM prompt_tags ORDER BY 1, 2, 3, 4"


def _indexed_trigrams(connection: apsw.Connection, index: str) -> dict[str, int]:
    """Return the trigrams of an index, each with the count and the sum of its row ids in one integer."""
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


def _content(connection: apsw.Connection, entity: Entity) -> str | None:
    """Return the content of a resource, unless it is binary; `None` for other entities."""
    if not isinstance(entity, Resource) or not entity.is_text:
        return None
    return run_synchronously(ContentTable(SqliteDriver(connection)).read(entity.sha256)).decode()


def _outdated_texts(
    kind: Kind, entity: Entity, content: str | None, row: dict[str, Any]
) -> dict[str, str | None]:
    """Return the folded texts that differ from their columns."""
    folded = folded_texts(kind, entity, content)
    return {name: text for name, text in folded.items() if row[name] != text}


_CHECKS: Final[
    tuple[tuple[CheckedPart, str, Callable[[apsw.Connection], Iterable[IntegrityProblem]]], ...]
] = (
    ("references", "Checking references", _references),
    ("contents", "Checking the contents of resources", _contents),
    ("log", "Comparing the change log with the tables", _log),
    ("index", "Comparing the search index with the texts", _indexes),
)


def _summarise(items: Iterable[Any]) -> str:
    """Return the first few items as text, and the number of the others."""
    texts = list(map(str, items))
    more = f" and {len(texts) - _MAX_NAMED} more" if len(texts) > _MAX_NAMED else ""
    return ", ".join(texts[:_MAX_NAMED]) + more


def largest(connection: apsw.Connection, most: int) -> tuple[list[LargeEntity], list[LargeEntity]]:
    """Return the largest prompts and the largest resources."""

    def find(table: str, size: str) -> list[LargeEntity]:
        rows = connection.execute(
            f"""SELECT projects.name, {table}.name, {size} AS bytes FROM {table}
                JOIN projects ON projects.id = {table}.project ORDER BY bytes DESC, number LIMIT ?""",
            (most,),
        )
        found: list[Any] = rows.fetchall()
        return [LargeEntity(*row) for row in found]

    return find("prompts", "octet_length(content)"), find("resources", "size")


def rebuild_index(path: str) -> None:
    """Rebuild the search indexes, the tag index, the kept counts and the tables that follow from tasks.

    Readers see the old ones until the commit.
    """
    connection = connect(path, writable=True)
    try:
        with translate_errors(path):
            connection.execute("BEGIN IMMEDIATE")
            files = OpenFiles(path)
            for kind in INDEXES:
                _rebuild(connection, kind)
            connection.execute(f"INSERT INTO {WORD_INDEX} ({WORD_INDEX}) VALUES ('delete-all')")
            fill_word_index(connection)
            connection.execute("DELETE FROM prompt_tags")
            connection.execute(f"INSERT INTO prompt_tags {_TAGS_CARRIED}")
            rebuild_task_tables(connection)
            rebuild_counts(connection)
            files.require_in_place()
            connection.execute("COMMIT")
    finally:
        # Closing rolls back an uncommitted transaction.
        connection.close()


def _rebuild(connection: apsw.Connection, kind: Kind) -> None:
    table, key, index = ENTITY_TYPES[kind].table, ENTITY_TYPES[kind].key, INDEXES[kind]
    corrections = []
    for entity, row in _entities(connection, kind):
        if outdated := _outdated_texts(kind, entity, _content(connection, entity), row):
            corrections.append((row[key], outdated))
    for number, texts in corrections:
        assignments = ", ".join(f"{name} = ?" for name in texts)
        connection.execute(f"UPDATE {table} SET {assignments} WHERE {key} = ?", (*texts.values(), number))
    connection.execute(f"INSERT INTO {index} ({index}) VALUES ('delete-all')")
    for entity, row in _entities(connection, kind):
        text = index_text(kind, entity, _content(connection, entity))
        connection.execute(f"INSERT INTO {index} (rowid, text) VALUES (?, ?)", (row[key], text))
