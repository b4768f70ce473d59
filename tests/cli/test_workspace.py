"""`dittybag workspaces`, and commands on a workspace that does not exist."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dittybag.storage.postgres.postgres_connections import connect, parse_address
from tests.cli.cli_runner import data, dittybag, failure
from tests.postgres_servers import PostgresServer

NOT_CREATING = [
    ("prompt", "list"),
    ("prompt", "show", "x"),
    ("prompt", "render", "x"),
    ("prompt", "render", "team:x"),
    ("prompt", "edit", "x", "y"),
    ("resource", "list"),
    ("resource", "edit", "x", "--title", "y"),
    ("task", "list"),
    ("task", "done", "1"),
    ("tag", "rename", "x", "y"),
    ("project", "list"),
    ("project", "rename", "x", "y"),
    ("search", "x"),
    ("history",),
    ("history", "1", "--diff"),
    ("undo", "--yes"),
    ("export", "out.json"),
    ("user", "list"),
    ("token", "create", "--user", "ann", "--scope", "read"),
]
#: Commands that answer on the default workspace before its first write.
EMPTY: dict[tuple[str, ...], str] = {
    ("prompt", "list"): "No prompts yet",
    ("resource", "list"): "No resources yet",
    ("task", "list"): "No tasks",
    ("tag", "list"): "No tags yet",
    ("search", "x"): "No results",
    ("history", "x"): "No matching changes",
    ("user", "list"): "No users yet",
    ("token", "list"): "No tokens",
}


#: Prints how many temporary folders a command makes.
COUNT_FOLDERS = """
import sys
made = []
sys.addaudithook(lambda event, arguments: made.append(arguments) if event == "tempfile.mkdtemp" else None)
from dittybag.cli.commands import main
main(sys.argv[1:])
print(len(made))
"""


def test_one_temporary_workspace_serves_a_command_before_the_first_write(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COUNT_FOLDERS, "prompt", "list"]
    environment = {**os.environ, "DITTYBAG_HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "1\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", NOT_CREATING, ids=" ".join)
def test_a_mistyped_workspace_is_reported_and_not_created(tmp_path: Path, command: tuple[str, ...]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "work.db").touch()
    out = [str(tmp_path / part) if part.endswith((".json", ".db")) else part for part in command]
    wrong = dittybag(home, *out, "--workspace", "wrok", status=3)
    assert wrong.stdout == ""
    message, *hints = wrong.stderr.splitlines()
    assert message == f"error: There is no Dittybag database at {home / 'wrok.db'}"
    assert hints[0] == "hint: did you mean work?"
    assert [file.name for file in home.iterdir()] == ["work.db"]
    assert list(tmp_path.iterdir()) == [home]


@pytest.mark.parametrize("command", EMPTY, ids=" ".join)
def test_reading_does_not_create_the_default_workspace(tmp_path: Path, command: tuple[str, ...]) -> None:
    result = dittybag(tmp_path, *command)
    assert result.stdout == ""
    assert result.stderr.startswith(EMPTY[command])
    assert list(tmp_path.iterdir()) == []


def test_a_missing_database_is_reported_with_those_in_its_folder(tmp_path: Path) -> None:
    dittybag(tmp_path, "task", "add", "x", "--db", str(tmp_path / "data" / "notes.db"))
    missing = tmp_path / "data" / "ntes.db"
    error = failure(dittybag(tmp_path, "task", "list", "--db", str(missing), "--json", status=3))
    assert error["code"] == "WORKSPACE_NOT_FOUND"
    assert error["message"] == f"There is no Dittybag database at {missing}"
    assert error["hints"][0] == f"did you mean {tmp_path / 'data' / 'notes.db'}?"
    assert not missing.exists()
    nowhere = tmp_path / "no" / "folder" / "x.db"
    variables = {"DITTYBAG_DATABASE_URL": str(nowhere)}
    assert str(nowhere) in dittybag(tmp_path, "history", status=3, variables=variables).stderr
    assert not nowhere.parent.exists()


def test_reading_leaves_an_empty_file_alone(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    dittybag(tmp_path, "prompt", "list", "--workspace", "empty", status=3)
    assert (tmp_path / "empty.db").read_bytes() == b""


def test_a_dry_run_of_an_import_creates_nothing(tmp_path: Path) -> None:
    (tmp_path / "prompts.csv").write_text("act,prompt\nPoet,Write a poem\n")
    result = dittybag(tmp_path, "import", str(tmp_path / "prompts.csv"), "--dry-run", "--workspace", "new")
    assert result.stdout == "Would import 1 prompt\n"
    assert [file.name for file in tmp_path.iterdir()] == ["prompts.csv"]


def test_workspaces_are_listed(tmp_path: Path) -> None:
    empty = dittybag(tmp_path, "workspaces")
    assert (empty.stdout, empty.stderr.splitlines()[0]) == ("", "No workspaces yet")
    assert data(dittybag(tmp_path, "workspaces", "--json")) == {"workspaces": []}
    dittybag(tmp_path, "task", "add", "x", "--workspace", "work")
    dittybag(tmp_path, "task", "add", "x")
    (tmp_path / "other.db").write_text("not a database")
    lines = dittybag(tmp_path, "workspaces").stdout.splitlines()
    assert lines[0].split() == ["workspace", "size", "modified"]
    assert [line.split()[0] for line in lines[1:]] == ["default", "work"]
    assert re.search(r"\d KiB +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", lines[1])
    first, second = data(dittybag(tmp_path, "workspaces", "--json"))["workspaces"]
    assert first["bytes"] > 0
    assert (second["name"], second["file"]) == ("work", str(tmp_path / "work.db"))
    assert list(second) == ["name", "file", "bytes", "modified_at"]


def test_reading_creates_no_tables_in_postgresql(tmp_path: Path, shared_postgres: PostgresServer) -> None:
    shared_postgres.sql("CREATE DATABASE reading")
    url = shared_postgres.url("reading")

    async def count_tables() -> int:
        connection = await connect(parse_address(url), writable=False)
        try:
            sql = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"
            return int(await connection.fetchval(sql))
        finally:
            await connection.close()

    for command in (("prompt", "list"), ("export", str(tmp_path / "x.json"))):
        wrong = failure(dittybag(tmp_path, *command, "--db", url, "--json", status=3))
        assert wrong["code"] == "WORKSPACE_NOT_FOUND"
    target = str(tmp_path / "target.db")
    dittybag(tmp_path, "copy", "--from", url, "--to", target, status=3)
    assert asyncio.run(count_tables()) == 0
    assert list(tmp_path.iterdir()) == []
    dittybag(tmp_path, "task", "add", "x", "--db", url)
    assert len(data(dittybag(tmp_path, "task", "list", "--db", url, "--json"))["tasks"]) == 1
