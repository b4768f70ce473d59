"""`dittybag backup`, and `dittybag backup restore` of a backup."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import msgspec
import pytest

from dittybag.domain.display import format_size
from tests.cli.cli_runner import data, dittybag, failure
from tests.cli.pseudo_terminal import run_in_terminal
from tests.stdio_server_process import StdioServerProcess


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


def test_a_backup_is_restored_to_another_database(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "b.db"
    result = dittybag(home, "backup", "create", str(file))
    assert result.stdout == f"Backed up {home}/default.db to {file} ({format_size(file.stat().st_size)})\n"
    assert result.stderr == ""
    result = dittybag(home, "backup", "restore", str(file), "--db", str(tmp_path / "new.db"))
    assert result.stdout == f"Restored {tmp_path}/new.db from {file}\n"
    assert "restart any MCP clients" in result.stderr
    assert projects(home, "--db", str(tmp_path / "new.db")) == ["default", "first"]


def test_json_output_of_backup_and_restore(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "b.db"
    backup = data(dittybag(home, "backup", "create", str(file), "--json"))
    assert backup == {
        "file": str(file),
        "database": str(home / "default.db"),
        "bytes": file.stat().st_size,
        "change": 2,
        "warnings": [],
    }
    dittybag(home, "project", "create", "second")
    restored = data(dittybag(home, "backup", "restore", str(file), "--force", "--json"))
    previous = Path(restored.pop("aside"))
    assert restored == {"database": str(home / "default.db"), "file": str(file), "change": 2, "warnings": []}
    assert projects(home) == ["default", "first"]
    assert projects(home, "--db", str(previous)) == ["default", "first", "second"]


def test_existing_files_are_overwritten_only_with_force(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "b.db"
    file.write_text("dear diary")
    refused = failure(dittybag(home, "backup", "create", str(file), "--json", status=4))
    assert refused["code"] == "EXISTS"
    assert "--force" in refused["hints"][0]
    foreign = dittybag(home, "backup", "restore", str(file), "--force", status=5)
    assert "not a Dittybag database" in foreign.stderr
    assert file.read_text() == "dear diary"
    dittybag(home, "backup", "create", str(file), "--force")
    dittybag(home, "project", "create", "second")
    result = dittybag(home, "backup", "restore", str(file), status=4)
    assert result.stdout == ""
    assert result.stderr.startswith(
        f"error: {home}/default.db already exists\nhint: use --force to replace it; "
    )
    assert projects(home) == ["default", "first", "second"]
    result = dittybag(home, "backup", "restore", str(file), "--force")
    assert "Previous database kept as " in result.stdout
    assert projects(home) == ["default", "first"]


def test_backing_up_a_missing_database_does_not_create_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    result = dittybag(home, "backup", "create", str(tmp_path / "b.db"), status=3)
    assert result.stderr.startswith(f"error: File {home}/default.db does not exist\nhint: ")
    assert list(tmp_path.iterdir()) == []


def test_other_errors_say_what_to_do(tmp_path: Path, home: Path) -> None:
    expected = {
        ("backup", "create", str(tmp_path), 1): "is a folder",
        ("backup", "create", f"{tmp_path}/no where/b.db", 3): f"mkdir -p '{tmp_path}/no where'",
        ("backup", "create", f"{home}/default.db", 1): "is the database itself",
        ("backup", "restore", f"{tmp_path}/none.db", 3): "none.db does not exist",
        ("backup", "restore", f"{home}/default.db", 1): "is the database itself",
        ("backup", "create", f"{tmp_path}/\udcff.db", 1): "is not valid UTF-8",
    }
    for (*command, file, status), words in expected.items():
        result = dittybag(home, *command, file, "--force", status=status)
        assert words in result.stderr
        assert result.stderr.startswith("error: ")
        assert (result.stdout, "Traceback" in result.stderr) == ("", False)
        assert failure(dittybag(home, *command, file, "--force", "--json", status=status))["hints"]


def test_a_damaged_search_index_is_only_a_warning(tmp_path: Path, home: Path) -> None:
    dittybag(home, "task", "add", "wash the dishes")
    sql(home / "default.db", "UPDATE task_index_data SET block = x'00' WHERE id > 10")
    result = dittybag(home, "backup", "create", str(tmp_path / "b.db"))
    assert "task_index" in result.stderr
    assert "dittybag doctor" in result.stderr
    assert (tmp_path / "b.db").exists()


def test_a_running_server_keeps_working_after_a_restore(tmp_path: Path, home: Path) -> None:
    def call(tool: str, **arguments: object) -> str:
        params = {"name": tool, "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params}
        server.send(msgspec.json.encode(request))
        # The restore causes notifications.
        while (message := server.message()).get("id") != tool:
            assert message["method"].startswith("notifications/")
        return msgspec.json.encode(message["result"]).decode()

    with StdioServerProcess("dittybag", "serve", env={"DITTYBAG_HOME": str(home)}) as server:
        server.handshake()
        assert '"isError":false' in call("task_create", title="Before the backup")
        dittybag(home, "backup", "create", str(tmp_path / "b.db"))
        assert '"isError":false' in call("task_create", title="After the backup")
        dittybag(home, "backup", "restore", str(tmp_path / "b.db"), "--force")
        listed = call("task_list")
        assert "Before the backup" in listed
        assert "After the backup" not in listed
        assert '"isError":false' in call("task_create", title="After the restore")
    assert data(dittybag(home, "doctor", "--json"))["errors"] == 0


def test_progress_is_shown_only_on_a_terminal(tmp_path: Path, home: Path) -> None:
    with (tmp_path / "out").open("wb") as stdout:
        backup = ("backup", "create", str(tmp_path / "b.db"), "--json")
        screen = run_in_terminal(home, *backup, stdout=stdout.fileno())
    assert "Copying pages  [####################################]  100%" in screen
