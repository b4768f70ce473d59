"""Backups under load: each is valid, consistent, and contains every write acknowledged before it started."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from dittybag.assembly.doctor_checks import run_checks
from dittybag.config import settings
from dittybag.storage.sqlite.backups import restore
from tests.cli.cli_runner import data, dittybag
from tests.repetitions import repetitions
from tests.stdio_server_process import ROOT
from tests.torture.journaling_writer import ABSENT, JournalingWriter
from tests.torture.sqlite_audit import EntityKey, SqliteAudit
from tests.torture.test_kills import writers

#: The database grows while backups are made, so each round has a new one.
ROUNDS = repetitions(1, 34)
BACKUPS = 6

WRITERS = 4
#: The number of unanswered requests to each server.
WINDOW = 4
TIMEOUT_SECONDS = 60.0


def write_until(all_writers: list[JournalingWriter], is_done: Any) -> int:
    """Keep all servers busy until `is_done()`. Returns the number of writes acknowledged meanwhile."""
    before = sum(writer.acknowledged for writer in all_writers)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not is_done():
        assert time.monotonic() < deadline
        for writer in all_writers:
            writer.send_writes(WINDOW)
            writer.receive(0.001)
    return sum(writer.acknowledged for writer in all_writers) - before


def acknowledged(all_writers: list[JournalingWriter]) -> dict[EntityKey, Any]:
    """Return the acknowledged values, without entities that an unanswered request may change."""
    return {
        key: value
        for writer in all_writers
        for key, value in writer.journal.items()
        if key not in {write.key for write in writer.in_flight.values()}
    }


def latest_seq(database: Path) -> int:
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return int(connection.execute("SELECT max(seq) FROM changes").get)


def read_log(database: Path, newest: int) -> list[tuple[Any, ...]]:
    with closing(apsw.Connection(str(database))) as connection:
        return connection.execute("SELECT * FROM changes WHERE seq <= ? ORDER BY seq", (newest,)).fetchall()


@pytest.mark.parametrize("repetition", range(ROUNDS))
def test_every_backup_made_under_load_restores_to_one_point_in_time(tmp_path: Path, repetition: int) -> None:
    database = tmp_path / "live" / "store.db"
    database.parent.mkdir()
    backups: list[tuple[Path, int, int]] = []
    during = 0
    with writers(database, WRITERS) as all_writers:
        write_until(all_writers, lambda: sum(writer.acknowledged for writer in all_writers) > 200)
        for number in range(BACKUPS):
            file = tmp_path / f"{number}.db"
            # The backup must contain every write that was acknowledged before it started.
            known, first = acknowledged(all_writers), latest_seq(database)
            backup = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "dittybag",
                    "backup",
                    "create",
                    str(file),
                    "--db",
                    str(database),
                    "--json",
                ],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            try:
                during += write_until(all_writers, lambda process=backup: process.poll() is not None)
            finally:
                backup.kill()
                out, err = backup.communicate()
            assert (backup.returncode, err) == (0, b""), err.decode()
            result = msgspec.json.decode(out)["data"]
            assert (result["warnings"], first <= result["change"] <= latest_seq(database)) == ([], True)
            backups.append((file, first, result["change"]))
            with closing(SqliteAudit(file)) as audit:
                _require_all(known, audit, first, file)
        for writer in all_writers:
            writer.wait_for_all()
    assert during > BACKUPS * 5, "the servers must write while backups are made"
    for file, _, change in backups:
        elsewhere = tmp_path / "restored" / file.name
        restore(str(file), str(elsewhere), force=False, report=lambda *progress: None)
        with closing(SqliteAudit(elsewhere)) as audit:
            audit.check()
        # One point in time: the log equals that of the live database up to one change.
        log = read_log(elsewhere, 1 << 62)
        assert log[-1][0] == change
        assert log == read_log(database, change)
        health = run_checks(
            settings({"DITTYBAG_HOME": str(tmp_path)}, db=str(elsewhere)), lambda *progress: None
        )
        assert [item for item in health.findings if item.level in ("warning", "error")] == []
    last = data(dittybag(tmp_path, "doctor", "--json", "--db", str(elsewhere)))
    assert (last["errors"], last["warnings"]) == (0, 0)


def _require_all(known: dict[EntityKey, Any], audit: SqliteAudit, first: int, file: Path) -> None:
    """Check that the backup has every write acknowledged before it, unless a later change replaced it."""
    with closing(apsw.Connection(str(file))) as connection:
        later = connection.execute(
            """SELECT kind, coalesce(after ->> 'title', after ->> 'name'),
                      coalesce(before ->> 'title', before ->> 'name')
               FROM changes WHERE seq > ?""",
            (first,),
        ).fetchall()
    changed = {(kind, label) for kind, *labels in later for label in labels}
    stored = audit.stored_values()
    lost = [key for key, value in known.items() if key not in changed and stored.get(key, ABSENT) != value]
    assert not lost, f"acknowledged before the backup started, but not in it: {lost}"
