"""`dittybag copy`: from SQLite to PostgreSQL and back, with history and interruptions."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import apsw
import pytest

from tests.cli.cli_runner import data, dittybag, failure
from tests.exchange.exchange_data import fill_database
from tests.postgres_servers import PostgresServer, run_postgres
from tests.stdio_server_process import ROOT

#: Prompts, resources and tasks, each with a history. `COPY_THINGS=50000` is a long run.
THINGS = int(os.environ.get("COPY_THINGS", "2000"))
#: Timeout of one command.
SECONDS = 30.0 + THINGS / 50

pytestmark = pytest.mark.timeout(120 + 12 * SECONDS if THINGS > 2000 else 120)

numbers = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with run_postgres("bundled") as server:
        yield server


@pytest.fixture
def schema() -> str:
    """The name of a schema without a workspace."""
    return f"copy_{next(numbers)}"


@pytest.fixture
def url(server: PostgresServer, schema: str) -> str:
    return server.url(schema=schema)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source database, which no test writes to."""
    home = tmp_path_factory.mktemp("source")
    path = home / "source.db"
    asyncio.run(fill_database(path, THINGS // 2 + THINGS // 40, THINGS // 10, THINGS * 2 // 5 + THINGS // 40))
    dittybag(home, "user", "add", "ann", "--db", str(path))
    dittybag(home, "token", "create", "--user", "ann", "--scope", "write", "--db", str(path))
    dittybag(home, "project", "share", "side", "ann", "--db", str(path))
    return path


def started(home: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "DITTYBAG_HOME": str(home)}
    command = [sys.executable, "-m", "dittybag", *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def finished(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that may take long."""
    with started(home, *arguments) as process:
        out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    return subprocess.CompletedProcess(arguments, 0, out)


def exported(home: Path, database: str) -> str:
    """Return the export of a workspace, with its history."""
    return finished(home, "export", "-", "--db", database).stdout


def accounts(home: Path, database: str) -> list[object]:
    asked = (("user", "list"), ("token", "list"), ("project", "members", "side"))
    return [data(dittybag(home, *words, "--db", database, "--json")) for words in asked]


def test_there_and_back_nothing_is_lost(tmp_path: Path, database: Path, url: str) -> None:
    done = finished(tmp_path, "copy", "--from", str(database), "--to", url)
    assert "verified: " in done.stdout
    back = tmp_path / "back.db"
    copied = data(finished(tmp_path, "copy", "--from", url, "--to", str(back), "--json"))
    assert copied["changes"] == copied["copied"] > 2 * THINGS
    assert copied["entities"]["project"] == 3
    assert sum(copied["entities"].values()) >= THINGS
    whole = exported(tmp_path, str(database))
    assert exported(tmp_path, url) == whole
    assert exported(tmp_path, str(back)) == whole
    assert accounts(tmp_path, url) == accounts(tmp_path, str(back)) == accounts(tmp_path, str(database))
    assert data(finished(tmp_path, "doctor", "--db", str(back), "--json"))["errors"] == 0


def newest_in_file(path: Path) -> int:
    """Return the sequence number of the last change; 0 if the database does not exist yet."""
    if not path.exists():
        return 0
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        connection.set_busy_timeout(1000)
        has_log = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'changes'").fetchall()
        return int(connection.execute("SELECT max(seq) FROM changes").fetchall()[0][0] or 0) if has_log else 0


def newest_in_schema(server: PostgresServer, schema: str) -> int:
    if not server.sql(f"SELECT 1 FROM pg_tables WHERE schemaname = '{schema}' AND tablename = 'changes'"):
        return 0
    return int(server.sql(f"SELECT coalesce(max(seq), 0) FROM {schema}.changes")[0])


def killed_half_way(process: subprocess.Popen[str], newest: Callable[[], int], total: int) -> int:
    """Kill a copy when a third is done; return the sequence number of the last copied change."""
    deadline = time.monotonic() + SECONDS
    while newest() < total // 3:
        assert process.poll() is None, "it has ended before it could be killed"
        assert time.monotonic() < deadline
    process.kill()
    process.communicate()
    return newest()


@pytest.mark.parametrize("to_server", [True, False])
def test_a_copy_that_was_killed_is_gone_on_with(
    tmp_path: Path, database: Path, server: PostgresServer, schema: str, url: str, *, to_server: bool
) -> None:
    source, target, total = str(database), url, newest_in_file(database)

    def newest() -> int:
        return newest_in_schema(server, schema) if to_server else newest_in_file(Path(target))

    if not to_server:
        finished(tmp_path, "copy", "--from", source, "--to", url)
        source, target = url, str(tmp_path / "back.db")
    done = killed_half_way(started(tmp_path, "copy", "--from", source, "--to", target), newest, total)
    assert total // 3 <= done < total
    copied = data(finished(tmp_path, "copy", "--from", source, "--to", target, "--json"))
    assert (copied["changes"], copied["copied"]) == (total, total - done)
    assert exported(tmp_path, target) == exported(tmp_path, str(database))
    assert accounts(tmp_path, target) == accounts(tmp_path, str(database))
    again = data(finished(tmp_path, "copy", "--from", source, "--to", target, "--json"))
    assert again["copied"] == 0


def test_nothing_else_is_overwritten(tmp_path: Path, database: Path, url: str) -> None:
    for number in range(3):
        dittybag(tmp_path, "task", "add", f"Mine {number}", "--db", url)
    before = exported(tmp_path, url)
    done = dittybag(tmp_path, "copy", "--from", str(database), "--to", url, "--json", status=1)
    assert failure(done)["code"] == "COPY_REFUSED"
    assert exported(tmp_path, url) == before


def test_what_makes_no_sense(tmp_path: Path, database: Path) -> None:
    missing = dittybag(tmp_path, "copy", "--from", "none.db", "--to", "x.db", "--json", status=3)
    assert failure(missing)["code"] == "NOT_FOUND"
    dittybag(tmp_path, "copy", "--from", str(database), "--to", str(database), status=1)
    dittybag(tmp_path, "copy", "--from", str(database), status=2)


def test_a_password_is_never_shown(tmp_path: Path, database: Path) -> None:
    away = "postgresql://ann:s3cret-word@127.0.0.1:1/notes"
    done = dittybag(tmp_path, "copy", "--from", str(database), "--to", away, status=5)
    assert "127.0.0.1:1/notes" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout


def test_commands_work_on_a_server_like_on_a_file(tmp_path: Path, url: str) -> None:
    dittybag(tmp_path, "prompt", "add", "greeting", "Hello {{ who }}.", "-a", "who", "--db", url)
    rendered = dittybag(tmp_path, "prompt", "render", "greeting", "who=you", "--db", url)
    assert rendered.stdout == "Hello you."
    assert data(dittybag(tmp_path, "search", "HELLO", "--db", url, "--json"))["totals"]["prompt"] == 1
    dittybag(tmp_path, "prompt", "delete", "greeting", "--db", url)
    dittybag(tmp_path, "undo", "--yes", variables={"DITTYBAG_DATABASE_URL": url})
    assert dittybag(tmp_path, "prompt", "show", "greeting", "--db", url).stdout == "Hello {{ who }}."
    for words in (("backup", str(tmp_path / "b.db")), ("doctor",)):
        refused = dittybag(tmp_path, *words, "--db", url, status=2)
        assert "PostgreSQL" in refused.stderr
