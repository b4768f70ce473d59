"""Several processes share one file: connection settings, locks, and replaced files."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from dittybag.domain.errors import StorageBusy, StorageReplaced
from dittybag.domain.ports import Transaction
from dittybag.domain.queries import PromptQuery
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.sql.sql_transaction import SqlTransaction
from dittybag.storage.sqlite import sqlite_connections
from dittybag.storage.sqlite.sqlite_driver import SqliteDriver
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.storage.sqlite.scripted_process import ScriptedProcess

PRAGMAS = ("journal_mode", "synchronous", "foreign_keys", "query_only", "trusted_schema", "locking_mode")


def connection_of(transaction: Transaction) -> apsw.Connection:
    assert isinstance(transaction, SqlTransaction)
    assert isinstance(transaction._tables.driver, SqliteDriver)
    return transaction._tables.driver.connection


async def pragmas(transaction: Transaction) -> dict[str, Any]:
    """Return the settings of the connection that a use case runs on."""
    return {name: connection_of(transaction).pragma(name) for name in PRAGMAS}


async def test_the_writer_syncs_fully_and_checks_foreign_keys(workspace: Workspace) -> None:
    assert await workspace.store.write(pragmas, actor="tester") == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "query_only": 0,
        "trusted_schema": 0,
        "locking_mode": "normal",
    }


@pytest.mark.parametrize("slow", [False, True])
async def test_readers_cannot_write(workspace: Workspace, slow: bool) -> None:
    found = await workspace.store.read(pragmas, slow=slow)
    assert (found["journal_mode"], found["query_only"]) == ("wal", 1)


async def test_a_reference_to_a_missing_project_is_refused(workspace: Workspace) -> None:
    async def work(transaction: Transaction) -> None:
        with pytest.raises(apsw.ConstraintError, match="FOREIGN KEY"):
            connection_of(transaction).execute("UPDATE prompts SET project = 99")

    await workspace.prompts.create(
        Caller((await workspace.projects.find("default")).id, "tester"), name="p", content="c"
    )
    await workspace.store.write(work, actor="tester")


async def test_reads_succeed_while_another_process_holds_the_write_lock(
    tmp_path: Path, workspace: Workspace, caller: Caller
) -> None:
    prompt, _ = await workspace.prompts.create(caller, name="p", content="needle")
    with ScriptedProcess("lock_holder", str(tmp_path / "store.db")) as holder:
        assert holder.read_reply() == "ready"
        assert holder.request("lock") == "locked"
        async with asyncio.timeout(5):
            assert (
                await workspace.prompts.page(caller, PromptQuery(project=caller.project, limit=10, offset=0))
            ).total == 1
            page = await workspace.prompts.page(
                caller, PromptQuery(project=caller.project, text="needle", limit=10, offset=0)
            )
            assert [item.id for item in page.prompts] == [prompt.id]
            stamp = workspace.store.stamp("prompt", caller.project)
            assert workspace.store.stamp("prompt", caller.project) == stamp
        newcomer = Workspace(SqliteStore(str(tmp_path / "store.db")))
        assert (
            await newcomer.prompts.page(caller, PromptQuery(project=caller.project, limit=10, offset=0))
        ).total == 1
        await newcomer.store.close()


async def test_a_write_waits_for_another_processs_lock_while_reads_continue(
    tmp_path: Path, workspace: Workspace, caller: Caller
) -> None:
    with ScriptedProcess("lock_holder", str(tmp_path / "store.db")) as holder:
        assert holder.read_reply() == "ready"
        assert holder.request("lock") == "locked"
        writes = [asyncio.create_task(workspace.tasks.create(caller, title=f"t{n}")) for n in range(20)]
        for _ in range(100):
            await workspace.tasks.search(caller, "t")
        assert not any(write.done() for write in writes)
        assert holder.request("free") == "free"
        async with asyncio.timeout(10):
            made = await asyncio.gather(*writes)
    assert [task.title for task in made] == [f"t{n}" for n in range(20)]
    assert (await workspace.tasks.search(caller, "t"))[0] == 20


async def test_opening_a_file_again_keeps_the_locks_of_this_process(
    tmp_path: Path, workspace: Workspace
) -> None:
    """Closing any descriptor of a file releases all POSIX locks of the process on it.

    Another process that finds the file unlocked may delete its write-ahead log with acknowledged writes:
    https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
    """
    path = tmp_path / "store.db"
    assert not can_lock_exclusively(path)
    again = SqliteStore(str(path))
    assert not can_lock_exclusively(path)
    await again.close()
    assert not can_lock_exclusively(path)
    await workspace.store.close()
    assert can_lock_exclusively(path)


def can_lock_exclusively(path: Path) -> bool:
    """Whether another process could lock the file exclusively, as SQLite does."""
    # The range of https://www.sqlite.org/src/file/src/os.h: SHARED_FIRST and SHARED_SIZE.
    program = (
        "import fcntl, sys\n"
        "with open(sys.argv[1], 'r+b') as file:\n"
        "    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    return subprocess.run(command, stderr=subprocess.DEVNULL, timeout=30, check=False).returncode == 0


async def test_a_write_waits_for_seconds_while_another_process_holds_the_lock(
    tmp_path: Path, workspace: Workspace, caller: Caller
) -> None:
    with ScriptedProcess("lock_holder", str(tmp_path / "store.db")) as holder:
        assert holder.read_reply() == "ready"
        assert holder.request("lock") == "locked"
        writing = asyncio.create_task(workspace.tasks.create(caller, title="patient"))
        finished, _ = await asyncio.wait([writing], timeout=3)
        assert not finished, "other programs may hold the lock for longer"
        assert holder.request("free") == "free"
    assert (await asyncio.wait_for(writing, 5)).title == "patient"
    # What the documentation promises, and no test can wait for.
    assert sqlite_connections.BUSY_SECONDS == 30


async def test_a_lock_that_is_held_too_long_is_an_error_and_writes_nothing(
    tmp_path: Path, workspace: Workspace, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connections, "BUSY_SECONDS", 0.2)
    with ScriptedProcess("lock_holder", str(tmp_path / "store.db")) as holder:
        assert holder.read_reply() == "ready"
        assert holder.request("lock") == "locked"
        async with asyncio.timeout(10):
            outcomes = await asyncio.gather(
                *(workspace.tasks.create(caller, title=f"t{n}") for n in range(3)), return_exceptions=True
            )
        assert [type(outcome) for outcome in outcomes] == [StorageBusy] * 3
        assert holder.request("free") == "free"
    task = await workspace.tasks.create(caller, title="later")
    assert await workspace.tasks.search(caller, "") == (1, [task])


def remove_file(file: Path, how: str) -> None:
    beside = file.with_name("other.db")
    if how == "deleted":
        for part in file.parent.glob("store.db*"):
            part.unlink()
    elif how == "moved":
        file.rename(beside)
    else:
        beside.write_bytes(file.read_bytes())
        beside.replace(file)


@pytest.mark.parametrize("happens", ["deleted", "moved", "replaced"])
async def test_a_write_to_a_file_that_was_removed_or_replaced_is_not_acknowledged(
    tmp_path: Path, workspace: Workspace, caller: Caller, happens: str
) -> None:
    await workspace.tasks.create(caller, title="Before")
    remove_file(tmp_path / "store.db", happens)
    with pytest.raises(StorageReplaced, match="moved, deleted or replaced"):
        await workspace.tasks.create(caller, title="After")
    with pytest.raises(StorageReplaced):
        await workspace.store.check()
