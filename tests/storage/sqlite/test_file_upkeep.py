"""Upkeep of a file between writes: merged segments of its indexes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from dittybag.domain.errors import StorageError
from dittybag.domain.queries import PromptQuery
from dittybag.storage.sqlite import integrity_check
from dittybag.storage.sqlite.index_structure import Level, read_levels
from dittybag.storage.sqlite.migrations.sqlite_migrations import migrate
from dittybag.storage.sqlite.snapshots import open_snapshot
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from dittybag.storage.sqlite.sqlite_text_search import FULL_TEXT_INDEXES, PendingIndex
from tests.storage_contract.store_session import open_session

#: The segments of a level that are merged.
MERGED = 16
SECONDS = 20


async def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(SECONDS * 200):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not happen")


def levels_of(path: Path, index: str) -> list[Level]:
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return read_levels(connection, index)


def has_few_segments(path: Path) -> bool:
    return all(
        len(level.segments) < MERGED and not level.merging
        for index in FULL_TEXT_INDEXES
        for level in levels_of(path, index)
    )


async def test_segments_of_single_writes_are_merged_while_nobody_writes(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(str(path))
    session = await open_session(store)
    for number in range(3 * MERGED):
        await session.prompt(f"p{number}", f"content {number}")
    await session.delete_prompt("p0")
    await wait_until(lambda: has_few_segments(path))
    levels = levels_of(path, "prompt_index")
    segments = [segment for level in levels for segment in level.segments]
    # Also tests that the record of FTS5 is read as it is written.
    assert len(levels) > 1
    assert sum(segment.rows - segment.deleted for segment in segments) == 3 * MERGED - 1
    assert sum(segment.pages for segment in segments) >= len(segments)
    await store.close()
    with open_snapshot(str(path)) as connection:
        assert integrity_check.check_integrity(connection, lambda *progress: None) == []


async def test_a_damaged_record_of_segments_is_reported_by_searches(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(str(path))
    session = await open_session(store)
    await session.prompt("p", "some content")
    await store.close()
    with closing(apsw.Connection(str(path))) as connection:
        for _ in range(8):
            connection.execute(
                "UPDATE prompt_index_data SET block = substr(block, 1, length(block) - 1) WHERE id = 10"
            )
            assert read_levels(connection, "prompt_index") == []
    store = SqliteStore(str(path))
    session = await open_session(store)
    with pytest.raises(StorageError, match="damaged"):
        await session.workspace.prompts.page(
            session.caller, PromptQuery(project=session.project, text="some content", limit=5)
        )
    await store.close()


async def test_writes_one_after_the_other_do_not_pile_up_segments(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(str(path))
    session = await open_session(store)
    most = 0
    for number in range(10 * MERGED):
        await session.task(f"task {number}")
        most = max([most, *(len(level.segments) for level in levels_of(path, "task_index"))])
    assert MERGED < most < 6 * MERGED
    await store.close()


def test_segments_are_merged_with_a_bulk_write(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    migrate(str(path))
    with closing(apsw.Connection(str(path))) as connection:
        pending = PendingIndex(connection)
        for number in range(1, 2 * MERGED):
            pending.add("prompt_index", number, ("a few words",), in_index=False)
            pending.write()
        (level,) = levels_of(path, "prompt_index")
        assert len(level.segments) == 2 * MERGED - 1
        for number in range(100, 120):
            pending.add("prompt_index", number, (f"{number:05} " * 5000,), in_index=False)
        pending.write()
    assert has_few_segments(path)


async def test_writes_go_on_beside_a_damaged_index(tmp_path: Path) -> None:
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
