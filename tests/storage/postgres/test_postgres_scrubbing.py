"""After a purge, no row, statistic or file of a table in PostgreSQL has the content."""

from __future__ import annotations

from collections.abc import Iterator

import asyncpg  # type: ignore[import-untyped]  # it has no types
import pytest

from dittybag.domain.entities import Kind
from dittybag.domain.errors import PurgeUnfinished
from dittybag.services.purge_service import Selection
from dittybag.storage.postgres import postgres_scrubbing
from tests.postgres_servers import PostgresServer, run_postgres
from tests.storage.postgres.conftest import OpenStore
from tests.storage_contract.log_consistency import check_log
from tests.storage_contract.secret_contents import CREATORS, SECRET, create_project_with_tasks, store_sessions
from tests.storage_contract.store_session import open_session

KINDS: tuple[Kind, ...] = ("project", "prompt", "resource", "task")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of its own: the tests search all of its files, and other tests leave many."""
    with run_postgres("bundled") as server:
        yield server


def is_visible(server: PostgresServer, schema: str, word: str) -> bool:
    """Whether any row of a table, or any statistic of the planner, has the word."""
    tables = server.sql(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")
    queries = [f"SELECT item::text FROM {schema}.{table} AS item" for table in tables]
    queries.append(f"SELECT item::text FROM pg_stats AS item WHERE schemaname = '{schema}'")
    text = "\n".join(server.sql(" UNION ALL ".join(queries))).lower()
    # Binary columns are shown as hexadecimal digits.
    return word in text or word.encode().hex() in text


@pytest.fixture
def word(schema: str) -> str:
    """A word that no other test stores on this server."""
    return f"{SECRET}-{schema}"


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_of_a_purged_entity_is_left(
    server: PostgresServer, schema: str, open_store: OpenStore, word: str, kind: Kind
) -> None:
    session = await open_session(await open_store(server.url(schema=schema)))
    await session.prompt("kept", "Kept")
    await CREATORS["task"](session, "plain")
    key = await CREATORS[kind](session, word)
    await store_sessions(session, word if kind == "resource" else "plain")
    server.sql("ANALYZE")
    assert is_visible(server, schema, word)
    assert server.files_with(word.encode())
    await session.workspace.purges.run(session.caller, Selection(((kind, key),)))
    assert not is_visible(server, schema, word)
    assert server.files_with(word.encode()) == []
    await check_log(session.store, *([int(key)] if kind == "project" else []))


async def test_nothing_of_the_tasks_of_a_purged_project_is_left(
    server: PostgresServer, schema: str, open_store: OpenStore, word: str
) -> None:
    session = await open_session(await open_store(server.url(schema=schema)))
    key = await create_project_with_tasks(session, word)
    assert server.files_with(word.encode())
    await session.workspace.purges.run(session.caller, Selection((("project", key),)))
    assert not is_visible(server, schema, word)
    assert server.files_with(word.encode()) == []


async def test_a_reader_of_an_old_state_leaves_a_purge_unfinished(
    url: str, open_store: OpenStore, server: PostgresServer, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(url)
    session = await open_session(store)
    key = await CREATORS["prompt"](session, word)
    reader = await asyncpg.connect(server.url())
    monkeypatch.setattr(postgres_scrubbing, "LOCK_SECONDS", 0.2)
    async with reader.transaction(isolation="repeatable_read", readonly=True):
        await reader.fetch("SELECT 1")
        with pytest.raises(PurgeUnfinished):
            await session.workspace.purges.run(session.caller, Selection((("prompt", key),)))
        assert await session.workspace.purges.is_unfinished()
    await reader.close()
    assert await session.workspace.purges.finish()
    assert server.files_with(word.encode()) == []


async def test_a_role_that_does_not_own_the_tables_leaves_a_purge_unfinished(
    url: str, schema: str, open_store: OpenStore, server: PostgresServer
) -> None:
    await (await open_store(url)).close()
    server.sql(
        f"""CREATE ROLE guest_{schema} LOGIN; GRANT USAGE ON SCHEMA {schema} TO guest_{schema};
            GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO guest_{schema}"""
    )
    session = await open_session(await open_store(server.url(user=f"guest_{schema}", schema=schema)))
    key = await CREATORS["prompt"](session)
    with pytest.raises(PurgeUnfinished):
        await session.workspace.purges.run(session.caller, Selection((("prompt", key),)))
    assert await session.workspace.purges.is_unfinished()
