"""`dittybag backup`, and `dittybag restore` of a backup."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import msgspec
import pytest

from dittybag.storage.sqlite.migrations import NEWEST
from tests.cli.cli_runner import data, dittybag, failure
from tests.stdio_server_process import ROOT, StdioServerProcess


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder whose database has two projects."""
    home = tmp_path / "home"
    dittybag(home, "project", "create", "first")
    return home


def projects(home: Path, *options: str) -> list[str]:
    return [row["name"] for row in data(dittybag(home, "project", "list", "--json", *options))["projects"]]


def sql(path: Path, *statements: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_backup_is_made_and_restored_elsewhere(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "b.db"
    done = dittybag(home, "backup", str(file))
    assert done.stdout == f"Backed up {home}/default.db to {file} ({file.stat().st_size:,} bytes)\n"
    assert done.stderr == ""
    done = dittybag(home, "restore", str(file), "--db", str(tmp_path / "new.db"))
    assert done.stdout == f"Restored {tmp_path}/new.db from {file}\n"
    assert "restart any MCP clients" in done.stderr
    assert projects(home, "--db", str(tmp_path / "new.db")) == ["default", "first"]


def test_scripts_are_told_what_was_made(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "b.db"
    made = data(dittybag(home, "backup", str(file), "--json"))
    assert made == {
        "file": str(file),
        "database": str(home / "default.db"),
        "bytes": file.stat().st_size,
        "change": 2,
        "warnings": [],
    }
    dittybag(home, "project", "create", "second")
    restored = data(dittybag(home, "restore", str(file), "--force", "--json"))
    aside = Path(restored.pop("aside"))
    assert restored == {"database": str(home / "default.db"), "file": str(file), "change": 2, "warnings": []}
    assert projects(home) == ["default", "first"]
    assert projects(home, "--db", str(aside)) == ["default", "first", "second"]


def test_a_workspace_is_backed_up_by_its_name(tmp_path: Path, home: Path) -> None:
    dittybag(home, "project", "create", "notes", "--workspace", "other")
    dittybag(home, "backup", str(tmp_path / "b.db"), "--workspace", "other")
    assert projects(home, "--db", str(tmp_path / "b.db")) == ["default", "notes"]


def test_nothing_is_overwritten_unless_it_is_asked_for(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "b.db"
    file.write_text("dear diary")
    refused = failure(dittybag(home, "backup", str(file), "--json", status=4))
    assert refused["code"] == "EXISTS"
    assert "--force" in refused["hints"][0]
    assert file.read_text() == "dear diary"
    dittybag(home, "backup", str(file), "--force")
    dittybag(home, "project", "create", "second")
    done = dittybag(home, "restore", str(file), status=4)
    assert done.stdout == ""
    assert done.stderr.startswith(
        f"error: {home}/default.db already exists\nhint: use --force to replace it; "
    )
    assert projects(home) == ["default", "first", "second"]
    done = dittybag(home, "restore", str(file), "--force")
    assert "Previous database kept as " in done.stdout
    assert projects(home) == ["default", "first"]


def test_a_database_that_is_not_there_is_not_made_to_be_backed_up(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = dittybag(home, "backup", str(tmp_path / "b.db"), status=3)
    assert done.stderr.startswith(f"error: File {home}/default.db does not exist\nhint: ")
    assert list(tmp_path.iterdir()) == []


def test_other_refusals_say_what_to_do(tmp_path: Path, home: Path) -> None:
    said = {
        ("backup", str(tmp_path), 1): "is a folder",
        ("backup", f"{tmp_path}/no where/b.db", 3): f"hint: create it: mkdir -p '{tmp_path}/no where'",
        ("backup", f"{home}/default.db", 1): "is the database itself",
        ("restore", f"{tmp_path}/none.db", 3): "none.db does not exist",
        ("restore", f"{home}/default.db", 1): "is the database itself",
        ("backup", f"{tmp_path}/\udcff.db", 1): "is not valid UTF-8",
    }
    for (command, file, status), words in said.items():
        done = dittybag(home, command, file, "--force", status=status)
        assert words in done.stderr
        assert done.stderr.startswith("error: ")
        assert (done.stdout, "Traceback" in done.stderr) == ("", False)
        assert failure(dittybag(home, command, file, "--force", "--json", status=status))["hints"]


def test_a_file_of_another_program_a_newer_one_and_a_damaged_one_are_no_backups(
    tmp_path: Path, home: Path
) -> None:
    diary, newer, damaged = (tmp_path / name for name in ("diary.txt", "newer.db", "damaged.db"))
    diary.write_text("dear diary\n" * 100)
    for file in (newer, damaged):
        dittybag(home, "backup", str(file))
    sql(newer, f"PRAGMA user_version = {NEWEST + 1}")
    sql(damaged, "PRAGMA journal_mode = delete")
    content = bytearray(damaged.read_bytes())
    content[4096 * 3 : 4096 * 9] = bytes(4096 * 6)
    damaged.write_bytes(content)
    words = {diary: "not a Dittybag database", newer: "newer version of Dittybag", damaged: "damaged"}
    for file, expected in words.items():
        done = dittybag(home, "restore", str(file), "--force", status=5)
        assert str(file) in done.stderr
        assert expected in done.stderr
    assert projects(home) == ["default", "first"]
    assert [file.name for file in home.iterdir()] == ["default.db"]


def test_a_wrong_index_is_a_warning_and_not_the_end_of_a_backup(tmp_path: Path, home: Path) -> None:
    sql(home / "default.db", "INSERT INTO task_index (rowid, text) VALUES (77, 'nobody')")
    done = dittybag(home, "backup", str(tmp_path / "b.db"))
    assert "warning: The search index of tasks" in done.stderr
    assert "dittybag doctor" in done.stderr
    assert (tmp_path / "b.db").exists()


def test_a_running_server_goes_on_after_a_restore(tmp_path: Path, home: Path) -> None:
    def call(tool: str, **arguments: object) -> str:
        params = {"name": tool, "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params}
        server.send(msgspec.json.encode(request))
        # The restore causes notifications.
        while (answer := server.message()).get("id") != tool:
            assert answer["method"].startswith("notifications/")
        return msgspec.json.encode(answer["result"]).decode()

    with StdioServerProcess("dittybag", "serve", env={"DITTYBAG_HOME": str(home)}) as server:
        server.handshake()
        assert '"isError":false' in call("task_create", title="Before the backup")
        dittybag(home, "backup", str(tmp_path / "b.db"))
        assert '"isError":false' in call("task_create", title="After the backup")
        dittybag(home, "restore", str(tmp_path / "b.db"), "--force")
        listed = call("task_list")
        assert "Before the backup" in listed
        assert "After the backup" not in listed
        assert '"isError":false' in call("task_create", title="After the restore")
    assert data(dittybag(home, "doctor", "--json"))["errors"] == 0


def test_how_far_it_is_is_shown_on_a_terminal_only(tmp_path: Path, home: Path) -> None:
    controller, terminal = os.openpty()
    with closing(os.fdopen(controller, "rb")) as screen:
        subprocess.run(
            [sys.executable, "-m", "dittybag", "backup", str(tmp_path / "b.db"), "--json"],
            cwd=ROOT,
            env={**os.environ, "DITTYBAG_HOME": str(home)},
            stdout=subprocess.PIPE,
            stderr=terminal,
            timeout=30,
            check=True,
        )
        os.close(terminal)
        shown = screen.read1(1 << 16)
    assert b"Copying: 100 %" in shown
    assert shown.endswith(b"\r\x1b[2K")
