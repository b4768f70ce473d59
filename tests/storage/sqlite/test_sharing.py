"""One file, several processes: how connections are set, and who waits for whom."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from dittybag.domain.errors import StorageBusy, StorageFailed
from dittybag.domain.ports import Transaction
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite import connections
from dittybag.storage.sqlite.store import SqliteStore
from dittybag.storage.sqlite.transaction import SqliteTransaction
from tests.storage.sqlite.children import Child

PRAGMAS = ("journal_mode", "synchronous", "foreign_keys", "query_only", "trusted_schema", "locking_mode")


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    workspace = Workspace(SqliteStore(str(tmp_path / "store.db")))
    yield workspace
    await workspace.store.close()


@pytest.fixture
async def caller(workspace: Workspace) -> Caller:
    return Caller((await workspace.projects.find("default")).id, "tester")


async def pragmas(transaction: Transaction) -> dict[str, Any]:
    """How the connection is set that a use case runs on."""
    assert isinstance(transaction, SqliteTransaction)
    return {name: transaction._connection.pragma(name) for name in PRAGMAS}


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
        assert isinstance(transaction, SqliteTransaction)
        with pytest.raises(apsw.ConstraintError, match="FOREIGN KEY"):
            transaction._connection.execute("UPDATE prompts SET project = 99")

    await workspace.prompts.create(
        Caller((await workspace.projects.find("default")).id, "tester"), name="p", content="c"
    )
    await workspace.store.write(work, actor="tester")


async def test_reads_are_answered_while_another_process_holds_the_write_lock(
    tmp_path: Path, workspace: Workspace, caller: Caller
) -> None:
    prompt, _ = await workspace.prompts.create(caller, name="p", content="needle")
    with Child("lock_holder", str(tmp_path / "store.db")) as holder:
        assert holder.answer() == "ready"
        assert holder.ask("lock") == "locked"
        async with asyncio.timeout(5):
            assert (await workspace.prompts.recent(caller, 10, 0)).total == 1
            page = await workspace.prompts.search(caller, "needle", 10, 0)
            assert [item.id for item in page.prompts] == [prompt.id]
            stamp = workspace.store.stamp("prompt", caller.project)
            assert workspace.store.stamp("prompt", caller.project) == stamp
        newcomer = Workspace(SqliteStore(str(tmp_path / "store.db")))
        assert (await newcomer.prompts.recent(caller, 10, 0)).total == 1
        await newcomer.store.close()


async def test_a_write_waits_for_another_processs_lock_and_reads_go_on_meanwhile(
    tmp_path: Path, workspace: Workspace, caller: Caller
) -> None:
    with Child("lock_holder", str(tmp_path / "store.db")) as holder:
        assert holder.answer() == "ready"
        assert holder.ask("lock") == "locked"
        writes = [asyncio.create_task(workspace.tasks.create(caller, title=f"t{n}")) for n in range(20)]
        for _ in range(100):
            await workspace.tasks.search(caller, "t")
        assert not any(write.done() for write in writes)
        assert holder.ask("free") == "free"
        async with asyncio.timeout(10):
            made = await asyncio.gather(*writes)
    assert [task.title for task in made] == [f"t{n}" for n in range(20)]
    assert (await workspace.tasks.search(caller, "t"))[0] == 20


async def test_opening_a_file_once_more_gives_up_no_lock_of_this_process(
    tmp_path: Path, workspace: Workspace
) -> None:
    """Closing any descriptor of a file gives up all POSIX locks that the process has on it.

    Another process that finds the file unlocked may take away its log, and with it what we then acknowledge:
    https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
    """
    path = tmp_path / "store.db"
    assert not lockable(path)
    again = SqliteStore(str(path))
    assert not lockable(path)
    await again.close()
    assert not lockable(path)
    await workspace.store.close()
    assert lockable(path)


def lockable(path: Path) -> bool:
    """Whether another process could have the file, as SQLite locks it, for itself alone."""
    # The range of https://www.sqlite.org/src/file/src/os.h: SHARED_FIRST and SHARED_SIZE.
    program = (
        "import fcntl, sys\n"
        "with open(sys.argv[1], 'r+b') as file:\n"
        "    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    return subprocess.run(command, stderr=subprocess.DEVNULL, timeout=30, check=False).returncode == 0


async def test_a_lock_that_is_held_too_long_is_an_error_and_nothing_is_written(
    tmp_path: Path, workspace: Workspace, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.2)
    with Child("lock_holder", str(tmp_path / "store.db")) as holder:
        assert holder.answer() == "ready"
        assert holder.ask("lock") == "locked"
        async with asyncio.timeout(10):
            outcomes = await asyncio.gather(
                *(workspace.tasks.create(caller, title=f"t{n}") for n in range(3)), return_exceptions=True
            )
        assert [type(outcome) for outcome in outcomes] == [StorageBusy] * 3
        assert holder.ask("free") == "free"
    task = await workspace.tasks.create(caller, title="later")
    assert await workspace.tasks.search(caller, "") == (1, [task])


def take_away(file: Path, how: str) -> None:
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
async def test_nothing_is_acknowledged_that_is_written_to_a_file_nobody_finds(
    tmp_path: Path, workspace: Workspace, caller: Caller, happens: str
) -> None:
    await workspace.tasks.create(caller, title="Before")
    take_away(tmp_path / "store.db", happens)
    with pytest.raises(StorageFailed) as failed:
        await workspace.tasks.create(caller, title="After")
    assert "moved, deleted or replaced" in failed.value.problem
    with pytest.raises(StorageFailed):
        await workspace.store.check()
