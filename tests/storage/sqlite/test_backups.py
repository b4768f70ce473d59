"""Backups: copies of one point in time, checked, that never replace anything unasked and lose nothing."""

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

from dittybag.domain.errors import StorageDamaged, StorageError, StorageForeign, StorageTooNew
from dittybag.services.caller import Caller
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite import backups
from dittybag.storage.sqlite.backups import FileRefused, back_up, restore
from dittybag.storage.sqlite.connections import APPLICATION_ID
from dittybag.storage.sqlite.integrity_check import (
    check_integrity,
    is_safe_sqlite_version,
    open_snapshot,
    rebuild_index,
    sqlite_version,
)
from dittybag.storage.sqlite.migrations import NEWEST, load_migrations
from dittybag.storage.sqlite.store import SqliteStore
from tests.storage.sqlite.children import ROOT, Child
from tests.torture.books import Books


def silent(text: str) -> None:
    """Whoever does not want to know how far it is."""


async def _write(path: Path, work: Callable[[Workspace, Caller], Any]) -> None:
    workspace = Workspace(SqliteStore(str(path)))
    try:
        await work(workspace, Caller((await workspace.projects.find("default")).id, "tester"))
    finally:
        await workspace.store.close()


def write(path: Path, work: Callable[[Workspace, Caller], Any]) -> None:
    asyncio.run(_write(path, work))


def add_task(path: Path, title: str) -> None:
    write(path, lambda workspace, caller: workspace.tasks.create(caller, title=title))


def filled(path: Path) -> Path:
    """A database with something of every kind, and a history."""

    async def fill(workspace: Workspace, caller: Caller) -> None:
        for number in range(12):
            content = f"Straße {number}: {'İzmir naïve 漢字 ' * number}"
            await workspace.prompts.create(
                caller, name=f"p{number}", content=content, tags=["red", f"t{number}"]
            )
        change = PromptChange(content="Σίσυφος again", tags=["blue"])
        await workspace.prompts.update(caller, PromptAddress(name="p3"), change)
        await workspace.prompts.delete(caller, PromptAddress(name="p4"))
        for number in range(4):
            text = f"text {number} " * 500
            await workspace.resources.create(
                caller, name=f"r{number}", uri=f"x:{number}", content=text, mime_type="text/plain"
            )
        await workspace.resources.delete(caller, "r1")
        for number in range(5):
            await workspace.tasks.create(caller, title=f"task {number}", notes="ÄÖ" * number)
        await workspace.projects.create("other", actor="tester")

    write(path, fill)
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return filled(tmp_path / "home" / "store.db")


def dump(path: Path) -> dict[str, list[Any]]:
    """Every row of every table."""
    with closing(apsw.Connection(str(path))) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            if not name.endswith("_index")
        ]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}


def check(path: Path) -> None:
    """What must hold for every database, said twice."""
    with closing(Books(path)) as books:
        books.check()
    with open_snapshot(str(path)) as connection:
        assert check_integrity(connection, silent) == []
        assert connection.pragma("journal_mode") == "wal"


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


# Making one


def test_a_backup_is_one_file_of_its_owners_with_everything_in_it(tmp_path: Path, database: Path) -> None:
    file = tmp_path / "copies" / "b.db"
    file.parent.mkdir()
    made = back_up(str(database), str(file), force=False, report=silent)
    assert (made.file, made.bytes, made.problems) == (str(file), file.stat().st_size, [])
    assert names_in(file.parent) == ["b.db"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert dump(file) == dump(database)
    assert made.change == len(dump(database)["changes"])
    check(file)


def test_what_is_only_in_the_log_is_backed_up_too(tmp_path: Path, database: Path) -> None:
    reader = apsw.Connection(str(database))
    reader.execute("SELECT count(*) FROM prompts").fetchall()
    add_task(database, "in the log")
    assert (database.with_name("store.db-wal")).stat().st_size > 0
    back_up(str(database), str(tmp_path / "b.db"), force=False, report=silent)
    reader.close()
    assert any("in the log" in row for row in dump(tmp_path / "b.db")["tasks"])


def test_writes_in_the_middle_neither_get_in_nor_make_it_begin_again(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "_PAGES_PER_STEP", 1)
    before = dump(database)
    pages = database.stat().st_size // 4096
    told: list[str] = []

    def report(text: str) -> None:
        told.append(text)
        if len(told) % 40 == 1:
            add_task(database, f"after {len(told)}")

    back_up(str(database), str(tmp_path / "b.db"), force=False, report=report)
    assert len([text for text in told if text.startswith("Copying")]) == pages
    assert dump(tmp_path / "b.db") == before
    assert len(dump(database)["tasks"]) > len(before["tasks"])
    check(tmp_path / "b.db")


def test_a_backup_waits_for_no_writer(tmp_path: Path, database: Path) -> None:
    with Child("lock_holder", str(database)) as holder:
        assert holder.answer() == "ready"
        assert holder.ask("lock") == "locked"
        back_up(str(database), str(tmp_path / "b.db"), force=False, report=silent)
        assert dump(tmp_path / "b.db") == dump(database)


def refusal(database: Path, file: Path, *, force: bool = False) -> str:
    with pytest.raises(FileRefused) as caught:
        back_up(str(database), str(file), force=force, report=silent)
    return caught.value.reason


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path: Path, database: Path) -> None:
    file = tmp_path / "b.db"
    file.write_text("dear diary")
    assert refusal(database, file) == "exists"
    assert file.read_text() == "dear diary"
    back_up(str(database), str(file), force=True, report=silent)
    assert dump(file) == dump(database)


