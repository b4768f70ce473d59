"""Backup, restore and integrity checks of a SQLite file."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from dittybag.domain.errors import StorageDamaged, StorageForeign, StorageTooNew
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from dittybag.storage.sqlite import backups
from dittybag.storage.sqlite.backups import FileRefused, back_up, restore
from dittybag.storage.sqlite.integrity_check import check_integrity
from dittybag.storage.sqlite.snapshots import open_snapshot
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.exchange.exchange_data import fill_database
from tests.exchange.exchange_fixtures import open_workspace
from tests.stdio_server_process import ROOT
from tests.storage.sqlite.scripted_process import ScriptedProcess
from tests.torture.sqlite_audit import SqliteAudit


def ignore_progress(text: str, done: int = 0, total: int = 0, /) -> None:
    """Discard progress reports."""


async def _write(path: Path, work: Callable[[Workspace, Caller], Any]) -> None:
    async with open_workspace(path) as workspace:
        await work(workspace, Caller((await workspace.projects.find("default")).id, "tester"))


def add_task(path: Path, title: str) -> None:
    asyncio.run(_write(path, lambda workspace, caller: workspace.tasks.create(caller, title=title)))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with entities of every kind and a history."""
    path = tmp_path / "home" / "store.db"
    asyncio.run(fill_database(path, 24, 8, 20))
    return path


def dump(path: Path) -> dict[str, list[Any]]:
    """Return every row of every table. A store merges the segments of its full-text indexes at any time."""
    with closing(apsw.Connection(str(path))) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            if not name.endswith("_index") and "_index_" not in name
        ]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}


def assert_intact(path: Path) -> None:
    """Assert that a database is intact, by two independent checks."""
    with closing(SqliteAudit(path)) as audit:
        audit.check()
    with open_snapshot(str(path)) as connection:
        assert check_integrity(connection, ignore_progress) == []
        assert connection.pragma("journal_mode") == "wal"


def file_names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


# Backups


@pytest.mark.parametrize(
    "name",
    ["b.db", "päth with blanks.db", "100%.db", "a'b\"c.db", "file:x?mode=ro", "-x.db", "x" * 250],
)
def test_a_backup_and_what_it_restores_are_complete_and_private(
    tmp_path: Path, database: Path, name: str
) -> None:
    file, target = tmp_path / "copies" / name, tmp_path / "deep" / "new" / name
    file.parent.mkdir()
    made = back_up(str(database), str(file), force=False, report=ignore_progress)
    assert (made.file, made.bytes, made.problems) == (str(file), file.stat().st_size, [])
    assert made.change == len(dump(database)["changes"])
    restored = restore(str(file), str(target), force=False, report=ignore_progress)
    assert (restored.database, restored.aside, restored.problems) == (str(target), None, [])
    for copy in (file, target):
        assert file_names(copy.parent) == [name]
        assert copy.stat().st_mode & 0o777 == 0o600
        assert dump(copy) == dump(database)
        assert_intact(copy)


def test_data_in_the_write_ahead_log_is_backed_up(tmp_path: Path, database: Path) -> None:
    reader = apsw.Connection(str(database))
    reader.execute("SELECT count(*) FROM prompts").fetchall()
    add_task(database, "in the log")
    assert (database.with_name("store.db-wal")).stat().st_size > 0
    back_up(str(database), str(tmp_path / "b.db"), force=False, report=ignore_progress)
    reader.close()
    assert any("in the log" in row for row in dump(tmp_path / "b.db")["tasks"])


def test_writes_during_a_backup_are_not_in_it_and_do_not_restart_it(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "_PAGES_PER_STEP", 1)
    before = dump(database)
    pages = database.stat().st_size // 4096
    reports: list[str] = []

    def report(text: str, done: int = 0, total: int = 0, /) -> None:
        reports.append(text)
        if len(reports) % 40 == 1:
            add_task(database, f"after {len(reports)}")

    back_up(str(database), str(tmp_path / "b.db"), force=False, report=report)
    assert len([text for text in reports if text.startswith("Copying")]) == pages
    assert dump(tmp_path / "b.db") == before
    assert len(dump(database)["tasks"]) > len(before["tasks"])
    assert_intact(tmp_path / "b.db")


