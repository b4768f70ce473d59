"""The automatic backup with the first write of a day, and the commands that find it."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import msgspec
import pytest

from tests.cli.cli_runner import data, dittybag, failure

ON = {"DITTYBAG_AUTO_BACKUP": "on"}
TODAY = date.today()  # noqa: DTZ011  # backups are named by the local day


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@contextmanager
def backup_ended(home: Path, stem: str = "default") -> Iterator[None]:
    """Wait until the process that makes backups has ended: it holds a lock."""
    with (home / "backups" / f"{stem}.json").open("rb") as status:
        fcntl.flock(status, fcntl.LOCK_EX)
        yield


def write(home: Path, title: str) -> list[str]:
    """Add a task with automatic backups, and return the files in their folder."""
    dittybag(home, "task", "add", title, variables=ON)
    with backup_ended(home):
        return sorted(file.name for file in (home / "backups").iterdir())


def name(day: date) -> str:
    return f"default-{day.isoformat()}.db"


def backdate(home: Path, days: int) -> None:
    """Turn the backup of today into one for each of the days before."""
    folder = home / "backups"
    made = []
    for before in range(1, days + 1):
        file = folder / name(TODAY - timedelta(before))
        shutil.copy(folder / name(TODAY), file)
        status = file.stat()
        made.append({"name": file.name, "bytes": status.st_size, "modified_ns": status.st_mtime_ns})
    (folder / name(TODAY)).unlink()
    status_file = folder / "default.json"
    status_file.write_bytes(msgspec.json.encode({"made": made}))
    os.utime(status_file, (0, 0))


def test_the_first_write_of_a_day_makes_a_backup_that_restore_and_doctor_find(home: Path) -> None:
    assert write(home, "first") == [name(TODAY), "default.json"]
    file = home / "backups" / name(TODAY)
    before = file.stat()
    assert before.st_mode & 0o777 == 0o600
    assert write(home, "second") == [name(TODAY), "default.json"]
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    (listed,) = data(dittybag(home, "backup", "--list", "--json"))["backups"]
    assert (listed["file"], listed["bytes"]) == (str(file), before.st_size)
    assert name(TODAY) in dittybag(home, "backup", "--list").stdout
    error = failure(dittybag(home, "restore", "wrong.db", "--json", status=3))
    assert error["hints"][-1].startswith("the newest backup is from ")
    assert error["hints"][-1].endswith(f": dittybag restore {name(TODAY)} --force")
    purged = dittybag(home, "purge", "task:2", "--yes")
    assert f"1 backup may still contain it; to delete them, run: rm {file}" in purged.stderr
    (home / "default.db").write_bytes(b"SQLite format 3\0damaged")
    found = data(dittybag(home, "doctor", "--json", status=1))
    fix = found["fixes"][0]
    assert fix["fix"].startswith(f"dittybag restore {name(TODAY)} --force (the newest backup, from ")
    dittybag(home, "restore", name(TODAY), "--force")
    assert [task["title"] for task in data(dittybag(home, "task", "list", "--json"))["tasks"]] == ["first"]


def test_the_last_seven_backups_are_kept_and_no_other_file_is_deleted(home: Path) -> None:
    write(home, "first")
    backdate(home, 7)
    oldest = TODAY - timedelta(7)
    foreign = [name(TODAY - timedelta(30)), "other-2020-01-01.db", "default-old.db"]
    for file in foreign:
        (home / "backups" / file).write_bytes(b"mine")
    found = write(home, "second")
    kept = [name(TODAY - timedelta(days)) for days in range(7)]
    assert found == sorted([*kept, *foreign, "default.json"])
    assert name(oldest) not in found
    # A file that somebody else has put in the place of a backup stays.
    backdate(home, 7)
    (home / "backups" / name(oldest)).write_bytes(b"mine")
    assert name(oldest) in write(home, "third")


def test_a_backup_that_is_killed_leaves_nothing_under_its_name_and_is_made_later(home: Path) -> None:
    write(home, "first")
    backdate(home, 1)
    dittybag(home, "task", "add", "second", variables=ON)
    for process in backups_of(home):
        os.kill(process, signal.SIGKILL)
    # In the hour after an attempt, there is no other one.
    found = write(home, "third")
    assert [file for file in found if file.endswith(".db")] == [name(TODAY - timedelta(1))]
    os.utime(home / "backups" / "default.json", (0, 0))
    assert write(home, "fourth") == [name(TODAY - timedelta(1)), name(TODAY), "default.json"]


def backups_of(home: Path) -> Iterator[int]:
    """The processes that make backups in a data folder."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if os.fsencode(home) in arguments and b"-I" in arguments:
                yield int(entry.name)


def test_no_backup_is_made_where_none_is_wanted(home: Path, tmp_path: Path) -> None:
    dittybag(home, "task", "add", "x", variables={"DITTYBAG_AUTO_BACKUP": "off"})
    assert not (home / "backups").exists()
    note = next(
        item for item in data(dittybag(home, "doctor", "--json"))["findings"] if item["topic"] == "backups"
    )
    assert note["message"] == "There are no backups in the data folder: DITTYBAG_AUTO_BACKUP is off"
    # The folder for temporary files.
    variables = {**ON, "TMPDIR": str(tmp_path)}
    dittybag(home, "task", "add", "x", "--db", str(tmp_path / "x.db"), variables=variables)
    # Commands that write nothing.
    dittybag(home, "task", "list", variables=ON)
    assert not (home / "backups").exists()


def test_a_failed_backup_is_reported_by_doctor_and_does_not_disturb_the_write(home: Path) -> None:
    write(home, "first")
    backdate(home, 1)
    (home / "backups" / f"{name(TODAY)}-wal").write_bytes(b"x")
    assert name(TODAY) not in write(home, "second")
    found = data(dittybag(home, "doctor", "--json", variables=ON))
    (warning,) = [item for item in found["findings"] if item["topic"] == "backups"]
    assert warning["level"] == "warning"
    assert warning["message"].startswith("The last automatic backup failed: ")
