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
from dittybag.storage.sqlite.connections import connect, identity, require_ours, require_same, translated
from dittybag.storage.sqlite.migrations import NEWEST, steps
from dittybag.storage.sqlite.rows import Row, all_rows, first_row, value

#: Told what is being done now.
Tell: TypeAlias = Callable[[str], Any]

Part = Literal["structure", "schema", "references", "contents", "log", "index"]

#: So many things of a kind are named, and the others counted.
_NAMED: Final = 3
#: So many problems of its own are asked of SQLite.
_PROBLEMS: Final = 10
#: After so many steps SQLite lets Python look for Ctrl-C.
_STEPS: Final = 200_000
#: One document, beside the sum of their numbers.
_ONE: Final = 1 << 80

_NOUNS: Final[dict[Kind, ModuleType]] = {
    "project": project_table,
    "prompt": prompt_table,
    "resource": resource_table,
    "task": task_table,
}
_INDEXED: Final[dict[Kind, ModuleType]] = {kind: _NOUNS[kind] for kind in ("prompt", "resource", "task")}
_OF_INDEX: Final = re.compile(r"table (?:main\.|\")(?:prompt|resource|task)_index\b")

#: Since which release of its branches SQLite has no https://sqlite.org/wal.html#walresetbug any more.
_MENDED: Final = {(3, 44): 6, (3, 50): 7, (3, 51): 3}


class Flaw(Struct, frozen=True):
    """Something that is wrong with a database, as a sentence."""

    part: Part
    message: str


class Large(Struct, frozen=True):
    """A prompt or a resource, and how much it holds."""

    project: str
    name: str
    bytes: int


def engine() -> str:
    """The version of SQLite in this process."""
    return apsw.sqlite_lib_version()


def engine_is_safe(version: str) -> bool:
    """Whether several processes may write with this SQLite: older ones can damage a file that way."""
    numbers = tuple(int(part) for part in version.split("."))
    branch = numbers[:2]
    return branch > max(_MENDED) or (branch in _MENDED and numbers[2] >= _MENDED[branch])


@contextmanager
def looking(path: str, *, alone: bool = False) -> Iterator[apsw.Connection]:
    """A connection that sees one point in time and changes nothing, not even a log that others left.

    `alone`: nobody else has the file, so nothing need be beside it.
    """
    require_ours(path)
    with translated(path):
        connection = _opened(path, alone=alone)
        try:
            yield connection
        finally:
            connection.close()


def _opened(path: str, *, alone: bool) -> apsw.Connection:
    left = _size(f"{path}-wal")
    if alone:
        return _begun(_immutable(path))
    try:
        return _begun(path, leave_log=left > 0)
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        # In a folder that cannot be written to there is no place for what connections share.
        if left:
            raise
        return _begun(_immutable(path))


def _begun(path: str, *, leave_log: bool = False) -> apsw.Connection:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(leave_log))
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.set_busy_timeout(5000)
        connection.set_progress_handler(lambda: False, _STEPS)
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


def version(connection: apsw.Connection) -> int:
    """The number of the schema."""
    return int(connection.pragma("user_version"))


def newest_change(connection: apsw.Connection) -> int:
    """The number of the last change; 0 if there was none."""
    return int(value(connection, "SELECT coalesce(max(seq), 0) FROM changes"))


def journal(connection: apsw.Connection) -> str:
    """How the file protects what is being written."""
    return str(connection.pragma("journal_mode"))


def sound(connection: apsw.Connection) -> list[Flaw]:
    """What is wrong with the pages of a file, and with the tables that it should have."""
    # What the pages of a damaged file lead to may have no end.
    return _checked("structure", _structure, connection) or _checked("schema", _schema, connection)


def examine(connection: apsw.Connection, tell: Tell) -> list[Flaw]:
    """Everything that is wrong with a file. Of old ones, only what the migrations leave as it is."""
    tell("Checking the pages")
    flaws = sound(connection)
    if version(connection) != NEWEST or any(flaw.part != "index" for flaw in flaws):
        return flaws
    for part, words, check in _CHECKS:
        tell(words)
        flaws += _checked(part, check, connection)
    return flaws


def _checked(
    part: Part, check: Callable[[apsw.Connection], Iterable[Flaw]], connection: apsw.Connection
) -> list[Flaw]:
    found: list[Flaw] = []
    try:
        found.extend(check(connection))
    except (apsw.CorruptError, apsw.SQLError, ValueError, TypeError, LookupError, RecursionError) as error:
        # A page or a text that is none, or JSON that is none.
        found.append(Flaw(part, f"Something cannot be read: {str(error)[:200]}"))
    return found


def _structure(connection: apsw.Connection) -> Iterator[Flaw]:
    try:
        yield from _problems(connection, str(_PROBLEMS))
    except apsw.CorruptError as error:
        if not _OF_INDEX.search(str(error)):
            raise
        # It went no further than the index, which can be made anew if all else is sound.
        yield Flaw("index", str(error))
        for (table,) in all_rows(
            connection, "SELECT name FROM sqlite_schema WHERE rootpage AND type = 'table'"
        ):
            yield from _problems(connection, f"'{table}'")