def test_a_backup_does_not_wait_for_writers(tmp_path: Path, database: Path) -> None:
    with ScriptedProcess("lock_holder", str(database)) as holder:
        assert holder.read_reply() == "ready"
        assert holder.request("lock") == "locked"
        back_up(str(database), str(tmp_path / "b.db"), force=False, report=ignore_progress)
        assert dump(tmp_path / "b.db") == dump(database)


def refusal_reason(action: Callable[..., object], source: Path, target: Path, **options: Any) -> str:
    """Return why a backup or a restore is refused."""
    with pytest.raises(FileRefused) as caught:
        action(str(source), str(target), **{"force": False, "report": ignore_progress, **options})
    return caught.value.reason


def test_a_file_created_during_the_backup_is_not_replaced(tmp_path: Path, database: Path) -> None:
    file = tmp_path / "b.db"
    assert refusal_reason(back_up, database, file, report=lambda *_: file.write_text("mine")) == "exists"
    assert file.read_text() == "mine"
    assert file_names(tmp_path) == ["b.db", "home"]


def test_a_database_cannot_be_backed_up_to_itself(tmp_path: Path, database: Path) -> None:
    link, twin = tmp_path / "link.db", tmp_path / "twin.db"
    link.symlink_to(database)
    twin.hardlink_to(database)
    before = dump(database)
    for file in (
        database,
        link,
        twin,
        database.with_name("store.db-wal"),
        database.with_name("store.db-shm"),
    ):
        assert refusal_reason(back_up, database, file, force=True) == "itself"
    assert dump(database) == before


def test_a_file_name_with_a_leftover_write_ahead_log_is_refused(tmp_path: Path, database: Path) -> None:
    (tmp_path / "b.db-wal").write_bytes(b"another file's")
    assert refusal_reason(back_up, database, tmp_path / "b.db") == "in use"
    assert refusal_reason(back_up, database, tmp_path / "b.db", force=True) == "in use"
    assert file_names(tmp_path) == ["b.db-wal", "home"]


def test_a_damaged_database_does_not_replace_a_backup(tmp_path: Path, database: Path) -> None:
    file = tmp_path / "b.db"
    back_up(str(database), str(file), force=False, report=ignore_progress)
    good = file.read_bytes()
    content = bytearray(database.read_bytes())
    content[4096 * 2 : 4096 * 8] = bytes(4096 * 6)
    database.write_bytes(content)
    with pytest.raises((FileRefused, StorageDamaged)) as caught:
        back_up(str(database), str(file), force=True, report=ignore_progress)
    assert getattr(caught.value, "reason", "damaged") == "damaged"
    assert file.read_bytes() == good
    assert file_names(tmp_path) == ["b.db", "home"]


def test_a_damaged_index_is_reported_and_the_texts_are_backed_up(tmp_path: Path, database: Path) -> None:
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("UPDATE prompt_index_data SET block = x'00' WHERE id > 10")
    made = back_up(str(database), str(tmp_path / "b.db"), force=False, report=ignore_progress)
    assert {problem.part for problem in made.problems} == {"search index"}
    assert dump(tmp_path / "b.db")["prompts"] == dump(database)["prompts"]


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, database: Path) -> None:
    program = (
        "import resource, signal, sys\n"
        "from dittybag.domain.errors import StorageError\n"
        "from dittybag.storage.sqlite.backups import back_up\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "try:\n"
        "    back_up(sys.argv[1], sys.argv[2], force=False, report=lambda *progress: None)\n"
        "except StorageError as error:\n"
        "    print(type(error).__name__)\n"
    )
    command = [sys.executable, "-c", program, str(database), str(tmp_path / "b.db")]
    output = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=30, check=True).stdout
    assert output.strip() in ("StorageFull", "StorageFailed")
    assert file_names(tmp_path) == ["home"]


# Restoring


def test_an_unused_database_is_replaced_without_force(tmp_path: Path, database: Path) -> None:
    unused, empty = tmp_path / "unused.db", tmp_path / "empty.db"
    asyncio.run(SqliteStore(str(unused)).close())
    empty.touch()
    for target in (unused, empty):
        assert restore(str(database), str(target), force=False, report=ignore_progress).aside is None
        assert dump(target) == dump(database)
        assert_intact(target)


