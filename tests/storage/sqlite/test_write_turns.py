"""Processes that write one file take turns."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dittybag import files
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite import sqlite_connections
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.storage.sqlite.scripted_process import ScriptedProcess


@pytest.fixture
def long_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a write wait for its turn for longer than a test runs."""
    monkeypatch.setattr(sqlite_connections, "TURN_SECONDS", 60.0)


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a write hardly wait for its turn."""
    monkeypatch.setattr(sqlite_connections, "TURN_SECONDS", 0.05)


def holder_of_turn(folder: Path) -> ScriptedProcess:
    holder = ScriptedProcess("turn_holder", str(folder / "store.db"))
    assert holder.read_reply() == "held"
    return holder


async def start_waiting_write(workspace: Workspace, caller: Caller) -> asyncio.Task[Any]:
    """Start a write and return it when it waits for its turn."""
    writing = asyncio.create_task(workspace.tasks.create(caller, title="waiting"))
    async with asyncio.timeout(10):
        while not waiting_threads():  # noqa: ASYNC110  # a thread sets no event
            await asyncio.sleep(0.001)
    return writing


def waiting_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "dittybag-turn"]


def is_free(folder: Path) -> bool:
    """Whether it is nobody's turn."""
    descriptor = os.open(folder / "store.db-wal", os.O_RDONLY)
    try:
        return files.try_lock(descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.usefixtures("long_turns")
async def test_a_write_waits_for_its_turn_until_the_turn_is_given_back(
    tmp_path: Path, workspace: Workspace, caller: Caller
) -> None:
    await workspace.tasks.create(caller, title="before")
    assert is_free(tmp_path)
    with holder_of_turn(tmp_path) as holder:
        writing = await start_waiting_write(workspace, caller)
        finished, _ = await asyncio.wait([writing], timeout=0.1)
        assert not finished
        assert (await workspace.tasks.search(caller, "before"))[0] == 1
        assert holder.request("give it back") == "free"
        assert (await asyncio.wait_for(writing, 10)).title == "waiting"
    assert is_free(tmp_path)


@pytest.mark.usefixtures("long_turns")
async def test_the_turn_of_a_killed_process_ends_at_once(
    tmp_path: Path, workspace: Workspace, caller: Caller
) -> None:
    with holder_of_turn(tmp_path) as holder:
        writing = await start_waiting_write(workspace, caller)
        holder.signal(signal.SIGKILL)
        assert (await asyncio.wait_for(writing, 10)).title == "waiting"


@pytest.mark.usefixtures("short_turns")
async def test_a_stopped_process_does_not_keep_others_from_writing(
    tmp_path: Path, workspace: Workspace, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    with holder_of_turn(tmp_path) as holder:
        holder.signal(signal.SIGSTOP)
        async with asyncio.timeout(10):
            await workspace.tasks.create(caller, title="first")
        # Only one write waits in vain.
        monkeypatch.setattr(sqlite_connections, "TURN_SECONDS", 60.0)
        async with asyncio.timeout(10):
            await workspace.tasks.create(caller, title="second")
    # The process is gone, and the turn is given back by the thread that waited for it.
    for thread in waiting_threads():
        await asyncio.to_thread(thread.join, 10)
    assert is_free(tmp_path)
    await workspace.tasks.create(caller, title="third")
    assert (await workspace.tasks.search(caller, ""))[0] == 3


def test_a_store_is_closed_while_a_write_waits_for_its_turn(tmp_path: Path) -> None:
    async def write_and_close() -> None:
        workspace = Workspace(SqliteStore(str(tmp_path / "store.db")))
        caller = Caller((await workspace.projects.find("default")).id, "tester")
        with holder_of_turn(tmp_path):
            writing = await start_waiting_write(workspace, caller)
            async with asyncio.timeout(10):
                await workspace.store.close()
            writing.cancel()

    asyncio.run(write_and_close())


@pytest.mark.parametrize("missing", ["module", "file system"])
async def test_without_locks_of_files_writes_take_no_turns(
    workspace: Workspace, caller: Caller, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    if missing == "module":
        monkeypatch.setitem(sys.modules, "fcntl", None)
    else:
        monkeypatch.setattr("fcntl.flock", refuse)
    for title in ("first", "second"):
        await workspace.tasks.create(caller, title=title)
    assert (await workspace.tasks.search(caller, ""))[0] == 2


def test_turns_leave_no_file_behind(tmp_path: Path) -> None:
    async def write_and_close() -> None:
        workspace = Workspace(SqliteStore(str(tmp_path / "store.db")))
        caller = Caller((await workspace.projects.find("default")).id, "tester")
        await workspace.tasks.create(caller, title="t")
        await workspace.store.close()

    asyncio.run(write_and_close())
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]
