"""`dittybag copy`: from SQLite to PostgreSQL and back, also after an interruption."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import apsw
import pytest

from tests.cli.cli_runner import data, dittybag, failure
from tests.exchange.exchange_data import fill_database
from tests.exchange.exchange_fixtures import dump_tables
from tests.postgres_servers import PostgresServer
from tests.repetitions import repetitions
from tests.stdio_server_process import ROOT

#: Number of prompts, resources and tasks, each with a history.
ENTITIES = repetitions(600, 50_000)
#: The last sequence number of a new store: it has a default project.
NEW_STORE_SEQ = 1
#: Timeout of a command.
TIMEOUT_SECONDS = 30.0 + ENTITIES / 50

pytestmark = pytest.mark.timeout(120 + 12 * TIMEOUT_SECONDS if ENTITIES > 2000 else 120)

schema_numbers = count(1)


@pytest.fixture
def server(shared_postgres: PostgresServer) -> PostgresServer:
    return shared_postgres


@pytest.fixture
def schema() -> str:
    """The name of a schema without a workspace."""
    return f"copy_{next(schema_numbers)}"


@pytest.fixture
def url(server: PostgresServer, schema: str) -> str:
    return server.url(schema=schema)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source database, which no test writes to."""
    home = tmp_path_factory.mktemp("source")
    path = home / "source.db"
    asyncio.run(
        fill_database(
            path, ENTITIES // 2 + ENTITIES // 40, ENTITIES // 10, ENTITIES * 2 // 5 + ENTITIES // 40
        )
    )
    dittybag(home, "user", "add", "ann", "--db", str(path))
    dittybag(home, "token", "create", "--user", "ann", "--scope", "write", "--db", str(path))
    dittybag(home, "project", "share", "side", "ann", "--db", str(path))
    return path