def test_a_file_that_comes_to_be_meanwhile_is_left_alone(tmp_path: Path, database: Path) -> None:
    file = tmp_path / "b.db"
    with pytest.raises(FileRefused) as caught:
        back_up(str(database), str(file), force=False, report=lambda text: file.write_text("mine"))
    assert caught.value.reason == "exists"
    assert file.read_text() == "mine"
    assert names_in(tmp_path) == ["b.db", "home"]


def test_a_database_is_never_replaced_by_its_backup(tmp_path: Path, database: Path) -> None:
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
        assert refusal(database, file, force=True) == "itself"
    assert dump(database) == before


def test_a_log_beside_the_name_is_no_backups(tmp_path: Path, database: Path) -> None:
    (tmp_path / "b.db-wal").write_bytes(b"another file's")
    assert refusal(database, tmp_path / "b.db") == "in use"
    assert refusal(database, tmp_path / "b.db", force=True) == "in use"
    assert names_in(tmp_path) == ["b.db-wal", "home"]


def test_other_names_that_cannot_be(tmp_path: Path, database: Path) -> None:
    assert refusal(database, tmp_path) == "folder"
    assert refusal(database, tmp_path / "nowhere" / "b.db") == "no folder"
    assert refusal(tmp_path / "none.db", tmp_path / "b.db") == "missing"
    assert refusal(database, tmp_path / "\udcff.db") == "name"
    assert names_in(tmp_path) == ["home"]


@pytest.mark.parametrize(
    "name", ["päth with blanks.db", "100%.db", "a'b\"c.db", "file:x?mode=ro", "-x.db", "x" * 250]
)
def test_a_backup_may_have_any_name(tmp_path: Path, database: Path, name: str) -> None:
    back_up(str(database), str(tmp_path / name), force=False, report=silent)
    assert names_in(tmp_path) == sorted(["home", name])
    restore(str(tmp_path / name), str(tmp_path / "new" / name), force=False, report=silent)
    assert dump(tmp_path / "new" / name) == dump(database)


def test_a_damaged_database_replaces_no_backup(tmp_path: Path, database: Path) -> None:
    file = tmp_path / "b.db"
    back_up(str(database), str(file), force=False, report=silent)
    good = file.read_bytes()
    content = bytearray(database.read_bytes())
    content[4096 * 2 : 4096 * 8] = bytes(4096 * 6)
    database.write_bytes(content)
    with pytest.raises((FileRefused, StorageDamaged)) as caught:
        back_up(str(database), str(file), force=True, report=silent)
    assert getattr(caught.value, "reason", "damaged") == "damaged"
    assert file.read_bytes() == good
    assert names_in(tmp_path) == ["b.db", "home"]


