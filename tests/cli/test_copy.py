"""`satchel copy`: a workspace from SQLite to PostgreSQL and back, with its history, also in several goes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.cli.running import data, failure, satchel
from tests.databases import Server, running
from tests.exchange.filling import fill
from tests.wire import ROOT

numbers = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running("carried") as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    """Where no workspace is yet."""
    return server.url(schema=f"copy_{next(numbers)}")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "source.db"
    asyncio.run(fill(path, 300, 60, 300))
    satchel(tmp_path, "user", "add", "ann", "--db", str(path))
    satchel(tmp_path, "token", "create", "--user", "ann", "--scope", "write", "--db", str(path))
    satchel(tmp_path, "project", "share", "side", "ann", "--db", str(path))
    return path


def exported(home: Path, database: str) -> str:
    """All there is in a workspace, with its history."""
    return satchel(home, "export", "-", "--db", database).stdout


def accounts(home: Path, database: str) -> list[object]:
    asked = (("user", "list"), ("token", "list"), ("project", "members", "side"))
    return [data(satchel(home, *words, "--db", database, "--json")) for words in asked]


def test_there_and_back_nothing_is_lost(tmp_path: Path, database: Path, url: str) -> None:
    done = satchel(tmp_path, "copy", "--from", str(database), "--to", url)
    assert "both are equal" in done.stdout
    back = tmp_path / "back.db"
    copied = data(satchel(tmp_path, "copy", "--from", url, "--to", str(back), "--json"))
    assert copied["changes"] == copied["copied"] > 1000
    assert copied["things"]["project"] == 3
    whole = exported(tmp_path, str(database))
    assert exported(tmp_path, url) == whole
    assert exported(tmp_path, str(back)) == whole
    assert accounts(tmp_path, url) == accounts(tmp_path, str(back)) == accounts(tmp_path, str(database))
    assert data(satchel(tmp_path, "doctor", "--db", str(back), "--json"))["errors"] == 0


@pytest.mark.parametrize("to_server", [True, False])
def test_a_copy_that_was_killed_is_gone_on_with(
    tmp_path: Path, database: Path, url: str, *, to_server: bool
) -> None:
    source, target = str(database), url
    if not to_server:
        satchel(tmp_path, "copy", "--from", source, "--to", url)
        source, target = url, str(tmp_path / "back.db")
    command = [sys.executable, "-m", "satchel", "copy", "--from", source, "--to", target]
    environment = {**os.environ, "SATCHEL_HOME": str(tmp_path)}
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    # As soon as anything of it is there.
    while process.poll() is None:
        listed = satchel(tmp_path, "history", "--limit", "2", "--db", target, "--json")
        if len(data(listed)["changes"]) == 2:
            process.kill()
            break
    process.wait()
    copied = data(satchel(tmp_path, "copy", "--from", source, "--to", target, "--json"))
    assert copied["copied"] <= copied["changes"]
    assert exported(tmp_path, target) == exported(tmp_path, source)
    again = data(satchel(tmp_path, "copy", "--from", source, "--to", target, "--json"))
    assert again["copied"] == 0


def test_nothing_else_is_overwritten(tmp_path: Path, database: Path, url: str) -> None:
    for number in range(3):
        satchel(tmp_path, "task", "add", f"Mine {number}", "--db", url)
    before = exported(tmp_path, url)
    done = satchel(tmp_path, "copy", "--from", str(database), "--to", url, "--json", status=1)
    assert failure(done)["code"] == "COPY_REFUSED"
    assert exported(tmp_path, url) == before


def test_what_makes_no_sense(tmp_path: Path, database: Path) -> None:
    missing = satchel(tmp_path, "copy", "--from", "none.db", "--to", "x.db", "--json", status=3)
    assert failure(missing)["code"] == "NOT_FOUND"
    satchel(tmp_path, "copy", "--from", str(database), "--to", str(database), status=1)
    satchel(tmp_path, "copy", "--from", str(database), status=2)


def test_a_password_is_never_shown(tmp_path: Path, database: Path) -> None:
    away = "postgresql://ann:s3cret-word@127.0.0.1:1/notes"
    done = satchel(tmp_path, "copy", "--from", str(database), "--to", away, status=5)
    assert "127.0.0.1:1/notes" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout


def test_commands_work_on_a_server_like_on_a_file(tmp_path: Path, url: str) -> None:
    satchel(tmp_path, "prompt", "add", "greeting", "Hello {{ who }}.", "-a", "who", "--db", url)
    rendered = satchel(tmp_path, "prompt", "render", "greeting", "who=you", "--db", url)
    assert rendered.stdout == "Hello you."
    assert data(satchel(tmp_path, "search", "HELLO", "--db", url, "--json"))["totals"]["prompt"] == 1
    satchel(tmp_path, "prompt", "delete", "greeting", "--db", url)
    satchel(tmp_path, "undo", "--yes", variables={"SATCHEL_DATABASE_URL": url})
    assert satchel(tmp_path, "prompt", "show", "greeting", "--db", url).stdout == "Hello {{ who }}."
    for words in (("backup", str(tmp_path / "b.db")), ("doctor",)):
        refused = satchel(tmp_path, *words, "--db", url, status=2)
        assert "PostgreSQL" in refused.stderr
