"""Opening a SQLite file: creation, migration, and the refusal of foreign files."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import apsw
import pytest

from dittybag.domain.errors import StorageError, StorageForeign, StorageTooNew
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from dittybag.storage.sqlite.migrations.sqlite_migrations import migrate
from dittybag.storage.sqlite.sqlite_connections import connect
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.stdio_server_process import ROOT
from tests.storage.sqlite.scripted_process import ScriptedProcess

PROCESSES = 10
ROUNDS = 20


def open_and_close(path: Path) -> None:
    asyncio.run(SqliteStore(str(path)).close())


def read_files(folder: Path) -> dict[str, bytes]:
    """Read every file of a folder, except SQLite's shared memory, which contains no data."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def make_sqlite(path: Path, *sql: str, killed: bool = False) -> None:
    """Create a SQLite file of another program. If `killed`, its write-ahead log is left behind."""
    program = f"import apsw, os\nconnection = apsw.Connection({str(path)!r})\n"
    program += "".join(f"connection.execute({statement!r})\n" for statement in sql)
    program += "os._exit(0)" if killed else "connection.close()"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


def test_a_missing_folder_is_created_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "new.db"
    open_and_close(path)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert query(path, "SELECT name FROM projects") == [(DEFAULT_PROJECT,)]


def test_a_new_database_and_its_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "new.db"
    with ScriptedProcess("sqlite_opener", under=["sh", "-c", 'umask 022 && exec "$@"', "sh"]) as child:
        assert child.read_reply() == "ready"
        assert child.request(f"{path} --keep")["write"] == "ok"
        modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "one").rglob("*")}
    assert modes == {"two": 0o700, "new.db": 0o600, "new.db-wal": 0o600, "new.db-shm": 0o600}
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o700


def test_the_permissions_of_an_existing_database_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    path.touch(0o640)
    path.chmod(0o640)
    open_and_close(path)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "name", ["päth with blanks.db", "100%.db", "a'b\"c.db", "file:x?mode=ro", "-x.db", "🎒"]
)
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    open_and_close(path)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert query(path, "SELECT name FROM projects") == [(DEFAULT_PROJECT,)]