def test_a_wrong_index_is_told_of_and_the_texts_are_backed_up(tmp_path: Path, database: Path) -> None:
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("DELETE FROM prompt_index WHERE rowid = (SELECT min(number) FROM prompts)")
    made = back_up(str(database), str(tmp_path / "b.db"), force=False, report=silent)
    assert {problem.part for problem in made.problems} == {"index"}
    assert dump(tmp_path / "b.db")["prompts"] == dump(database)["prompts"]


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, database: Path) -> None:
    program = (
        "import resource, signal, sys\n"
        "from dittybag.domain.errors import StorageError\n"
        "from dittybag.storage.sqlite.backups import back_up\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "try:\n"
        "    back_up(sys.argv[1], sys.argv[2], force=False, report=lambda text: None)\n"
        "except StorageError as error:\n"
        "    print(type(error).__name__)\n"
    )
    command = [sys.executable, "-c", program, str(database), str(tmp_path / "b.db")]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=30, check=True).stdout
    assert said.strip() in ("StorageFull", "StorageFailed")
    assert names_in(tmp_path) == ["home"]


# Putting it back


def test_a_backup_restores_where_there_was_nothing(tmp_path: Path, database: Path) -> None:
    back_up(str(database), str(tmp_path / "b.db"), force=False, report=silent)
    target = tmp_path / "deep" / "new.db"
    restored = restore(str(tmp_path / "b.db"), str(target), force=False, report=silent)
    assert (restored.database, restored.aside, restored.problems) == (str(target), None, [])
    assert dump(target) == dump(database)
    assert names_in(target.parent) == ["new.db"]
    assert target.stat().st_mode & 0o777 == 0o600
    check(target)


def test_a_database_that_nobody_has_used_yet_is_as_good_as_none(tmp_path: Path, database: Path) -> None:
    unused, empty = tmp_path / "unused.db", tmp_path / "empty.db"
    asyncio.run(SqliteStore(str(unused)).close())
    empty.touch()
    for target in (unused, empty):
        assert restore(str(database), str(target), force=False, report=silent).aside is None
        assert dump(target) == dump(database)
        check(target)


def test_a_database_with_something_in_it_is_replaced_only_by_force_and_kept(
    tmp_path: Path, database: Path
) -> None:
    target = tmp_path / "present.db"
    add_task(target, "present")
    target.chmod(0o640)
    before = dump(target)
    with pytest.raises(FileRefused) as caught:
        restore(str(database), str(target), force=False, report=silent)
    assert caught.value.reason == "exists"
    assert dump(target) == before
    asides = []
    for _ in range(2):
        aside = restore(str(database), str(target), force=True, report=silent).aside
        assert aside is not None
        asides.append(Path(aside))
        assert dump(target) == dump(database)
    assert dump(asides[0]) == before
    assert dump(asides[1]) == dump(database)
    assert asides[0].stat().st_mode & 0o777 == target.stat().st_mode & 0o777 == 0o640
    assert names_in(tmp_path) == sorted(["home", "present.db", *(aside.name for aside in asides)])
    check(target)
    check(asides[0])


async def test_whoever_has_the_database_open_goes_on_with_what_was_restored(
    tmp_path: Path, database: Path
) -> None:
    back_up(str(database), str(tmp_path / "b.db"), force=False, report=silent)
    backed_up = dump(database)
    workspace = Workspace(SqliteStore(str(database)))
    caller = Caller((await workspace.projects.find("default")).id, "tester")
    await workspace.tasks.create(caller, title="after the backup")
    await asyncio.to_thread(restore, str(tmp_path / "b.db"), str(database), force=True, report=silent)
    assert dump(database) == backed_up
    assert (await workspace.tasks.search(caller, "after the backup"))[0] == 0
    await workspace.store.check()
    await workspace.tasks.create(caller, title="after the restoring")
    await workspace.store.close()
    assert [row for row in dump(database)["tasks"] if "after the restoring" in row]
    check(database)


async def test_whoever_has_the_database_open_hears_of_what_was_restored_and_of_what_comes_then(
    tmp_path: Path, database: Path
) -> None:
    file = tmp_path / "backup.db"
    back_up(str(database), str(file), force=False, report=silent)
    store = SqliteStore(str(database))
    workspace = Workspace(store)
    caller = Caller((await workspace.projects.find("default")).id, "tester")
    heard = asyncio.Event()
    store.subscribe(lambda news: heard.set())
    for number in range(5):
        await workspace.prompts.create(caller, name=f"later-{number}", content="Later.")
    async with asyncio.timeout(5):
        await heard.wait()
    before = store.stamp("prompt", caller.project)
    heard.clear()
    restore(str(file), str(database), force=True, report=silent)
    restored = store.stamp("prompt", caller.project)
    assert restored != before
    async with asyncio.timeout(5):
        await heard.wait()
    # The log goes on with numbers that this process has seen before, for other changes.
    heard.clear()

    async def add(other: Workspace, somebody: Caller) -> None:
        await other.prompts.create(somebody, name="new", content="New.")

    await _write(database, add)
    assert store.stamp("prompt", caller.project) not in (before, restored)
    async with asyncio.timeout(5):
        await heard.wait()
    await store.close()


