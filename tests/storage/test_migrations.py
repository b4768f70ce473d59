"""Migrations of both databases, also interrupted, and which schemas are refused."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

import apsw
import pytest

from dittybag import __version__
from dittybag.storage.postgres.migrations import postgres_migrations
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from dittybag.storage.sqlite.migrations import sqlite_migrations
from tests.cli.cli_runner import data, dittybag, failure
from tests.later_version import LATER_SCHEMA, LaterVersion
from tests.postgres_servers import PostgresServer

TITLES: Final = ["one", "three", "sixteen"]
LENGTHS: Final = [(number, len(title)) for number, title in enumerate(TITLES, 1)]
VERSIONS: Final = f"has schema {LATER_SCHEMA}, and Dittybag {__version__} knows up to {NEWEST_SCHEMA}"
RECORDS: Final = "SELECT number, name FROM applied_migrations ORDER BY number"
SCHEMA: Final = "SELECT max(number) FROM applied_migrations"

numbers = count(1)


class Database(Protocol):
    """A workspace with three tasks."""

    #: The value of `--db`, and how it is shown.
    url: str
    shown: str

    def sql(self, statement: str) -> list[tuple[Any, ...]]: ...


class SqliteFile:
    def __init__(self, path: Path) -> None:
        self.url = self.shown = str(path)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(apsw.Connection(self.url)) as connection:
            return connection.execute(statement).fetchall()


class PostgresSchema:
    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.name = f"migrated_{next(numbers)}"
        self.url = server.url(schema=self.name, password="secret")
        self.shown = self.url.replace(":secret", "")

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        lines = self._server.sql(f"SET search_path = {self.name}; {statement}")
        values = (line.split("|") for line in lines)
        return [tuple(int(value) if value.isdecimal() else value for value in row) for row in values]


@pytest.fixture(scope="session")
def later(tmp_path_factory: pytest.TempPathFactory) -> LaterVersion:
    return LaterVersion(tmp_path_factory.mktemp("later"))


@pytest.fixture(params=["sqlite", "postgres"])
def database(
    request: pytest.FixtureRequest, tmp_path: Path, shared_postgres: PostgresServer
) -> Iterator[Database]:
    created: Database = (
        SqliteFile(tmp_path / "default.db") if request.param == "sqlite" else PostgresSchema(shared_postgres)
    )
    for title in TITLES:
        dittybag(tmp_path, "task", "add", title, "--db", created.url)
    yield created
    if isinstance(created, PostgresSchema):
        shared_postgres.sql(f"DROP SCHEMA {created.name} CASCADE")


def error_of_doctor(home: Path, database: Database) -> Any:
    result = dittybag(home, "doctor", "--db", database.url, "--json", status=1)
    assert (result.stderr, "secret" in result.stdout) == ("", False)
    (error,) = [finding for finding in data(result)["findings"] if finding["level"] == "error"]
    return error


def test_both_databases_have_the_same_migrations_up_to_the_newest() -> None:
    own = [(migration.number, migration.name) for migration in sqlite_migrations.load_migrations()]
    assert own == [(migration.number, migration.name) for migration in postgres_migrations.load_migrations()]
    assert [number for number, _ in own] == list(range(1, NEWEST_SCHEMA + 1))


def test_a_new_database_records_each_migration_once(database: Database) -> None:
    expected = [(migration.number, migration.name) for migration in sqlite_migrations.load_migrations()]
    assert database.sql(RECORDS) == expected


def test_a_later_version_migrates_a_database_in_sql_and_in_python(
    database: Database, tmp_path: Path, later: LaterVersion
) -> None:
    shown = later.run(tmp_path, "doctor", "--db", database.url)
    assert f"has schema {NEWEST_SCHEMA}; the next server or command upgrades it to {LATER_SCHEMA}" in shown
    assert database.sql(SCHEMA) == [(NEWEST_SCHEMA,)]

    shown = later.run(tmp_path, "task", "list", "--db", database.url)
    assert all(title in shown for title in TITLES)
    assert database.sql("SELECT task, length FROM title_lengths ORDER BY task") == LENGTHS
    assert database.sql(SCHEMA) == [(LATER_SCHEMA,)]
    later.run(tmp_path, "task", "add", "later", "--db", database.url)
    assert f"Schema {LATER_SCHEMA}, the newest" in later.run(tmp_path, "doctor", "--db", database.url)


@pytest.mark.parametrize("kill_at", [1, 3])
def test_a_migration_that_is_killed_is_made_by_the_next_command(
    database: Database, tmp_path: Path, later: LaterVersion, kill_at: int
) -> None:
    listed = ("task", "list", "--db", database.url)
    later.run(tmp_path, *listed, status=-signal.SIGKILL, KILL_AT=str(kill_at))
    assert database.sql(SCHEMA) == [(NEWEST_SCHEMA,)]
    # This version still opens it.
    assert TITLES[0] in dittybag(tmp_path, *listed).stdout
    later.run(tmp_path, *listed)
    assert database.sql("SELECT task, length FROM title_lengths ORDER BY task") == LENGTHS
    assert database.sql(SCHEMA) == [(LATER_SCHEMA,)]


def test_a_backup_of_an_earlier_version_is_migrated_when_it_is_restored(
    tmp_path: Path, later: LaterVersion
) -> None:
    for title in TITLES:
        dittybag(tmp_path, "task", "add", title)
    backup, restored = tmp_path / "backup.db", tmp_path / "restored.db"
    later.run(tmp_path, "backup", "create", str(backup))
    assert SqliteFile(backup).sql(SCHEMA) == [(NEWEST_SCHEMA,)]
    later.run(tmp_path, "backup", "restore", str(backup), "--db", str(restored))
    assert SqliteFile(restored).sql("SELECT task, length FROM title_lengths ORDER BY task") == LENGTHS
    assert SqliteFile(backup).sql(SCHEMA) == [(NEWEST_SCHEMA,)]


def test_the_schema_of_a_later_version_is_refused(
    database: Database, tmp_path: Path, later: LaterVersion
) -> None:
    later.run(tmp_path, "task", "list", "--db", database.url)
    error = error_of_doctor(tmp_path, database)
    assert error["topic"] == "schema"
    message = f"The database has schema {LATER_SCHEMA}; Dittybag {__version__} knows up to {NEWEST_SCHEMA}"
    assert error["message"] == message
    assert error["fix"] == "Upgrade Dittybag: a newer version wrote this database"
    for command in (("prompt", "list"), ("task", "add", "x")):
        refused = failure(dittybag(tmp_path, *command, "--db", database.url, "--json", status=5))
        assert refused["code"] == "STORAGE_TOO_NEW"
        assert VERSIONS in refused["message"]
        assert "secret" not in refused["message"]
    request = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    for options in ((), ("--http", "127.0.0.1:0")):
        ended = dittybag(tmp_path, "serve", "--db", database.url, *options, stdin=request, status=5)
        assert ended.stdout == ""
        assert ended.stderr == (
            f"error: {database.shown}: The database was written by a newer version of Dittybag; nothing was "
            f"changed. It {VERSIONS}. Upgrade Dittybag to open it\n"
        )


def require_unreleased(database: Database, home: Path) -> None:
    """Check that commands and the doctor refuse a database from before the first release."""
    refused = failure(dittybag(home, "task", "list", "--db", database.url, "--json", status=5))
    assert refused["code"] == "STORAGE_UNRELEASED"
    assert "unreleased version of Dittybag" in refused["message"]
    assert "Export it with the version that wrote it" in refused["message"]
    assert "unreleased version" in error_of_doctor(home, database)["message"]


def test_a_database_of_other_migrations_with_the_same_numbers_is_refused(
    database: Database, tmp_path: Path
) -> None:
    database.sql("UPDATE applied_migrations SET checksum = checksum + 1 WHERE number = 1")
    before = database.sql(RECORDS)
    require_unreleased(database, tmp_path)
    assert database.sql(RECORDS) == before


def test_a_file_from_before_the_first_release_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("application_id", 0x44697474)
        connection.pragma("journal_mode", "wal")
        connection.execute("CREATE TABLE migrations (number, name, applied_at)")
        connection.pragma("user_version", 16)
    before = path.read_bytes()
    require_unreleased(SqliteFile(path), tmp_path)
    for command in (
        ("backup", "create", str(tmp_path / "b.db"), "--db", str(path)),
        ("backup", "restore", str(path)),
    ):
        assert "unreleased version" in dittybag(tmp_path, *command, status=5).stderr
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["old.db"]


def test_a_postgresql_schema_from_before_the_first_release_is_refused(
    tmp_path: Path, shared_postgres: PostgresServer
) -> None:
    database = PostgresSchema(shared_postgres)
    shared_postgres.sql(
        f"CREATE SCHEMA {database.name}; SET search_path = {database.name};"
        "CREATE TABLE migrations (number bigint, name text, applied_at bigint);"
        "INSERT INTO migrations VALUES (16, 'add_pins', 1);"
        "COMMENT ON TABLE migrations IS 'The migrations of a Dittybag workspace'"
    )
    require_unreleased(database, tmp_path)
    assert database.sql("SELECT max(number) FROM migrations") == [(16,)]
    shared_postgres.sql(f"DROP SCHEMA {database.name} CASCADE")


def test_the_doctor_checks_a_postgresql_database_without_changing_it(
    shared_postgres: PostgresServer, tmp_path: Path
) -> None:
    empty = shared_postgres.url(schema="never_created")
    found = data(dittybag(tmp_path, "doctor", "--db", empty, "--json"))
    levels = {finding["topic"]: finding["level"] for finding in found["findings"]}
    assert (levels["database"], levels["schema"]) == ("ok", "note")
    assert "never_created" not in shared_postgres.sql("SELECT nspname FROM pg_namespace")
    result = dittybag(tmp_path, "doctor", "--db", empty, "--fix", status=2)
    assert "works with SQLite databases only" in result.stderr
