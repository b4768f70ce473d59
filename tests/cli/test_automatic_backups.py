"""The backup that a server makes after the first write of a day, and the commands that find it."""

from __future__ import annotations

import os
import shutil
from datetime import date, timedelta
from pathlib import Path
from select import select

import pytest

from tests.cli.cli_runner import data, dittybag, failure
from tests.fleet.server_fleet import wait_until
from tests.stdio_server_process import StdioServerProcess

TODAY = date.today()  # noqa: DTZ011  # backups are named by the local day


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def serve(home: Path, *options: str, **variables: str) -> StdioServerProcess:
    environment = {"DITTYBAG_HOME": str(home), "DITTYBAG_AUTO_BACKUP": "on", **variables}
    return StdioServerProcess("dittybag", "serve", *options, env=environment)


def add_task(server: StdioServerProcess, title: str) -> None:
    call = {"name": "task_add", "arguments": {"tasks": [{"title": title}]}}
    answer = server.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    assert not answer["result"].get("isError"), answer


def stored(home: Path) -> list[str]:
    folder = home / "backups"
    found = sorted(file.name for file in folder.iterdir()) if folder.exists() else []
    return [name for name in found if not name.endswith(".dittybag-part")]


def write(home: Path, title: str, expected: list[str]) -> None:
    """Add a task over MCP, and wait for the files in the folder with backups."""
    with serve(home) as server:
        server.handshake()
        add_task(server, title)
        wait_until(lambda: stored(home) == expected, f"{expected}, found {stored(home)}")


def name(day: date) -> str:
    return f"default-{day.isoformat()}.db"


def backdate(home: Path, days: int) -> None:
    """Turn the backup of today into one for each of the days before."""
    folder = home / "backups"
    for before in range(1, days + 1):
        shutil.copy(folder / name(TODAY), folder / name(TODAY - timedelta(before)))
    (folder / name(TODAY)).unlink()


def test_the_first_write_of_a_day_makes_a_backup_that_restore_and_doctor_find(home: Path) -> None:
    write(home, "first", [name(TODAY)])
    file = home / "backups" / name(TODAY)
    before = file.stat()
    assert before.st_mode & 0o777 == 0o600
    write(home, "second", [name(TODAY)])
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    (listed,) = data(dittybag(home, "backup", "list", "--json"))["backups"]
    assert (listed["file"], listed["bytes"]) == (str(file), before.st_size)
    assert name(TODAY) in dittybag(home, "backup", "list").stdout
    error = failure(dittybag(home, "backup", "restore", "wrong.db", "--json", status=3))
    assert error["hints"][-1].startswith("the newest backup is from ")
    assert error["hints"][-1].endswith(f": dittybag backup restore {name(TODAY)} --force")
    purged = dittybag(home, "purge", "task:2", "--yes")
    assert f"1 backup may still contain it; to delete them, run: rm {file}" in purged.stderr
    (home / "default.db").write_bytes(b"SQLite format 3\0damaged")
    found = data(dittybag(home, "doctor", "--json", status=1))
    fix = found["fixes"][0]
    assert fix["fix"].startswith(f"dittybag backup restore {name(TODAY)} --force (the newest backup, from ")
    dittybag(home, "backup", "restore", name(TODAY), "--force")
    assert [task["title"] for task in data(dittybag(home, "task", "list", "--json"))["tasks"]] == ["first"]


def test_the_last_seven_backups_are_kept_and_no_other_file_is_deleted(home: Path) -> None:
    write(home, "first", [name(TODAY)])
    backdate(home, 7)
    foreign = ["other-2020-01-01.db", "default-old.db", "default-by-hand-20200101T000000Z.db"]
    for file in foreign:
        (home / "backups" / file).write_bytes(b"mine")
    write(home, "second", sorted([*(name(TODAY - timedelta(days)) for days in range(7)), *foreign]))


def test_no_backup_is_made_where_none_is_wanted(home: Path, tmp_path: Path) -> None:
    """Not if they are off, not of a database in the folder for temporary files, and not by a command."""
    elsewhere = ("--db", str(tmp_path / "x.db"))
    for options, variables in (((), {"DITTYBAG_AUTO_BACKUP": "off"}), (elsewhere, {"TMPDIR": str(tmp_path)})):
        with serve(home, *options, **variables) as server:
            server.handshake()
            add_task(server, "x")
            server.hang_up()
            server.rest()
    dittybag(home, "task", "add", "x", variables={"DITTYBAG_AUTO_BACKUP": "on"})
    assert not (home / "backups").exists()
    findings = data(dittybag(home, "doctor", "--json"))["findings"]
    (note,) = [item for item in findings if item["topic"] == "backups"]
    assert (note["level"], note["fix"]) == ("note", "dittybag backup create FILE makes a backup")


def test_a_failed_backup_is_logged_and_does_not_disturb_the_write(home: Path) -> None:
    write(home, "first", [name(TODAY)])
    backdate(home, 1)
    (home / "backups" / f"{name(TODAY)}-wal").write_bytes(b"x")
    with serve(home) as server:
        server.handshake()
        add_task(server, "second")
        assert server.process.stderr is not None
        log = server.process.stderr.fileno()
        assert select([log], [], [], 10)[0]
        assert b"The automatic backup failed" in os.read(log, 4096)
        add_task(server, "third")
    assert name(TODAY) not in stored(home)
