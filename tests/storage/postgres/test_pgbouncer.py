"""Stores through PgBouncer in transaction mode, whose clients share a connection to the server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it has no types
import pytest
from msgspec import Struct

from dittybag.domain.errors import StorageError, StorageFailed, StorageUnreachable
from dittybag.domain.ports import Transaction
from dittybag.domain.queries import PromptQuery
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.postgres import postgres_change_feed
from dittybag.storage.postgres.postgres_connections import parse_address
from dittybag.storage.postgres.postgres_store import PostgresStore
from tests.pgbouncer_servers import ROLE, PgBouncer, run_pgbouncer
from tests.postgres_servers import PostgresServer
from tests.repetitions import repetitions
from tests.storage.postgres.conftest import OpenStore
from tests.storage.postgres.task_workload import count_titles, create_task
from tests.storage.postgres.test_postgres_change_feed import FeedListener, create_project, project_changes

TURNS = repetitions(10, 300)

OPERATOR = "operator"


@pytest.fixture(scope="module")
def pooler(server: PostgresServer) -> Iterator[PgBouncer]:
    """A PgBouncer with one connection to the server: what outlives a transaction reaches the next one."""
    server.sql(f"CREATE ROLE {ROLE} LOGIN")
    server.sql(f"CREATE DATABASE shared OWNER {ROLE}")
    with run_pgbouncer(server, connections=1) as pooler:
        yield pooler


class SharedWorkspace(Struct):
    """A workspace with a project of Ann, one of Bea and one of everybody, each with a prompt of its name."""

    workspace: Workspace
    #: The ids of the projects by name.
    projects: dict[str, int]

    async def search(self, user: str, project: str) -> list[str]:
        """Search a project, without checking whether the user may."""
        query = PromptQuery(project=self.projects[project], text="needle", limit=10)

        async def work(transaction: Transaction) -> list[str]:
            total, found = await transaction.prompts.page(query)
            assert total == len(found)
            return [prompt.name for prompt in found]

        viewer = None if user == OPERATOR else user
        return await self.workspace.store.read(work, slow=True, viewer=viewer)

    async def everything(self, user: str, how: str) -> set[str]:
        """Return the names of all prompts that the database shows to a user, whatever the project."""

        async def work(transaction: Transaction) -> set[str]:
            connection = transaction._tables.connection  # type: ignore[attr-defined]
            return {row[0] for row in await connection.fetch("SELECT name FROM prompts")}

        viewer, store = None if user == OPERATOR else user, self.workspace.store
        if how == "write":
            return await store.write(work, actor="x", viewer=viewer)
        return await store.read(work, single=how == "single", viewer=viewer)


@pytest.fixture
async def shared(pooler: PgBouncer, schema: str, open_store: OpenStore) -> SharedWorkspace:
    """A workspace whose role does not bypass row-level security."""
    store = await open_store(pooler.url("shared", user=ROLE, schema=schema))
    assert await store.warnings() == []
    workspace = Workspace(store)
    projects: dict[str, int] = {}
    for user in ("ann", "bea"):
        await workspace.accounts.add_user(user, actor="x")
    for name in ("ann", "bea", "open"):
        projects[name] = (await workspace.projects.create(name, actor="x")).id
        if name != "open":
            await workspace.accounts.share(name, name, "write", actor="x")
        owner = Caller(project=projects[name], actor="x")
        await workspace.prompts.create(owner, name=name, content="a needle")
    return SharedWorkspace(workspace, projects)


def visible_projects(user: str) -> set[str]:
    return {"ann", "bea", "open"} if user == OPERATOR else {user, "open"}


async def test_a_user_never_sees_rows_of_the_viewer_before(
    pooler: PgBouncer, shared: SharedWorkspace
) -> None:
    for turn in range(TURNS):
        for user in (OPERATOR, "ann", "bea"):
            how = ("snapshot", "single", "write")[turn % 3]
            assert await shared.everything(user, how) == visible_projects(user), how
            for project in ("ann", "bea", "open"):
                expected = [project] if project in visible_projects(user) else []
                assert await shared.search(user, project) == expected, (user, project)
    connection = await _connect(pooler)
    try:
        for name in ("dittybag.viewer", "search_path", "statement_timeout", "lock_timeout"):
            found = await connection.fetchval(f"SELECT current_setting('{name}', true)")
            assert found in (None, "", '"$user", public', "0"), name
        assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE name <> ''") == 0
        assert await connection.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0
    finally:
        await connection.close()


async def test_viewers_at_the_same_time_see_their_own_rows(shared: SharedWorkspace) -> None:
    kinds = [(user, project) for user in (OPERATOR, "ann", "bea") for project in ("ann", "bea", "open")]
    searches = kinds * repetitions(5, 100)
    found = await asyncio.gather(*(shared.search(*search) for search in searches))
    for (user, project), names in zip(searches, found, strict=True):
        assert names == ([project] if project in visible_projects(user) else []), (user, project)


async def _connect(pooler: PgBouncer) -> Any:
    """Open a connection as other programs do."""
    dsn = parse_address(pooler.url("shared", user=ROLE)).dsn
    return await asyncpg.connect(dsn, statement_cache_size=0)


@pytest.fixture
async def pooled(pooler: PgBouncer, schema: str, open_store: OpenStore) -> PostgresStore:
    return await open_store(pooler.url(schema=schema))


async def test_many_clients_share_one_connection(pooled: PostgresStore) -> None:
    titles = [f"t{number}" for number in range(50)]
    await asyncio.gather(
        *(create_task(pooled, title) for title in titles), *(count_titles(pooled) for _ in "123")
    )
    assert await count_titles(pooled) == dict.fromkeys(titles, 1)


async def test_changes_of_other_servers_are_noticed_without_notifications(
    pooled: PostgresStore, pooler: PgBouncer, schema: str, open_store: OpenStore
) -> None:
    other = await open_store(pooler.url(schema=schema))
    listener = FeedListener(pooled)
    await create_project(other)
    async with asyncio.timeout(1.5):
        await listener.wait_for(1)
    await create_project(pooled)
    await listener.wait_for(2)
    assert listener.received == project_changes(2, 3)


async def test_the_feed_and_scrubbing_use_the_server_itself(
    pooler: PgBouncer, schema: str, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_change_feed, "POLLING_SECONDS", 60)
    url = pooler.url(schema=schema, direct=pooler.direct)
    store, other = await open_store(url), await open_store(url)
    listener = FeedListener(store)
    for number in (1, 2):
        await create_project(other)
        await listener.wait_for(number)
    await store.scrub()


async def test_scrubbing_needs_the_server_itself(pooled: PostgresStore) -> None:
    with pytest.raises(StorageFailed) as caught:
        await pooled.scrub()
    assert "add direct=HOST:PORT to the URL" in caught.value.report


async def test_requests_wait_for_a_pooler_that_is_killed_and_started_again(
    server: PostgresServer, schema: str, open_store: OpenStore
) -> None:
    with run_pgbouncer(server) as pooler:
        store = await open_store(pooler.url(schema=schema))
        await create_task(store, "before")
        pooler.stop()
        waiting = asyncio.gather(create_task(store, "meanwhile"), store.check())
        await asyncio.sleep(0.1)
        await asyncio.to_thread(pooler.start)
        await asyncio.wait_for(waiting, 5)
        assert await count_titles(store) == {"before": 1, "meanwhile": 1}
        await store.close()


#: What Dittybag sets on connections to a server itself.
IGNORED = (
    "statement_timeout,lock_timeout,idle_in_transaction_session_timeout,jit,search_path,tcp_keepalives_idle,"
    "tcp_keepalives_interval,tcp_keepalives_count,default_transaction_read_only,default_transaction_isolation"
)


@pytest.mark.parametrize(
    ("more", "error"),
    [("", StorageUnreachable), (f"ignore_startup_parameters = {IGNORED}", StorageFailed)],
    ids=["refused", "ignored"],
)
async def test_a_missing_option_for_the_pooler_is_named(
    server: PostgresServer, schema: str, more: str, error: type[StorageError]
) -> None:
    with run_pgbouncer(server, more=more) as pooler:
        url = pooler.url(schema=schema).replace("pooler=transaction&", "")
        with pytest.raises(error) as caught:
            await PostgresStore.open(url)
        assert "add pooler=transaction" in caught.value.report


def test_invalid_options_for_a_pooler_are_refused() -> None:
    for options, problem in (
        ("pooler=statement", "the only value of pooler is transaction"),
        ("direct=db:5432", "add pooler=transaction"),
    ):
        with pytest.raises(StorageFailed) as caught:
            parse_address(f"postgresql://u:secret@h/d?{options}")
        assert problem in caught.value.report
        assert "secret" not in caught.value.report


def test_the_server_behind_a_pooler_has_the_same_account() -> None:
    for direct, expected in (
        ("db:5433", "postgresql://u:p%40@db:5433/d?sslmode=require"),
        ("db:5433/other", "postgresql://u:p%40@db:5433/other?sslmode=require"),
    ):
        url = f"postgresql://u:p%40@pool:6432/d?sslmode=require&pooler=transaction&direct={direct}"
        address = parse_address(url).direct
        assert address is not None
        assert address.dsn == expected
        assert not address.is_pooled
