"""A database that a newer version has upgraded: what commands, servers and the doctor say about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from dittybag import __version__
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from tests.cli.cli_runner import data, dittybag, failure
from tests.postgres_servers import PostgresServer
from tests.upgrades.golden_release import RELEASES, GoldenRelease

NEWER = NEWEST_SCHEMA + 3
RELEASE = GoldenRelease(RELEASES / "0.1.0")
VERSIONS = f"has schema {NEWER}, and Dittybag {__version__} knows up to {NEWEST_SCHEMA}"


def newer_sqlite(folder: Path, _server: PostgresServer) -> tuple[str, str]:
    """Return the name and the shown name of a database."""
    file = folder / "default.db"
    RELEASE.write_database(file)
    dittybag(folder, "prompt", "list")
    with closing(apsw.Connection(str(file))) as connection:
        connection.pragma("user_version", NEWER)
    return str(file), str(file)


def newer_postgres(folder: Path, server: PostgresServer) -> tuple[str, str]:
    server.sql("CREATE DATABASE newer")
    server.sql(RELEASE.postgres_dump(), "newer")
    url = server.url("newer", schema="golden", password="secret")
    dittybag(folder, "prompt", "list", "--db", url)
    server.sql(f"INSERT INTO golden.migrations VALUES ({NEWER}, 'later', 1)", "newer")
    return url, url.replace(":secret", "")


@pytest.fixture(params=[newer_sqlite, newer_postgres], ids=["sqlite", "postgres"])
def database(
    request: pytest.FixtureRequest, tmp_path: Path, shared_postgres: PostgresServer
) -> Iterator[tuple[str, str]]:
    create: Callable[[Path, PostgresServer], tuple[str, str]] = request.param
    yield create(tmp_path, shared_postgres)
    shared_postgres.sql("DROP DATABASE IF EXISTS newer WITH (FORCE)")


def test_the_doctor_names_both_versions_and_what_to_do(database: tuple[str, str], tmp_path: Path) -> None:
    result = dittybag(tmp_path, "doctor", "--db", database[0], "--json", status=1)
    assert (result.stderr, "secret" in result.stdout) == ("", False)
    found = data(result)
    assert found["database"] == database[1]
    (error,) = [finding for finding in found["findings"] if finding["level"] == "error"]
    assert error["topic"] == "schema"
    message = f"The database has schema {NEWER}; Dittybag {__version__} knows up to {NEWEST_SCHEMA}"
    assert error["message"] == message
    assert error["fix"] == "Upgrade Dittybag: a newer version wrote this database"


def test_commands_and_servers_end_and_name_both_versions(database: tuple[str, str], tmp_path: Path) -> None:
    for command in (("prompt", "list"), ("task", "add", "x")):
        error = failure(dittybag(tmp_path, *command, "--db", database[0], "--json", status=5))
        assert error["code"] == "STORAGE_TOO_NEW"
        assert VERSIONS in error["message"]
        assert "secret" not in error["message"]
    request = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    for options in ((), ("--http", "127.0.0.1:0")):
        ended = dittybag(tmp_path, "serve", "--db", database[0], *options, stdin=request, status=5)
        assert ended.stdout == ""
        assert ended.stderr == (
            f"error: {database[1]}: The database was written by a newer version of Dittybag; nothing was "
            f"changed. It {VERSIONS}. Upgrade Dittybag to open it\n"
        )


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