def start_command(home: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "DITTYBAG_HOME": str(home)}
    command = [sys.executable, "-m", "dittybag", *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def run_command(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that may take a long time."""
    with start_command(home, *arguments) as process:
        out, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0
    return subprocess.CompletedProcess(arguments, 0, out)


def export_workspace(home: Path, database: str) -> str:
    return run_command(home, "export", "-", "--db", database).stdout


def list_accounts(home: Path, database: str) -> list[object]:
    commands = (("user", "list"), ("token", "list"), ("project", "show", "side"))
    return [data(dittybag(home, *words, "--db", database, "--json")) for words in commands]


def test_a_round_trip_preserves_everything(tmp_path: Path, database: Path, url: str) -> None:
    result = run_command(tmp_path, "copy", "--from", str(database), "--to", url)
    assert "verified: " in result.stdout
    back = tmp_path / "back.db"
    copied = data(run_command(tmp_path, "copy", "--from", url, "--to", str(back), "--json"))
    assert copied["changes"] == copied["copied"] > 2 * ENTITIES
    assert copied["entities"]["project"] == 3
    assert sum(copied["entities"].values()) >= ENTITIES
    whole = export_workspace(tmp_path, str(database))
    assert export_workspace(tmp_path, url) == whole
    assert dump_tables(back) == dump_tables(database)
    assert (
        list_accounts(tmp_path, url)
        == list_accounts(tmp_path, str(back))
        == list_accounts(tmp_path, str(database))
    )
    assert data(run_command(tmp_path, "doctor", "--db", str(back), "--json"))["errors"] == 0


#: The tables that follow from tasks, in the same form on both databases.
TASK_TABLES = (
    "SELECT task, blocker, part FROM {}task_edges ORDER BY 1, 2, 3",
    """SELECT task, status, "user", project_id, project, assignee, priority, due, waits_for
       FROM {}open_tasks ORDER BY 1""",
)


def read_rows(path: Path, sql: str) -> list[str]:
    """Return rows of a file as the server prints them."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return [
            "|".join("" if value is None else str(value) for value in row) for row in connection.execute(sql)
        ]


def test_the_edges_and_open_tasks_are_copied_but_not_the_claims(
    tmp_path: Path, database: Path, server: PostgresServer, schema: str, url: str
) -> None:
    source, back = tmp_path / "source.db", tmp_path / "back.db"
    shutil.copy(database, source)
    with closing(apsw.Connection(str(source))) as connection:
        connection.execute(
            "INSERT INTO claims SELECT id, 1, 'ann', 'c', 1, 1, 1 FROM tasks WHERE status = 'doing' LIMIT 3"
        )
    run_command(tmp_path, "copy", "--from", str(source), "--to", url)
    run_command(tmp_path, "copy", "--from", url, "--to", str(back))
    for sql in TASK_TABLES:
        rows = read_rows(source, sql.format(""))
        assert len(rows) > 50
        assert server.sql(sql.format(f"{schema}.")) == rows
        assert read_rows(back, sql.format("")) == rows
    assert read_rows(source, "SELECT count(*) FROM claims") == ["3"]
    assert server.sql(f"SELECT count(*) FROM {schema}.claims") == ["0"]
    assert read_rows(back, "SELECT count(*) FROM claims") == ["0"]


def test_an_export_is_restored_on_a_server(
    tmp_path: Path, database: Path, server: PostgresServer, schema: str
) -> None:
    url, file = server.url(schema=schema), tmp_path / "all.json"
    run_command(tmp_path, "export", str(file), "--db", str(database))
    run_command(tmp_path, "import", str(file), "--db", url)
    assert run_command(tmp_path, "export", "-", "--db", url).stdout == file.read_text()
    assert server.sql(TASK_TABLES[1].format(f"{schema}.")) == read_rows(database, TASK_TABLES[1].format(""))


def test_an_export_is_merged_on_a_server_once(
    tmp_path: Path, database: Path, server: PostgresServer, schema: str, url: str
) -> None:
    dittybag(tmp_path, "task", "add", "Here before", "--db", url)
    file = tmp_path / "all.json"
    run_command(tmp_path, "export", str(file), "--db", str(database))
    [tasks] = read_rows(database, "SELECT count(*) FROM tasks")
    for created, skipped in ((int(tasks), 0), (0, int(tasks))):
        result = data(run_command(tmp_path, "import", str(file), "--db", url, "--json"))
        assert (result["imported"]["tasks"], result["skipped"]["tasks"]) == (created, skipped)
    titles = """SELECT a.title, a.created_at, b.title, b.created_at, part FROM {0}task_edges
                JOIN {0}tasks AS a ON a.id = task JOIN {0}tasks AS b ON b.id = blocker
                ORDER BY 2, 4, 5, 1, 3"""
    assert server.sql(titles.format(f"{schema}.")) == read_rows(database, titles.format(""))
    waiting = "SELECT count(*), sum(waits_for) FROM {}open_tasks WHERE waits_for > 0"
    assert server.sql(waiting.format(f"{schema}.")) == read_rows(database, waiting.format(""))


def last_seq_in_file(path: Path) -> int:
    """Return the sequence number of the last change; 0 if the database does not exist yet."""
    if not path.exists():
        return 0
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        connection.set_busy_timeout(1000)
        has_log = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'changes'").fetchall()
        return int(connection.execute("SELECT max(seq) FROM changes").fetchall()[0][0] or 0) if has_log else 0


def last_seq_in_schema(server: PostgresServer, schema: str) -> int:
    if not server.sql(f"SELECT 1 FROM pg_tables WHERE schemaname = '{schema}' AND tablename = 'changes'"):
        return 0
    return int(server.sql(f"SELECT coalesce(max(seq), 0) FROM {schema}.changes")[0])


def kill_after_first_changes(process: subprocess.Popen[str], last_seq: Callable[[], int]) -> int:
    """Kill a copy once it has copied something; return the sequence number of the last copied change."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while last_seq() <= NEW_STORE_SEQ:
        assert process.poll() is None, "the copy finished before it was killed"
        assert time.monotonic() < deadline
    process.kill()
    process.communicate()
    return last_seq()


@pytest.mark.parametrize("to_server", [True, False])
def test_a_killed_copy_is_resumed(
    tmp_path: Path, database: Path, server: PostgresServer, schema: str, url: str, *, to_server: bool
) -> None:
    source, target, total = str(database), url, last_seq_in_file(database)

    def last_seq() -> int:
        return last_seq_in_schema(server, schema) if to_server else last_seq_in_file(Path(target))

    if not to_server:
        run_command(tmp_path, "copy", "--from", source, "--to", url)
        source, target = url, str(tmp_path / "back.db")
    copied_seq = kill_after_first_changes(
        start_command(tmp_path, "copy", "--from", source, "--to", target), last_seq
    )
    assert NEW_STORE_SEQ < copied_seq < total
    copied = data(run_command(tmp_path, "copy", "--from", source, "--to", target, "--json"))
    assert (copied["changes"], copied["copied"]) == (total, total - copied_seq)
    assert export_workspace(tmp_path, target) == export_workspace(tmp_path, str(database))
    assert list_accounts(tmp_path, target) == list_accounts(tmp_path, str(database))
    again = data(run_command(tmp_path, "copy", "--from", source, "--to", target, "--json"))
    assert again["copied"] == 0


def test_a_target_with_other_data_is_refused(tmp_path: Path, database: Path, url: str) -> None:
    for number in range(3):
        dittybag(tmp_path, "task", "add", f"Mine {number}", "--db", url)
    before = export_workspace(tmp_path, url)
    result = dittybag(tmp_path, "copy", "--from", str(database), "--to", url, "--json", status=1)
    assert failure(result)["code"] == "COPY_REFUSED"
    assert export_workspace(tmp_path, url) == before


def test_invalid_sources_and_targets_are_refused(tmp_path: Path, database: Path) -> None:
    missing = dittybag(tmp_path, "copy", "--from", "none.db", "--to", "x.db", "--json", status=3)
    assert failure(missing)["code"] == "NOT_FOUND"
    dittybag(tmp_path, "copy", "--from", str(database), "--to", str(database), status=1)
    dittybag(tmp_path, "copy", "--from", str(database), status=2)


def test_a_password_is_never_shown(tmp_path: Path, database: Path) -> None:
    unreachable = "postgresql://ann:s3cret-word@127.0.0.1:1/notes"
    result = dittybag(tmp_path, "copy", "--from", str(database), "--to", unreachable, status=5)
    assert "127.0.0.1:1/notes" in result.stderr
    assert "s3cret" not in result.stderr + result.stdout


def test_commands_work_with_a_postgres_database(tmp_path: Path, url: str) -> None:
    dittybag(tmp_path, "prompt", "add", "greeting", "Hello {{ who }}.", "-a", "who", "--db", url)
    rendered = dittybag(tmp_path, "prompt", "render", "greeting", "who=you", "--db", url)
    assert rendered.stdout == "Hello you."
    assert data(dittybag(tmp_path, "search", "HELLO", "--db", url, "--json"))["total"] == 1
    dittybag(tmp_path, "prompt", "delete", "greeting", "--db", url)
    dittybag(tmp_path, "undo", "--yes", variables={"DITTYBAG_DATABASE_URL": url})
    assert dittybag(tmp_path, "prompt", "show", "greeting", "--db", url).stdout == "Hello {{ who }}."
    assert "PostgreSQL" in dittybag(tmp_path, "doctor", "--db", url).stdout
    refused = dittybag(tmp_path, "backup", "create", str(tmp_path / "b.db"), "--db", url, status=2)
    assert "PostgreSQL" in refused.stderr