def test_a_database_with_data_is_replaced_only_with_force_and_kept(tmp_path: Path, database: Path) -> None:
    target = tmp_path / "present.db"
    add_task(target, "present")
    target.chmod(0o640)
    before = dump(target)
    assert refusal_reason(restore, database, target) == "exists"
    assert dump(target) == before
    asides = []
    for _ in range(2):
        aside = restore(str(database), str(target), force=True, report=ignore_progress).aside
        assert aside is not None
        asides.append(Path(aside))
        assert dump(target) == dump(database)
    assert dump(asides[0]) == before
    assert dump(asides[1]) == dump(database)
    assert asides[0].stat().st_mode & 0o777 == target.stat().st_mode & 0o777 == 0o640
    assert file_names(tmp_path) == sorted(["home", "present.db", *(aside.name for aside in asides)])
    assert_intact(target)
    assert_intact(asides[0])


async def test_a_running_store_notifies_of_a_restore_and_of_later_changes(
    tmp_path: Path, database: Path
) -> None:
    file = tmp_path / "backup.db"
    back_up(str(database), str(file), force=False, report=ignore_progress)
    store = SqliteStore(str(database))
    workspace = Workspace(store)
    caller = Caller((await workspace.projects.find("default")).id, "tester")
    notified = asyncio.Event()
    store.subscribe(lambda notifications: notified.set())
    for number in range(5):
        await workspace.prompts.create(caller, name=f"later-{number}", content="Later.")
    async with asyncio.timeout(5):
        await notified.wait()
    before = store.stamp("prompt", caller.project)
    notified.clear()
    restore(str(file), str(database), force=True, report=ignore_progress)
    restored = store.stamp("prompt", caller.project)
    assert restored != before
    async with asyncio.timeout(5):
        await notified.wait()
    # The restored log reuses sequence numbers that this process has seen for other changes.
    notified.clear()

    async def add(other: Workspace, other_caller: Caller) -> None:
        await other.prompts.create(other_caller, name="new", content="New.")

    await _write(database, add)
    assert store.stamp("prompt", caller.project) not in (before, restored)
    async with asyncio.timeout(5):
        await notified.wait()
    await store.close()