def test_an_empty_file_becomes_a_new_database(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    open_and_close(path)
    assert query(path, "SELECT name FROM projects") == [(DEFAULT_PROJECT,)]


def test_reopening_a_file_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    open_and_close(path)
    before = read_files(tmp_path)
    open_and_close(path)
    assert read_files(tmp_path) == before


@pytest.mark.parametrize("newer", [1, 2, 1000])
def test_a_newer_schema_is_refused_and_left_unchanged(tmp_path: Path, newer: int) -> None:
    path = tmp_path / "newer.db"
    open_and_close(path)
    query(path, f"PRAGMA user_version = {NEWEST_SCHEMA + newer}")
    before = read_files(tmp_path)
    with pytest.raises(StorageTooNew) as caught:
        SqliteStore(str(path))
    assert (caught.value.found, caught.value.known) == (NEWEST_SCHEMA + newer, NEWEST_SCHEMA)
    assert caught.value.where == str(path)
    assert read_files(tmp_path) == before


def test_migrate_refuses_a_newer_schema(tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    open_and_close(path)
    query(path, f"PRAGMA user_version = {NEWEST_SCHEMA + 1}")
    before = read_files(tmp_path)
    with pytest.raises(StorageTooNew):
        migrate(str(path))
    assert read_files(tmp_path) == before


def test_serving_a_newer_schema_says_what_to_do_on_stderr_only(tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    open_and_close(path)
    query(path, f"PRAGMA user_version = {NEWEST_SCHEMA + 1}")
    ended = subprocess.run(
        [sys.executable, "-m", "dittybag", "serve", "--db", str(path)],
        input=b"",
        capture_output=True,
        cwd=ROOT,
        timeout=30,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (5, b"")
    assert "newer version of Dittybag" in ended.stderr.decode()
    assert str(path) in ended.stderr.decode()


FOREIGN_SQLITE = {
    "with a table": ["CREATE TABLE t (x)", "INSERT INTO t VALUES (1)"],
    "with tables of the same names": ["CREATE TABLE projects (id)", "CREATE TABLE prompts (id)"],
    "with the same schema version": [f"PRAGMA user_version = {NEWEST_SCHEMA}"],
    "with another application id": ["PRAGMA application_id = 42"],
    "with all of that": [
        "PRAGMA application_id = 42",
        f"PRAGMA user_version = {NEWEST_SCHEMA}",
        "CREATE TABLE applied_migrations (number)",
    ],
    "with a write-ahead log": ["PRAGMA journal_mode = wal", "CREATE TABLE t (x)"],
}


@pytest.mark.parametrize("sql", FOREIGN_SQLITE.values(), ids=list(FOREIGN_SQLITE))
def test_another_programs_sqlite_file_is_refused_and_left_unchanged(tmp_path: Path, sql: list[str]) -> None:
    path = tmp_path / "foreign.db"
    make_sqlite(path, *sql)
    before = read_files(tmp_path)
    with pytest.raises(StorageForeign):
        SqliteStore(str(path))
    assert read_files(tmp_path) == before


def test_another_programs_write_ahead_log_is_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    make_sqlite(path, *FOREIGN_SQLITE["with a write-ahead log"], killed=True)
    before = read_files(tmp_path)
    assert before["foreign.db-wal"]
    with pytest.raises(StorageForeign):
        SqliteStore(str(path))
    assert read_files(tmp_path) == before


NOT_DATABASES = {
    "two bytes": b"x\n",
    "a text": b"Dear diary,\n" * 1000,
    "a short text": b"hello\n",
    "zeros": bytes(8192),
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 64,
    "half a header": b"SQLite format 3\0",
    "a header and nonsense": b"SQLite format 3\0" + bytes(range(255, -1, -1)) * 32,
}


@pytest.mark.parametrize("content", NOT_DATABASES.values(), ids=list(NOT_DATABASES))
def test_a_file_that_is_not_a_database_is_refused_and_left_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "diary.txt"
    path.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        SqliteStore(str(path))
    assert caught.value.code in ("STORAGE_FOREIGN", "STORAGE_DAMAGED")
    assert read_files(tmp_path) == {"diary.txt": content}


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        SqliteStore(str(tmp_path))
    with pytest.raises(StorageError):
        SqliteStore("/dev/null/store.db")
    assert list(tmp_path.iterdir()) == []


def test_ten_processes_that_open_a_new_file_together_create_it_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        children = [stack.enter_context(ScriptedProcess("sqlite_opener")) for _ in range(PROCESSES)]
        assert [child.read_reply() for child in children] == ["ready"] * PROCESSES
        for number in range(ROUNDS):
            path = tmp_path / f"{number}.db"
            for child in children:
                child.send(str(path))
            outcomes = [child.read_reply() for child in children]
            assert outcomes == [{"open": "ok", "read": "ok", "write": "ok"}] * PROCESSES, number
            assert query(path, "SELECT count(*) FROM applied_migrations") == [(NEWEST_SCHEMA,)]
            assert query(path, "SELECT name FROM projects") == [(DEFAULT_PROJECT,)]
            assert query(path, "SELECT count(*) FROM changes WHERE kind = 'project'") == [(1,)]
            assert query(path, "SELECT count(*) FROM tasks") == [(PROCESSES,)]


def test_opening_waits_for_another_process_that_is_creating_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    errors: list[StorageError] = []

    def open_it() -> None:
        try:
            open_and_close(path)
        except StorageError as error:
            errors.append(error)

    with ScriptedProcess("lock_holder", str(path)) as holder:
        assert holder.read_reply() == "ready"
        assert holder.request("lock") == "locked"
        opening = threading.Thread(target=open_it)
        opening.start()
        # It would end immediately if it did not wait.
        opening.join(0.3)
        assert holder.request("free") == "free"
        opening.join(10)
    assert not opening.is_alive()
    assert errors == []


def test_a_location_without_write_ahead_log_is_refused_immediately(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "dittybag", "project", "create", "x", "--db", ":memory:"],
        capture_output=True,
        cwd=tmp_path,
        timeout=20,
        check=False,
    )
    assert ended.returncode in (2, 5), "neither a settings error nor a storage error"
    assert ended.stdout == b""
    assert ended.stderr.startswith(b"error: ")


@pytest.mark.parametrize("writable", [True, False])
def test_every_connection_waits_for_the_medium(tmp_path: Path, *, writable: bool) -> None:
    """Linux ignores the last two; on macOS, a write would otherwise wait for the cache of the disk only."""
    path = str(tmp_path / "a.db")
    connect(path, writable=True).close()
    with closing(connect(path, writable=writable)) as connection:
        # 2: FULL.
        assert connection.pragma("synchronous") == 2
        assert connection.pragma("fullfsync") == 1
        assert connection.pragma("checkpoint_fullfsync") == 1