def test_a_write_that_comes_in_the_middle_is_in_one_of_the_two(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the present database is locked, writes are acknowledged, and must be found where it was kept."""
    target = tmp_path / "present.db"
    add_task(target, "before")
    copying = 0
    refused: list[str] = []

    def report(text: str) -> None:
        nonlocal copying
        if text.startswith("Copying"):
            copying += 1
            add_task(target, f"during {copying}")
        elif text.startswith(("Keeping", "Restoring")) and not text.endswith(" 100 %"):
            # From here on a write would be in neither of the two.
            with closing(apsw.Connection(str(target))) as other, pytest.raises(apsw.BusyError):
                other.execute("BEGIN IMMEDIATE")
            refused.append(text[:7])

    monkeypatch.setattr(backups, "_PAGES_PER_STEP", 20)
    aside = restore(str(database), str(target), force=True, report=report).aside
    assert copying > 2
    assert set(refused) == {"Keeping", "Restori"}
    kept = {row[2] for row in dump(Path(aside or ""))["tasks"]}
    assert kept == {"before", *(f"during {number}" for number in range(1, copying + 1))}
    assert dump(target) == dump(database)


def test_a_database_that_is_first_used_in_the_middle_is_not_replaced(tmp_path: Path, database: Path) -> None:
    target = tmp_path / "unused.db"
    asyncio.run(SqliteStore(str(target)).close())

    def report(text: str) -> None:
        if text == "Copying: 100 %":
            add_task(target, "just in time")

    with pytest.raises(FileRefused) as caught:
        restore(str(database), str(target), force=False, report=report)
    assert caught.value.reason == "exists"
    assert [row[2] for row in dump(target)["tasks"]] == ["just in time"]
    check(target)


RESTORER = """
import os, sys
from dittybag.storage.sqlite import backups
backups._PAGES_PER_STEP = 8
left = int(sys.argv[3])
def report(text):
    global left
    left -= 1
    if left == 0:
        os._exit(9)
backups.restore(sys.argv[1], sys.argv[2], force=True, report=report)
"""


def test_a_restore_that_is_killed_has_changed_nothing_or_everything(tmp_path: Path, database: Path) -> None:
    target = tmp_path / "t" / "present.db"
    add_task(target, "present")
    before, after = dump(target), dump(database)
    outcomes = set()
    for moment in (1, 6, 10, 14, 18, 22, 26, 30, 10_000):
        command = [sys.executable, "-c", RESTORER, str(database), str(target), str(moment)]
        ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=30, check=False)
        assert ended.returncode in (0, 9), ended.stderr
        found = dump(target)
        # Killed between the last page and the end, it has changed everything.
        assert found == after or (ended.returncode == 9 and found == before), moment
        outcomes.add((ended.returncode, found == after))
        check(target)
    assert {(0, True), (9, False)} <= outcomes


def test_a_database_that_is_damaged_is_moved_aside_as_it_is(tmp_path: Path, database: Path) -> None:
    target = tmp_path / "present.db"
    shutil.copy(database, target)
    target.write_bytes(target.read_bytes()[: 4096 * 3 + 17])
    target.with_name("present.db-wal").write_bytes(b"what is left of a log")
    with pytest.raises(FileRefused):
        restore(str(database), str(target), force=False, report=silent)
    damaged = target.read_bytes()
    aside = Path(restore(str(database), str(target), force=True, report=silent).aside or "")
    assert aside.read_bytes() == damaged
    assert aside.with_name(f"{aside.name}-wal").read_bytes() == b"what is left of a log"
    assert dump(target) == dump(database)
    assert {"home", "present.db", aside.name, f"{aside.name}-wal"} <= set(names_in(tmp_path))
    assert not target.with_name("present.db-wal").exists()
    check(target)


def test_a_log_without_its_database_is_moved_aside_too(tmp_path: Path, database: Path) -> None:
    target = tmp_path / "gone.db"
    target.with_name("gone.db-wal").write_bytes(b"an old log")
    aside = restore(str(database), str(target), force=False, report=silent).aside
    assert Path(f"{aside}-wal").read_bytes() == b"an old log"
    assert dump(target) == dump(database)


def test_a_file_of_another_program_is_no_backup_and_one_in_the_way_is_kept(
    tmp_path: Path, database: Path
) -> None:
    diary = tmp_path / "diary.txt"
    diary.write_text("dear diary " * 100)
    with pytest.raises(StorageForeign):
        restore(str(diary), str(tmp_path / "new.db"), force=True, report=silent)
    assert not (tmp_path / "new.db").exists()
    aside = restore(str(database), str(diary), force=True, report=silent).aside
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
def test_what_cannot_be_restored(
    tmp_path: Path, database: Path, source: str, target: str, reason: str
) -> None:
    (tmp_path / "link.db").symlink_to(database)
    before = dump(database)
    with pytest.raises(FileRefused) as caught:
        restore(str(tmp_path / source), str(tmp_path / target), force=True, report=silent)
    assert caught.value.reason == reason
    assert dump(database) == before
    assert names_in(tmp_path) == ["home", "link.db"]


def test_a_newer_backup_is_refused(tmp_path: Path, database: Path) -> None:
    file = tmp_path / "newer.db"
    back_up(str(database), str(file), force=False, report=silent)
    with closing(apsw.Connection(str(file))) as connection:
        connection.pragma("user_version", NEWEST + 1)
    with pytest.raises(StorageTooNew) as caught:
        restore(str(file), str(tmp_path / "new.db"), force=True, report=silent)
    assert (caught.value.where, caught.value.found) == (str(file), NEWEST + 1)
    assert names_in(tmp_path) == ["home", "newer.db"]


@pytest.mark.parametrize("number", range(1, NEWEST))
def test_an_older_backup_is_brought_to_the_newest_schema(tmp_path: Path, number: int) -> None:
    file = tmp_path / "old.db"
    with closing(apsw.Connection(str(file))) as connection:
        connection.pragma("application_id", APPLICATION_ID)
        connection.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, name, applied_at)")
        for step, name, sql in load_migrations()[:number]:
            connection.execute(sql)
            connection.execute("INSERT INTO migrations VALUES (?, ?, 0)", (step, name))
        connection.pragma("user_version", number)
    old = file.read_bytes()
    copy = tmp_path / "copy.db"
    assert back_up(str(file), str(copy), force=False, report=silent).problems == []
    target = tmp_path / "new.db"
    restore(str(copy), str(target), force=False, report=silent)
    assert file.read_bytes() == old
    check(target)
    add_task(target, "later")
    check(target)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER evil AFTER INSERT ON tasks BEGIN DELETE FROM prompts; END",
        "CREATE VIEW evil AS SELECT * FROM prompts",
        "DROP TRIGGER prompt_tags_after_insert",
        "DROP TABLE sessions",
    ],
)
def test_a_backup_with_other_tables_or_triggers_than_ours_is_refused(
    tmp_path: Path, database: Path, sql: str
) -> None:
    file = tmp_path / "changed.db"
    back_up(str(database), str(file), force=False, report=silent)
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute(sql)
    with pytest.raises(FileRefused) as caught:
        restore(str(file), str(tmp_path / "new.db"), force=True, report=silent)
    assert caught.value.reason == "damaged"
    assert names_in(tmp_path) == ["changed.db", "home"]


def test_a_wrong_index_is_made_anew_when_it_is_restored(tmp_path: Path, database: Path) -> None:
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("INSERT INTO task_index (rowid, text) VALUES (999, 'nobody')")
        connection.execute("DELETE FROM prompt_tags")
        connection.execute("UPDATE prompts SET folded_content = 'wrong'")
    target = tmp_path / "new.db"
    assert restore(str(database), str(target), force=False, report=silent).problems == []
    check(target)


def test_a_backup_that_is_flawed_but_readable_is_restored_and_said_to_be_so(
    tmp_path: Path, database: Path
) -> None:
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("UPDATE tasks SET title = 'behind the back' WHERE id = 2")
    rebuild_index(str(database))
    problems = restore(str(database), str(tmp_path / "new.db"), force=False, report=silent).problems
    assert [problem.part for problem in problems] == ["log"]
    assert dump(tmp_path / "new.db")["tasks"] == dump(database)["tasks"]


# Examining


def problems_after(database: Path, *sql: str) -> list[str]:
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        for statement in sql:
            connection.execute(statement)
    with open_snapshot(str(database)) as connection:
        return [problem.part for problem in check_integrity(connection, silent)]


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("UPDATE prompts SET title = 'x' WHERE name = 'p1'", "log"),
        ("UPDATE projects SET version = version + 1", "log"),
        ("DELETE FROM changes WHERE seq = 5", "log"),
        ("UPDATE changes SET after = '{' WHERE seq = 5", "log"),
        ("UPDATE changes SET after = CAST(x'7bff7d' AS TEXT) WHERE seq = 5", "log"),
        ("DELETE FROM tasks WHERE id = 1", "log"),
        ("DELETE FROM projects WHERE name = 'default'", "references"),
        ("DELETE FROM contents WHERE sha256 IN (SELECT sha256 FROM resources)", "references"),
        ("DELETE FROM contents WHERE sha256 NOT IN (SELECT sha256 FROM resources)", "contents"),
        ("UPDATE contents SET bytes = zeroblob(length(bytes))", "contents"),
        ("UPDATE resources SET size = 1", "contents"),
        ("DELETE FROM resource_index", "index"),
        ("DELETE FROM prompt_tags WHERE tag = 'blue'", "index"),
        ("UPDATE tasks SET folded_notes = 'x' WHERE id = 3", "index"),
        ("UPDATE prompt_index_data SET block = x'00' WHERE id > 10", "index"),
        ("DELETE FROM prompt_index_docsize WHERE id = 3", "index"),
    ],
)
def test_what_does_not_agree_is_found(database: Path, sql: str, part: str) -> None:
    assert part in problems_after(database, sql)


def test_texts_that_have_changed_places_in_the_index_are_found(database: Path) -> None:
    swapped = [
        "DELETE FROM task_index WHERE rowid IN (1, 2)",
        """INSERT INTO task_index (rowid, text)
           SELECT 3 - id, title || char(10) || coalesce(folded_notes, notes, '') FROM tasks WHERE id < 3""",
    ]
    assert problems_after(database, *swapped) == ["index"]


def test_looking_changes_nothing_and_leaves_a_log_that_others_left(database: Path) -> None:
    program = (
        "import apsw, os, sys\n"
        "connection = apsw.Connection(sys.argv[1])\n"
        "connection.execute('PRAGMA wal_autocheckpoint = 0')\n"
        "connection.execute('INSERT INTO sessions VALUES (1, x\\'00\\', 1)')\n"
        "os._exit(0)\n"
    )
    before = {file.name: file.read_bytes() for file in database.parent.iterdir()}
    with open_snapshot(str(database)) as connection:
        assert check_integrity(connection, silent) == []
    assert {file.name: file.read_bytes() for file in database.parent.iterdir()} == before
    subprocess.run([sys.executable, "-c", program, str(database)], check=True, timeout=30)
    log = database.with_name("store.db-wal")
    before = {file.name: file.read_bytes() for file in (database, log)}
    assert before[log.name]
    with open_snapshot(str(database)) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").get == 1
        assert check_integrity(connection, silent) == []
    assert {file.name: file.read_bytes() for file in (database, log)} == before


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM prompt_index",
        "DELETE FROM task_index_data",
        "DELETE FROM prompt_tags",
        "UPDATE prompt_index_data SET block = x'00'",
    ],
)
def test_making_the_index_anew_writes_nothing_else(database: Path, sql: str) -> None:
    before = dump(database)
    assert set(problems_after(database, sql)) == {"index"}
    rebuild_index(str(database))
    kept = {"prompts", "resources", "tasks", "projects", "changes", "contents", "prompt_tags", "migrations"}
    after = dump(database)
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    check(database)


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ("3.44.5", False),
        ("3.44.6", True),
        ("3.45.3", False),
        ("3.50.6", False),
        ("3.50.7", True),
        ("3.51.2", False),
        ("3.51.3", True),
        ("3.52.0", True),
        ("4.0.0", True),
    ],
)
def test_which_engines_may_write(version: str, safe: bool) -> None:
    assert is_safe_sqlite_version(version) is safe


def test_the_engine_of_this_process_may_write() -> None:
    assert is_safe_sqlite_version(sqlite_version())


def test_a_folder_and_a_file_of_another_program_are_not_looked_into(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x" * 5000)
    for path in (tmp_path, tmp_path / "x"):
        with pytest.raises(StorageError), open_snapshot(str(path)):
            pass
    assert names_in(tmp_path) == ["x"]