def test_a_write_during_a_restore_is_kept_or_refused(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes acknowledged before the database is locked must be in the copy of the old database."""
    target = tmp_path / "present.db"
    add_task(target, "before")
    copying = 0
    refused: list[str] = []

    def report(text: str, done: int = 0, total: int = 0, /) -> None:
        nonlocal copying
        if text.startswith("Copying"):
            copying += 1
            add_task(target, f"during {copying}")
        elif text.startswith(("Saving", "Restoring")) and done < total:
            # From here on a write would be lost, so it must be refused.
            with closing(apsw.Connection(str(target))) as other, pytest.raises(apsw.BusyError):
                other.execute("BEGIN IMMEDIATE")
            refused.append(text[: text.index("ing") + 3])

    monkeypatch.setattr(backups, "_PAGES_PER_STEP", 20)
    aside = restore(str(database), str(target), force=True, report=report).aside
    assert copying > 2
    assert set(refused) == {"Saving", "Restoring"}
    kept = {row[2] for row in dump(Path(aside or ""))["tasks"]}
    assert kept == {"before", *(f"during {number}" for number in range(1, copying + 1))}
    assert dump(target) == dump(database)


def test_an_unused_database_that_is_first_used_during_the_restore_is_not_replaced(
    tmp_path: Path, database: Path
) -> None:
    target = tmp_path / "unused.db"
    asyncio.run(SqliteStore(str(target)).close())

    def report(text: str, done: int = 0, total: int = 0, /) -> None:
        if text == "Copying pages" and done == total:
            add_task(target, "just in time")

    assert refusal_reason(restore, database, target, report=report) == "exists"
    assert [row[2] for row in dump(target)["tasks"]] == ["just in time"]
    assert_intact(target)


RESTORE_AND_DIE = """
import os, sys
from dittybag.storage.sqlite import backups
backups._PAGES_PER_STEP = 8
left = int(sys.argv[3])
def report(*progress):
    global left
    left -= 1
    if left == 0:
        os._exit(9)
backups.restore(sys.argv[1], sys.argv[2], force=True, report=report)
"""


def test_a_killed_restore_has_changed_nothing_or_everything(tmp_path: Path, database: Path) -> None:
    target = tmp_path / "t" / "present.db"
    add_task(target, "present")
    before, after = dump(target), dump(database)
    outcomes = set()
    for moment in (1, 6, 10, 14, 18, 22, 26, 30, 10_000):
        command = [sys.executable, "-c", RESTORE_AND_DIE, str(database), str(target), str(moment)]
        ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=30, check=False)
        assert ended.returncode in (0, 9), ended.stderr
        found = dump(target)
        # If it is killed after the last page, everything has changed.
        assert found == after or (ended.returncode == 9 and found == before), moment
        outcomes.add((ended.returncode, found == after))
        assert_intact(target)
    assert {(0, True), (9, False)} <= outcomes


def test_a_damaged_database_is_renamed_unchanged(tmp_path: Path, database: Path) -> None:
    target = tmp_path / "present.db"
    shutil.copy(database, target)
    target.write_bytes(target.read_bytes()[: 4096 * 3 + 17])
    target.with_name("present.db-wal").write_bytes(b"what is left of a log")
    assert refusal_reason(restore, database, target) == "exists"
    damaged = target.read_bytes()
    aside = Path(restore(str(database), str(target), force=True, report=ignore_progress).aside or "")
    assert aside.read_bytes() == damaged
    assert aside.with_name(f"{aside.name}-wal").read_bytes() == b"what is left of a log"
    assert dump(target) == dump(database)
    assert {"home", "present.db", aside.name, f"{aside.name}-wal"} <= set(file_names(tmp_path))
    assert not target.with_name("present.db-wal").exists()
    assert_intact(target)


def test_a_write_ahead_log_without_a_database_is_renamed(tmp_path: Path, database: Path) -> None:
    target = tmp_path / "gone.db"
    target.with_name("gone.db-wal").write_bytes(b"an old log")
    aside = restore(str(database), str(target), force=False, report=ignore_progress).aside
    assert Path(f"{aside}-wal").read_bytes() == b"an old log"
    assert dump(target) == dump(database)


def test_a_foreign_file_is_not_restored_and_a_replaced_one_is_kept(tmp_path: Path, database: Path) -> None:
    diary = tmp_path / "diary.txt"
    diary.write_text("dear diary " * 100)
    with pytest.raises(StorageForeign):
        restore(str(diary), str(tmp_path / "new.db"), force=True, report=ignore_progress)
    assert not (tmp_path / "new.db").exists()
    aside = restore(str(database), str(diary), force=True, report=ignore_progress).aside
    assert Path(aside or "").read_text() == "dear diary " * 100


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("none.db", "new.db", "missing"),
        (".", "new.db", "folder"),
        ("home/store.db", ".", "folder"),
        ("home/store.db", "home/store.db", "itself"),
        ("home/store.db", "link.db", "itself"),
        ("\udcff.db", "new.db", "name"),
    ],
)
def test_invalid_files_are_not_restored(
    tmp_path: Path, database: Path, source: str, target: str, reason: str
) -> None:
    (tmp_path / "link.db").symlink_to(database)
    before = dump(database)
    assert refusal_reason(restore, tmp_path / source, tmp_path / target, force=True) == reason
    assert dump(database) == before
    assert file_names(tmp_path) == ["home", "link.db"]


def test_a_newer_backup_is_refused(tmp_path: Path, database: Path) -> None:
    file = tmp_path / "newer.db"
    back_up(str(database), str(file), force=False, report=ignore_progress)
    with closing(apsw.Connection(str(file))) as connection:
        connection.pragma("user_version", NEWEST_SCHEMA + 1)
    with pytest.raises(StorageTooNew) as caught:
        restore(str(file), str(tmp_path / "new.db"), force=True, report=ignore_progress)
    assert (caught.value.where, caught.value.found) == (str(file), NEWEST_SCHEMA + 1)
    assert file_names(tmp_path) == ["home", "newer.db"]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER evil AFTER INSERT ON tasks BEGIN DELETE FROM prompts; END",
        "CREATE VIEW evil AS SELECT * FROM prompts",
        "DROP TRIGGER prompt_tags_after_insert",
        "DROP TABLE sessions",
    ],
)
def test_a_backup_with_foreign_or_missing_schema_objects_is_refused(
    tmp_path: Path, database: Path, sql: str
) -> None:
    file = tmp_path / "changed.db"
    back_up(str(database), str(file), force=False, report=ignore_progress)
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute(sql)
    assert refusal_reason(restore, file, tmp_path / "new.db", force=True) == "damaged"
    assert file_names(tmp_path) == ["changed.db", "home"]


def test_a_damaged_index_is_rebuilt_on_restore(tmp_path: Path, database: Path) -> None:
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("UPDATE task_index_data SET block = x'00' WHERE id > 10")
        connection.execute("DELETE FROM prompt_tags")
    target = tmp_path / "new.db"
    assert restore(str(database), str(target), force=False, report=ignore_progress).problems == []
    assert_intact(target)


def test_a_readable_backup_with_problems_is_restored_and_they_are_reported(
    tmp_path: Path, database: Path
) -> None:
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("UPDATE resources SET size = 1")
    problems = restore(str(database), str(tmp_path / "new.db"), force=False, report=ignore_progress).problems
    assert [problem.part for problem in problems] == ["contents"]
    assert dump(tmp_path / "new.db")["resources"] == dump(database)["resources"]


# Integrity checks


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("DELETE FROM projects WHERE name = 'default'", "references"),
        ("DELETE FROM contents WHERE sha256 IN (SELECT sha256 FROM resources)", "references"),
        ("UPDATE contents SET bytes = zeroblob(length(bytes))", "contents"),
        ("UPDATE resources SET size = 1", "contents"),
        ("UPDATE prompt_index_data SET block = x'00' WHERE id > 10", "search index"),
        ("DROP TRIGGER prompt_tags_after_insert", "schema"),
    ],
)
def test_inconsistencies_are_found(database: Path, sql: str, part: str) -> None:
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(sql)
    with open_snapshot(str(database)) as connection:
        assert part in [problem.part for problem in check_integrity(connection, ignore_progress)]


def test_a_snapshot_changes_nothing_and_keeps_a_leftover_write_ahead_log(database: Path) -> None:
    program = (
        "import apsw, os, sys\n"
        "connection = apsw.Connection(sys.argv[1])\n"
        "connection.execute('PRAGMA wal_autocheckpoint = 0')\n"
        "connection.execute('INSERT INTO sessions (id, state, used_at) VALUES (1, x\\'00\\', 1)')\n"
        "os._exit(0)\n"
    )
    before = {file.name: file.read_bytes() for file in database.parent.iterdir()}
    with open_snapshot(str(database)) as connection:
        assert check_integrity(connection, ignore_progress) == []
    assert {file.name: file.read_bytes() for file in database.parent.iterdir()} == before
    subprocess.run([sys.executable, "-c", program, str(database)], check=True, timeout=30)
    log = database.with_name("store.db-wal")
    before = {file.name: file.read_bytes() for file in (database, log)}
    assert before[log.name]
    with open_snapshot(str(database)) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").get == 1
        assert check_integrity(connection, ignore_progress) == []
    assert {file.name: file.read_bytes() for file in (database, log)} == before


# Killed processes


def test_the_next_backup_deletes_the_part_file_of_a_killed_one_and_not_that_of_a_running_one(
    tmp_path: Path, database: Path
) -> None:
    def part_files() -> list[Path]:
        return [file for file in tmp_path.iterdir() if ".dittybag-part" in file.name]

    with ScriptedProcess("paused_backup", str(database), str(tmp_path / "first.db")) as backup:
        assert backup.read_reply() == "copying"
        (first,) = part_files()
        back_up(str(database), str(tmp_path / "second.db"), force=False, report=ignore_progress)
        assert part_files() == [first]
    # The process was killed.
    assert part_files() == [first]
    back_up(str(database), str(tmp_path / "third.db"), force=False, report=ignore_progress)
    assert part_files() == []
