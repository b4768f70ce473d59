"""Full disks and read-only folders cause clear errors, and no write is acknowledged."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from dittybag.domain.errors import StorageError
from dittybag.domain.queries import PromptQuery
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.storage.sqlite.scripted_process import ScriptedProcess, drop_privileges, unshare_mounts
from tests.storage_contract.store_session import open_session


@pytest.fixture
def store_file(tmp_path: Path) -> Path:
    """A store that no process has open."""
    path = tmp_path / "folder" / "store.db"
    asyncio.run(SqliteStore(str(path)).close())
    return path


def test_a_full_disk_is_reported_while_reads_continue_and_writes_resume_once_there_is_space(
    tmp_path: Path,
) -> None:
    with ScriptedProcess("small_disk", str(tmp_path), under=unshare_mounts()) as child:
        result = child.read_reply(60)
    assert result["errors"] == ["StorageFull"]
    assert (result["refused_alone"], result["refused"] > 3, result["refused_after"]) == (3, True, 0)
    assert result["kept"] == result["found"] == result["read_when_full"]


def test_a_file_size_limit_is_an_error_and_loses_no_acknowledged_write(tmp_path: Path) -> None:
    with ScriptedProcess("small_disk", str(tmp_path), "--file-size") as child:
        result = child.read_reply(60)
    assert set(result["errors"]) <= {"StorageFull", "StorageFailed"}
    assert (result["refused_alone"] > 0, result["refused"] > 3, result["refused_after"]) == (True, True, 0)
    assert result["kept"] == result["found"] == result["read_when_full"]


def test_a_new_store_on_a_full_disk_reports_the_full_disk(tmp_path: Path) -> None:
    with ScriptedProcess("small_disk", str(tmp_path), "--start", under=unshare_mounts()) as child:
        assert child.read_reply() == "StorageFull"


def test_a_read_only_file_can_be_read(store_file: Path) -> None:
    store_file.chmod(0o444)
    with ScriptedProcess("sqlite_opener", under=drop_privileges()) as child:
        assert child.read_reply() == "ready"
        assert child.request(str(store_file)) == {"open": "ok", "read": "ok", "write": "StorageReadOnly"}


@pytest.mark.parametrize("name", ["store.db", "new.db", "sub/new.db"])
def test_a_read_only_folder_is_reported(store_file: Path, name: str) -> None:
    folder = store_file.parent
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    folder.chmod(0o555)
    try:
        with ScriptedProcess("sqlite_opener", under=drop_privileges()) as child:
            assert child.read_reply() == "ready"
            assert child.request(str(folder / name)) == {"open": "StorageReadOnly"}
    finally:
        folder.chmod(0o755)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_folder_that_becomes_read_only_does_not_stop_a_running_store(store_file: Path) -> None:
    """The write-ahead log and the shared memory file already exist."""
    folder = store_file.parent
    connection = apsw.Connection(str(store_file))
    assert connection.execute("SELECT count(*) FROM projects").get == 1
    folder.chmod(0o555)
    try:
        with ScriptedProcess("sqlite_opener", under=drop_privileges()) as child:
            assert child.read_reply() == "ready"
            assert child.request(str(store_file)) == {"open": "ok", "read": "ok", "write": "ok"}
    finally:
        folder.chmod(0o755)
        connection.close()


async def test_writes_go_on_beside_a_damaged_index_and_searches_report_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(str(path))
    session = await open_session(store)
    await session.task("first")
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE task_index_data SET block = x'00' WHERE id = 10")
    for number in range(8):
        await session.prompt(f"p{number}")
        with pytest.raises(StorageError):
            await session.task("second")
    await store.close()
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(
            "UPDATE prompt_index_data SET block = substr(block, 1, length(block) - 8) WHERE id = 10"
        )
    store = SqliteStore(str(path))
    with pytest.raises(StorageError, match="damaged"):
        await Workspace(store).prompts.page(session.caller, PromptQuery(project=1, text="words", limit=5))
    await store.close()
