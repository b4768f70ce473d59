"""Backups under load: each is sound, of one point in time, and has everything that was acknowledged before.

`TORTURE_BACKUPS=200 TORTURE_SEED=7 pytest tests/torture/test_backup_under_load.py` for more of them.
"""

from __future__ import annotations

import os
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
from tests.torture.sqlite_audit import Books, Key
from tests.torture.test_kills import writers
from tests.torture.journaling_writer import ABSENT, Writer
from tests.wire import ROOT

BACKUPS = int(os.environ.get("TORTURE_BACKUPS", "20"))

WRITERS = 4
#: So many requests are on their way at once to each server.
WINDOW = 4
PATIENCE_SECONDS = 60.0


def write_for(everybody: list[Writer], *, until: Any) -> int:
    """Keep all servers busy until something has happened; how many writes were acknowledged meanwhile."""
    before = sum(writer.acknowledged for writer in everybody)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not until():
        assert time.monotonic() < deadline
        for writer in everybody:
            writer.fill(WINDOW)
            writer.receive(0.001)
    return sum(writer.acknowledged for writer in everybody) - before


def acknowledged(everybody: list[Writer]) -> dict[Key, Any]:
    """What is there according to the answers, but for what a request on its way may be changing."""
    return {
        key: thing
        for writer in everybody
        for key, thing in writer.journal.items()
        if key not in {write.key for write in writer.in_flight.values()}
    }


def seq_of(database: Path) -> int:
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return int(connection.execute("SELECT max(seq) FROM changes").get)


def log_of(database: Path, newest: int) -> list[tuple[Any, ...]]:
    with closing(apsw.Connection(str(database))) as connection:
        return connection.execute("SELECT * FROM changes WHERE seq <= ? ORDER BY seq", (newest,)).fetchall()


@pytest.mark.timeout(120 + 3 * BACKUPS)
def test_every_backup_that_is_made_while_servers_write_restores_to_one_point_in_time(tmp_path: Path) -> None:
    database = tmp_path / "live" / "store.db"
    database.parent.mkdir()
    made: list[tuple[Path, int, int]] = []
    during = 0
    with writers(database, WRITERS) as everybody:
        write_for(everybody, until=lambda: sum(writer.acknowledged for writer in everybody) > 200)
        for number in range(BACKUPS):
            file = tmp_path / f"{number}.db"
            # Answers that were taken before the backup begins are of writes that it must have.
            known, first = acknowledged(everybody), seq_of(database)
            backup = subprocess.Popen(
                [sys.executable, "-m", "dittybag", "backup", str(file), "--db", str(database), "--json"],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            try:
                during += write_for(everybody, until=lambda process=backup: process.poll() is not None)
            finally:
                backup.kill()
                out, err = backup.communicate()
            assert (backup.returncode, err) == (0, b""), err.decode()
            told = msgspec.json.decode(out)["data"]
            assert (told["warnings"], first <= told["change"] <= seq_of(database)) == ([], True)
            made.append((file, first, told["change"]))
            with closing(Books(file)) as books:
                _require_all(known, books, first, file)
        for writer in everybody:
            writer.settle()
    assert during > BACKUPS * 5, "the servers should write while backups are made"
    for file, _, change in made:
        elsewhere = tmp_path / "restored" / file.name
        restore(str(file), str(elsewhere), force=False, report=lambda text: None)
        with closing(Books(elsewhere)) as books:
            books.check()
        # One point in time: the log is that of the live database up to a change, and no further.
        log = log_of(elsewhere, 1 << 62)
        assert log[-1][0] == change
        assert log == log_of(database, change)
        health = run_checks(settings({"DITTYBAG_HOME": str(tmp_path)}, db=str(elsewhere)), lambda text: None)
        assert [item for item in health.findings if item.level in ("warning", "error")] == []
    last = data(dittybag(tmp_path, "doctor", "--json", "--db", str(elsewhere)))
    assert (last["errors"], last["warnings"]) == (0, 0)


def _require_all(known: dict[Key, Any], books: Books, first: int, file: Path) -> None:
    """What was acknowledged before must be there, unless a later change has changed it."""
    with closing(apsw.Connection(str(file))) as connection:
        later = connection.execute(
            """SELECT kind, coalesce(after ->> 'title', after ->> 'name'),
                      coalesce(before ->> 'title', before ->> 'name')
               FROM changes WHERE seq > ?""",
            (first,),
        ).fetchall()
    changed = {(kind, label) for kind, *labels in later for label in labels}
    things = books.things()
    lost = [key for key, thing in known.items() if key not in changed and things.get(key, ABSENT) != thing]
    assert not lost, f"acknowledged before the backup began, but not in it: {lost}"