def _problems(connection: apsw.Connection, what: str) -> Iterator[Flaw]:
    """What SQLite finds by itself."""
    for (line,) in connection.execute(f"PRAGMA integrity_check({what})"):
        if line != "ok":
            yield Flaw("index" if _OF_INDEX.search(line) else "structure", line)


def _schema(connection: apsw.Connection) -> Iterator[Flaw]:
    """Whether the tables, indexes and triggers are those that the migrations make."""
    number = version(connection)
    if number > NEWEST:
        # What it should be like is not known here.
        return
    expected = _objects(_made(number))
    found = _objects(connection)
    if number == 0 and not found:
        # Somebody has only begun to make it.
        return
    for kind, name in sorted(expected.keys() - found.keys()):
        yield Flaw("schema", f"The {kind} {name} is missing")
    for kind, name in sorted(expected.keys() & found.keys()):
        if expected[kind, name] != found[kind, name]:
            yield Flaw("schema", f"The {kind} {name} is not as Dittybag makes it")
    for kind, name in sorted(found.keys() - expected.keys()):
        # Somebody's own table or index does nothing by itself.
        if kind in ("trigger", "view"):
            yield Flaw("schema", f"The {kind} {name[:100]!r} is not Dittybag's")


def _made(number: int) -> apsw.Connection:
    """An empty database of this version."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT, applied_at INTEGER)")
    for step, _, sql in steps():
        if step <= number:
            connection.execute(sql)
    return connection


def _objects(connection: apsw.Connection) -> dict[tuple[str, str], str]:
    """What a schema consists of, but for what SQLite adds by itself, and the record of the migrations."""
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    return {
        (kind, name): "" if name == "migrations" else " ".join((sql or "").split())
        for kind, name, sql in rows
    }


def _references(connection: apsw.Connection) -> Iterator[Flaw]:
    broken = Counter((row[0], row[2]) for row in connection.execute("PRAGMA foreign_key_check"))
    for (table, parent), count in broken.items():
        yield Flaw("references", f"{count} rows of {table} refer to {parent} that are not there")


def _contents(connection: apsw.Connection) -> Iterator[Flaw]:
    """Whether the bytes of resources are there and what their hashes say, for those in the log too."""
    from hashlib import sha256

    wrong = [
        digest
        for digest, content in connection.execute("SELECT sha256, bytes FROM contents")
        if sha256(content).hexdigest() != digest
    ]
    if wrong:
        yield Flaw("contents", f"{_named(wrong)}: the bytes are not what was stored under these hashes")
    sizes = connection.execute(
        """SELECT name FROM resources JOIN contents USING (sha256) WHERE size <> octet_length(bytes)"""
    )
    if wrong := [row[0] for row in sizes]:
        yield Flaw("contents", f"Resources {_named(wrong)} do not have the size they say")
    lost = connection.execute(
        """SELECT DISTINCT digest FROM (
               SELECT before ->> 'sha256' AS digest FROM changes WHERE kind = 'resource'
               UNION SELECT after ->> 'sha256' FROM changes WHERE kind = 'resource')
           WHERE digest IS NOT NULL AND digest NOT IN (SELECT sha256 FROM contents)"""
    )
    if wrong := [row[0] for row in lost]:
        yield Flaw("contents", f"{_named(wrong)}: contents that the log names are missing")


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


def _log(connection: apsw.Connection) -> Iterator[Flaw]:
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
        yield Flaw("log", f"Changes {_named(torn)} do not begin where the thing was before")
    for kind, noun in _NOUNS.items():
        differing = [
            entity.id
            for entity, _ in _entities(connection, kind, noun)
            if state.pop((kind, str(entity.id)), None) != hash(msgspec.json.encode(entity))
        ]
        if differing:
            yield Flaw("log", f"{noun.TABLE.name} {_named(differing)} are not what the log says")
    if state:
        missing = [f"{kind} {entity}" for kind, entity in state]
        yield Flaw("log", f"The log knows of {_named(missing)}, which are not there")


def _digest(kind: Kind, text: str | None) -> int | None:
    """A number for a thing in the log: equal things have equal numbers, whoever wrote them."""
    if text is None:
        return None
    return hash(msgspec.json.encode(msgspec.json.decode(text, type=KINDS[kind])))


def _entities(
    connection: apsw.Connection, kind: Kind, noun: ModuleType
) -> Iterator[tuple[Entity, dict[str, Any]]]:
    """What is in a table, each with its row."""
    cursor = connection.execute(f"SELECT * FROM {noun.TABLE.name}")
    names: list[str] = []
    for values in cursor:
        names = names or [name for name, _ in cursor.get_description()]
        row = dict(zip(names, values, strict=True))
        lists: dict[str, Any] = {
            name: msgspec.json.decode(row[name], type=list) for name in ("tags", "arguments") if name in row
        }
        yield msgspec.convert({**row, **lists}, KINDS[kind]), row


def _indexes(connection: apsw.Connection) -> Iterator[Flaw]:
    """Each index must hold the trigrams of the texts and no others; likewise for tags and folded texts."""
    for kind, noun in _INDEXED.items():
        expected: defaultdict[str, int] = defaultdict(int)
        numbers = set()
        unfolded = []
        for entity, row in _entities(connection, kind, noun):
            number = row[noun.TABLE.key]
            numbers.add(number)
            for trigram in _trigrams(noun.index_text(connection, entity)):
                expected[trigram] += _ONE + number
            if any(row[name] != folded for name, folded in _folded(connection, noun, entity).items()):
                unfolded.append(number)
        differing = {trigram for trigram, _ in expected.items() ^ _found(connection, noun.INDEX).items()}
        if differing:
            places = f"{len(differing)} places" if len(differing) > 1 else "one place"
            yield Flaw("index", f"The search index of {noun.TABLE.name} differs from the texts in {places}")
        if wrong := {row[0] for row in connection.execute(f"SELECT id FROM {noun.INDEX}_docsize")} ^ numbers:
            yield Flaw(
                "index", f"The search index of {noun.TABLE.name} is wrong about {_named(sorted(wrong))}"
            )
        if unfolded:
            yield Flaw(
                "index", f"What searches compare of {noun.TABLE.name} {_named(unfolded)} is not the text"
            )
    if all_rows(connection, _TAGS_CARRIED) != all_rows(connection, _TAGS_LISTED):
        yield Flaw("index", "The index of tags is not what the prompts say")


_TAGS_CARRIED: Final = """SELECT project, value, updated_at, number FROM prompts, json_each(prompts.tags)
                          ORDER BY 1, 2, 3, 4"""
_TAGS_LISTED: Final = "SELECT project, tag, updated_at, prompt FROM prompt_tags ORDER BY 1, 2, 3, 4"


def _found(connection: apsw.Connection, index: str) -> dict[str, int]:
    """In how many documents an index has each trigram, and in which: a number of both."""
    for name in ("row", "instance"):
        connection.execute(f"CREATE VIRTUAL TABLE temp.{index}_{name} USING fts5vocab(main, {index}, {name})")
    rows = connection.execute(
        f"""SELECT term, doc, (SELECT sum(doc) FROM temp.{index}_instance AS one WHERE one.term = every.term)
            FROM temp.{index}_row AS every"""
    )
    found = {term: count * _ONE + numbers for term, count, numbers in rows}
    for name in ("row", "instance"):
        connection.execute(f"DROP TABLE temp.{index}_{name}")
    return found


def _trigrams(text: str) -> set[str]:
    return set(map("".join, zip(text, text[1:], text[2:], strict=False)))


def _folded(connection: apsw.Connection, noun: ModuleType, entity: Entity) -> dict[str, Any]:
    values: dict[str, Any] = noun.values(connection, entity)
    return {name: folded for name, folded in values.items() if name.startswith("folded_")}


_CHECKS: Final[tuple[tuple[Part, str, Callable[[apsw.Connection], Iterable[Flaw]]], ...]] = (
    ("references", "Checking what refers to what", _references),
    ("contents", "Checking the bytes of resources", _contents),
    ("log", "Comparing the log with what is there", _log),
    ("index", "Comparing the search index with the texts", _indexes),
)


def _named(things: Iterable[Any]) -> str:
    """A few things, and how many more there are."""
    every = list(map(str, things))
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more


def largest(connection: apsw.Connection, most: int) -> tuple[list[Large], list[Large]]:
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
    return [_large(row) for row in prompts_found], [_large(row) for row in resources_found]


def _large(row: Row) -> Large:
    return Large(row[0], row[1], row[2])


def rebuild_index(path: str) -> None:
    """Make the indexes of texts and tags anew. Readers see the old ones meanwhile."""
    connection = connect(path, writable=True)
    try:
        with translated(path):
            opened = identity(path)
            connection.execute("BEGIN IMMEDIATE")
            for kind, noun in _INDEXED.items():
                _rebuild(connection, kind, noun)
            connection.execute("DELETE FROM prompt_tags")
            connection.execute(f"INSERT INTO prompt_tags {_TAGS_CARRIED}")
            require_same(path, opened)
            connection.execute("COMMIT")
    finally:
        # What is not committed is rolled back.
        connection.close()


def _rebuild(connection: apsw.Connection, kind: Kind, noun: ModuleType) -> None:
    corrections = []
    for entity, row in _entities(connection, kind, noun):
        number = row[noun.TABLE.key]
        folded = _folded(connection, noun, entity)
        if any(row[name] != text for name, text in folded.items()):
            corrections.append((folded, number))
    for folded, number in corrections:
        assignments = ", ".join(f"{name} = ?" for name in folded)
        sql = f"UPDATE {noun.TABLE.name} SET {assignments} WHERE {noun.TABLE.key} = ?"
        connection.execute(sql, (*folded.values(), number))
    connection.execute(f"INSERT INTO {noun.INDEX} ({noun.INDEX}) VALUES ('delete-all')")
    for entity, row in _entities(connection, kind, noun):
        connection.execute(
            f"INSERT INTO {noun.INDEX} (rowid, text) VALUES (?, ?)",
            (row[noun.TABLE.key], noun.index_text(connection, entity)),
        )
