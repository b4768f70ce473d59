"""After a purge, no byte of the content is left in any file of a SQLite database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from dittybag.domain.entities import Kind
from dittybag.domain.errors import PurgeUnfinished
from dittybag.domain.queries import ChangeQuery
from dittybag.services.history_service import UndoSelection
from dittybag.services.purge_service import Selection
from dittybag.storage.sqlite import sqlite_connections
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.storage_contract.secret_contents import CREATORS, SECRET, create_project_with_tasks, store_sessions
from tests.storage_contract.store_session import StoreSession, open_session
from tests.torture.sqlite_audit import SqliteAudit

KINDS: tuple[Kind, ...] = ("project", "prompt", "resource", "task")
INDEXES = ("prompt_index", "resource_index", "task_index", "word_index")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dittybag.db"


@pytest.fixture
async def session(path: Path) -> AsyncIterator[StoreSession]:
    """A session next to another one that has the file open, and with other content around the secret."""
    store, other = SqliteStore(str(path)), SqliteStore(str(path))
    session = await open_session(store)
    for number in range(50):
        await session.prompt(f"p{number}", f"Text {number} " * 50)
    await (await open_session(other)).task("Another task")
    yield session
    await other.close()
    await store.close()


def files_with(path: Path, text: bytes) -> set[str]:
    """Return the names of the files of a database that contain a text, ignoring case."""
    return {file.name for file in path.parent.iterdir() if text.lower() in file.read_bytes().lower()}


def settle(path: Path) -> None:
    """Merge the segments of the search indexes, so that few rows of each are deleted, and checkpoint."""
    with closing(apsw.Connection(str(path))) as connection:
        # The store may be merging segments, too.
        connection.set_busy_timeout(10_000)
        for index in INDEXES:
            connection.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.parametrize("kind", KINDS)
async def test_no_byte_of_a_purged_entity_is_left(session: StoreSession, path: Path, kind: Kind) -> None:
    key = await CREATORS[kind](session)
    if kind == "resource":
        await store_sessions(session)
    settle(path)
    # Deleted rows leave free pages, and free bytes in pages that are in use.
    await session.prompt("between", "Words")
    assert path.name in files_with(path, SECRET.encode())
    assert indexed_trigrams(path)
    await session.workspace.purges.run(session.caller, Selection(((kind, key),)))
    assert files_with(path, SECRET.encode()) == set()
    # Nor are its trigrams in the search index.
    assert indexed_trigrams(path) == set()
    with closing(SqliteAudit(path)) as audit:
        audit.check()


async def test_no_byte_of_the_tasks_of_a_purged_project_is_left(session: StoreSession, path: Path) -> None:
    key = await create_project_with_tasks(session)
    settle(path)
    assert files_with(path, SECRET.encode())
    await session.workspace.purges.run(session.caller, Selection((("project", key),)))
    assert files_with(path, SECRET.encode()) == set()


async def test_no_byte_of_old_versions_is_left(session: StoreSession, path: Path) -> None:
    for kind in KINDS:
        await CREATORS[kind](session)
    log = await session.workspace.history.page(session.caller, ChangeQuery(limit=100))
    for change in log:
        if change.action == "create" and SECRET in str(change.after):
            await session.workspace.history.undo(session.caller, UndoSelection(seq=change.seq), seen=10**6)
    assert files_with(path, SECRET.encode())
    entities = {(change.kind, change.entity): None for change in log}
    await session.workspace.purges.run(session.caller, Selection(tuple(entities), keep_current=True))
    assert files_with(path, SECRET.encode()) == set()
    with closing(SqliteAudit(path)) as audit:
        audit.check()


def indexed_trigrams(path: Path) -> set[str]:
    """Return the trigrams of the secret in the files of the search indexes; prefixes may be compressed."""
    trigrams = {SECRET[at : at + 3] for at in range(len(SECRET) - 2)}
    with closing(apsw.Connection(str(path))) as connection:
        blocks = [
            block for index in INDEXES for (block,) in connection.execute(f"SELECT block FROM {index}_data")
        ]
    return {trigram for trigram in trigrams if any(trigram.encode() in block for block in blocks)}


@pytest.fixture
def old_reader(path: Path) -> Iterator[apsw.Connection]:
    """A connection that reads the state before the purge."""
    with closing(apsw.Connection(str(path))) as connection:
        yield connection


async def test_a_reader_of_an_old_state_leaves_a_purge_unfinished(
    session: StoreSession, path: Path, old_reader: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await CREATORS["prompt"](session)
    old_reader.execute("BEGIN")
    old_reader.execute("SELECT count(*) FROM prompts").fetchall()
    monkeypatch.setattr(sqlite_connections, "BUSY_SECONDS", 0.2)
    with pytest.raises(PurgeUnfinished, match="may still be in free pages"):
        await session.workspace.purges.run(session.caller, Selection((("prompt", key),)))
    assert await session.workspace.purges.is_unfinished()
    assert files_with(path, SECRET.encode())
    old_reader.execute("COMMIT")
    assert await session.workspace.purges.finish()
    assert files_with(path, SECRET.encode()) == set()
