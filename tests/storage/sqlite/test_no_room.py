"""Full disks and folders that may not be written to: a clear error, never an acknowledgement."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from dittybag.storage.sqlite.store import SqliteStore
from tests.storage.sqlite.children import Child, namespace, powerless


@pytest.fixture
def store_file(tmp_path: Path) -> Path:
    """A store that nobody has open."""
    path = tmp_path / "folder" / "store.db"
    asyncio.run(SqliteStore(str(path)).close())
    return path


def test_a_full_disk_is_named_and_reads_go_on_and_writes_too_when_there_is_room_again(tmp_path: Path) -> None:
    with Child("small_disk", str(tmp_path), under=namespace()) as child:
        told = child.answer(60)
    assert told["errors"] == ["StorageFull"]
    assert (told["refused_alone"], told["refused"] > 3, told["refused_after"]) == (3, True, 0)
    assert told["kept"] == told["found"] == told["read_when_full"]


def test_a_limit_on_the_size_of_files_is_an_error_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with Child("small_disk", str(tmp_path), "--file-size") as child:
        told = child.answer(60)
    assert set(told["errors"]) <= {"StorageFull", "StorageFailed"}
    assert (told["refused_alone"] > 0, told["refused"] > 3, told["refused_after"]) == (True, True, 0)
    assert told["kept"] == told["found"] == told["read_when_full"]


def test_a_new_store_on_a_full_disk_says_that_the_disk_is_full(tmp_path: Path) -> None:
    with Child("small_disk", str(tmp_path), "--start", under=namespace()) as child:
        assert child.answer() == "StorageFull"


def test_a_file_that_may_not_be_written_can_be_read(store_file: Path) -> None:
    store_file.chmod(0o444)
    with Child("opener", under=powerless()) as child:
        assert child.answer() == "ready"
        assert child.ask(str(store_file)) == {"open": "ok", "read": "ok", "write": "StorageReadOnly"}


@pytest.mark.parametrize("name", ["store.db", "new.db", "sub/new.db"])
def test_a_folder_that_may_not_be_written_to_is_named_as_the_cause(store_file: Path, name: str) -> None:
    folder = store_file.parent
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    folder.chmod(0o555)
    try:
        with Child("opener", under=powerless()) as child:
            assert child.answer() == "ready"
            assert child.ask(str(folder / name)) == {"open": "StorageReadOnly"}
    finally:
        folder.chmod(0o755)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_folder_that_may_not_be_written_to_from_now_on_stops_no_running_store(store_file: Path) -> None:
    """The files are open already, and there is room in them."""
    folder = store_file.parent
    connection = apsw.Connection(str(store_file))
    assert connection.execute("SELECT count(*) FROM projects").get == 1
    folder.chmod(0o555)
    try:
        with Child("opener", under=powerless()) as child:
            assert child.answer() == "ready"
            assert child.ask(str(store_file)) == {"open": "ok", "read": "ok", "write": "ok"}
    finally:
        folder.chmod(0o755)
        connection.close()
