"""Opening a PostgreSQL workspace: creation, migration, permissions and refusals."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from dittybag.domain.errors import (
    StorageError,
    StorageFailed,
    StorageForeign,
    StorageReadOnly,
    StorageTooNew,
    StorageUnreachable,
)
from dittybag.domain.ports import Transaction
from dittybag.storage.postgres import postgres_connections, retry
from dittybag.storage.postgres.postgres_connections import parse_address
from dittybag.storage.postgres.postgres_store import PostgresStore
from dittybag.storage.postgres.postgres_text_search import contains
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from tests.postgres_servers import PostgresServer, run_postgres
from tests.storage.postgres.conftest import OpenStore
from tests.storage.postgres.task_workload import count_titles, create_task

ROOT = Path(__file__).resolve().parents[3]


async def query_reader(store: PostgresStore, sql: str, *values: Any) -> Any:
    """Query a value on a reader's connection."""

    async def work(transaction: Transaction) -> Any:
        return await transaction._tables.connection.fetchval(sql, *values)  # type: ignore[attr-defined]

    return await store.read(work)


async def query_writer(store: PostgresStore, sql: str) -> Any:
    async def work(transaction: Transaction) -> Any:
        return await transaction._tables.connection.fetchval(sql)  # type: ignore[attr-defined]

    return await store.write(work, actor="x")


def test_ten_processes_that_open_a_new_workspace_together_create_it_once(
    server: PostgresServer, schema: str, url: str
) -> None:
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.storage.postgres.postgres_opener"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    cwd=ROOT,
                )
            )
            for _ in range(10)
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b'"ready"\n'
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(url.encode() + b"\n")
            process.stdin.flush()
        replies = [process.communicate(timeout=60)[0] for process in processes]
    assert [msgspec.json.decode(reply) for reply in replies] == [{"projects": 1}] * 10
    assert server.sql(f"SELECT count(*) FROM {schema}.applied_migrations") == [str(NEWEST_SCHEMA)]
    assert server.sql(f"SELECT count(*) FROM {schema}.changes") == ["11"]
    assert server.sql(f"SELECT count(*) FROM {schema}.tasks") == ["10"]


async def test_the_schema_of_a_newer_version_is_refused_and_left_unchanged(
    server: PostgresServer, schema: str, url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)
    server.sql(f"INSERT INTO {schema}.applied_migrations VALUES ({NEWEST_SCHEMA + 1}, 'later', 1, 1)")
    with pytest.raises(StorageTooNew) as caught:
        await PostgresStore.open(url)
    assert (caught.value.found, caught.value.known) == (NEWEST_SCHEMA + 1, NEWEST_SCHEMA)
    with pytest.raises(StorageTooNew):
        await store.check()
    assert server.sql(f"SELECT count(*) FROM {schema}.applied_migrations") == [str(NEWEST_SCHEMA + 1)]


async def test_a_running_store_refuses_writes_after_another_process_has_upgraded_the_schema(
    server: PostgresServer, url: str, schema: str, open_store: OpenStore
) -> None:
    store = await open_store(url)
    await create_task(store, "before")
    server.sql(f"INSERT INTO {schema}.applied_migrations VALUES ({NEWEST_SCHEMA + 1}, 'later', 1, 1)")
    for _ in range(2):
        with pytest.raises(StorageTooNew):
            await create_task(store, "after")
    with pytest.raises(StorageTooNew):
        await store.check()
    assert await count_titles(store) == {"before": 1}


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE {}.tasks (id integer)",
        "CREATE TABLE {}.applied_migrations (number integer)",
        "CREATE VIEW {}.projects AS SELECT 1 AS id",
    ],
)
async def test_tables_of_another_program_are_refused_and_left_unchanged(
    server: PostgresServer, schema: str, url: str, sql: str
) -> None:
    server.sql(f"CREATE SCHEMA {schema}; {sql.format(schema)}")
    with pytest.raises(StorageForeign):
        await PostgresStore.open(url)
    count = f"SELECT count(*) FROM pg_class WHERE relnamespace = '{schema}'::regnamespace"
    assert server.sql(count) == ["1"]


async def test_workspaces_in_schemas_of_one_database_are_isolated(
    server: PostgresServer, schema: str, open_store: OpenStore
) -> None:
    names = [f"{schema} one", f'{schema} "two"', f"{schema}%ü", "x" * 63]
    stores = [await open_store(server.url(schema=name)) for name in names]
    for number, store in enumerate(stores):
        await create_task(store, f"t{number}")
    for number, store in enumerate(stores):
        assert await count_titles(store) == {f"t{number}": 1}
        assert await query_reader(store, "SELECT current_schema()") == names[number]


async def test_without_a_schema_name_the_first_of_the_search_path_is_used(
    server: PostgresServer, open_store: OpenStore
) -> None:
    server.sql("CREATE DATABASE plain")
    store = await open_store(server.url("plain"))
    await create_task(store, "t")
    assert server.sql("SELECT title FROM public.tasks", "plain") == ["t"]


async def test_a_database_without_utf8_is_refused(server: PostgresServer) -> None:
    server.sql("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    with pytest.raises(StorageFailed) as caught:
        await PostgresStore.open(server.url("latin"))
    assert "UTF8" in caught.value.problem
    assert server.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", "latin") == ["0"]


async def test_a_store_whose_tables_were_dropped_raises(
    server: PostgresServer, schema: str, url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)
    await store.check()
    server.sql(f"DROP SCHEMA {schema} CASCADE")
    with pytest.raises(StorageError):
        await store.check()
    with pytest.raises(StorageError):
        await create_task(store, "t")


async def test_writers_are_durable_and_readers_cannot_write(url: str, open_store: OpenStore) -> None:
    # This server runs with synchronous_commit = off.
    store = await open_store(url)
    assert (
        await query_reader(store, "SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'")
        == "off"
    )
    assert await query_writer(store, "SELECT current_setting('synchronous_commit')") == "on"
    assert await query_writer(store, "SELECT current_setting('transaction_isolation')") == "read committed"
    assert await query_reader(store, "SELECT current_setting('transaction_isolation')") == "repeatable read"
    for single in (False, True):
        with pytest.raises(StorageReadOnly):
            await store.read(lambda transaction: transaction.store_content(b"x"), single=single)


async def test_a_role_without_write_permission_gets_a_read_only_error(
    server: PostgresServer, schema: str, open_store: OpenStore
) -> None:
    await open_store(server.url(schema=schema))
    server.sql(f"CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA {schema} TO reader")
    server.sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader")
    store = await open_store(server.url(schema=schema, user="reader"))
    assert await count_titles(store) == {}
    with pytest.raises(StorageReadOnly):
        await create_task(store, "t")


@pytest.fixture(scope="module")
def password_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server that requires passwords."""
    with run_postgres("bundled") as server:
        server.sql("CREATE ROLE guest LOGIN SUPERUSER PASSWORD 'p@ss/w:rd'")
        rules = server.sql("SHOW hba_file")[0]
        Path(rules).write_text("local all all trust\nhost all all all scram-sha-256\n")
        server.sql("SELECT pg_reload_conf()")
        yield server


async def test_a_password_is_used_and_never_appears_in_messages(
    password_server: PostgresServer, schema: str, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0.1)
    url = password_server.url(schema=schema, user="guest", password="p@ss/w:rd")
    store = await open_store(url)
    await create_task(store, "t")
    assert store.path == f"postgresql://guest@127.0.0.1:{password_server.port}/postgres?schema={schema}"
    wrong = [
        password_server.url(user="guest", password="s3cret"),
        password_server.url(user="nobody", password="s3cret"),
        password_server.url("nowhere", user="guest", password="p@ss/w:rd"),
        url.replace(f":{password_server.port}/", ":1/"),
        url.replace("127.0.0.1", "no.such.host.invalid"),
        "postgresql://guest:s3cret@[::1/x",
        "postgresql://guest:s3cret@127.0.0.1:port/x",
        "postgresql://guest:s3cret@127.0.0.1/x?sslmode=s3cret",
        "postgresql://guest:s3cret@127.0.0.1/x?password=s3cret&schema=",
        f"postgresql://guest@127.0.0.1:{password_server.port}/postgres?password=s3cret",
        "mysql://guest:s3cret@127.0.0.1/x",
        "postgresql://guest:s3cret@127.0.0.1/x?schema=%00",
        f"postgresql://guest:s3cret@127.0.0.1/x?schema={'s' * 64}",
    ]
    for each in wrong:
        with pytest.raises(StorageFailed) as caught:
            await PostgresStore.open(each)
        message = f"{caught.value!r} {caught.value} {caught.value.where} {caught.value.problem}"
        cause = caught.value.__cause__
        while cause is not None:
            message += repr(cause)
            cause = cause.__cause__
        for secret in ("p@ss", "p%40ss", "s3cret"):
            assert secret not in message, message
    assert "s3cret" not in repr(parse_address("postgresql://guest:s3cret@127.0.0.1/x"))


async def test_the_error_for_an_unreachable_server_says_what_to_do(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0.1)
    with pytest.raises(StorageUnreachable, match="Check that it is running"):
        await PostgresStore.open(server.url().replace(f":{server.port}/", ":1/"))


#: The search condition of each table.
SEARCHES = {
    "prompts": f"{contains('title', '$1')} OR {contains('content', '$1')}",
    "resources": f"lower(name) LIKE $1 OR {contains('title', '$1')} OR folded_content LIKE $1",
    "tasks": f"{contains('title', '$1')} OR {contains('notes', '$1')}",
}


async def test_searches_use_trigram_indexes_even_if_the_extension_is_installed_later(
    open_store: OpenStore,
) -> None:
    with run_postgres("installed") as server:
        server.sql("CREATE DATABASE poor")
        # A role that cannot create schemas cannot install extensions either.
        server.sql("CREATE ROLE poor LOGIN; CREATE SCHEMA first AUTHORIZATION poor", "poor")
        indexes = "SELECT indexname FROM pg_indexes WHERE indexname LIKE '%trigrams' ORDER BY 1"
        url = server.url("poor", user="poor", schema="first")
        store = await open_store(url)
        await create_task(store, "needle")
        assert server.sql(indexes, "poor") == []
        await store.close()

        server.sql("CREATE EXTENSION pg_trgm", "poor")
        store = await open_store(url)
        assert server.sql(indexes, "poor") == ["prompts_trigrams", "resources_trigrams", "tasks_trigrams"]
        for table, condition in SEARCHES.items():
            # The operator's connection uses the index, although the role is subject to policies.
            await query_reader(store, "SELECT set_config('enable_seqscan', 'off', false)")
            plan = await query_reader(
                store, f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {table} WHERE {condition}", "%needle%"
            )
            assert f"{table}_trigrams" in plan
            # The policies are not part of the plan.
            assert "viewer" not in plan
            query = f"EXPLAIN SELECT 1 FROM {table} WHERE {condition}".replace("$1", "'%needle%'")
            plan = server.sql(f"SET search_path = first; SET enable_seqscan = off; {query}", "poor")
            assert f"Bitmap Index Scan on {table}_trigrams" in "".join(plan)

        rich = await open_store(server.url("poor", schema="second"))
        await create_task(rich, "t")
        # The extension belongs to the database, so it outlives the workspaces.
        await rich.close()
        await store.close()
        server.sql("DROP SCHEMA first CASCADE; DROP SCHEMA second CASCADE", "poor")
        assert server.sql("SELECT extname FROM pg_extension WHERE extname = 'pg_trgm'", "poor") == ["pg_trgm"]


async def test_the_extension_is_installed_outside_of_the_workspaces(open_store: OpenStore) -> None:
    with run_postgres("installed") as server:
        stores = await asyncio.gather(*(open_store(server.url(schema=f"s{number}")) for number in range(4)))
        assert server.sql(
            "SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'pg_trgm'"
        ) == ["public"]
        assert server.sql("SELECT count(*) FROM pg_indexes WHERE indexname LIKE '%trigrams'") == ["12"]
        await asyncio.gather(*(store.close() for store in stores))


def test_macos_detects_a_dead_server_with_its_own_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """TCP_RXT_CONNDROPTIME of macOS is TCP_USER_TIMEOUT of Linux, in seconds."""
    options = []

    class Peer:
        family = socket.AF_INET

        def setsockopt(self, *option: int) -> None:
            options.append(option)

    transport = SimpleNamespace(get_extra_info=lambda name: Peer())
    connection: Any = SimpleNamespace(_transport=transport)
    monkeypatch.delattr(socket, "TCP_USER_TIMEOUT", raising=False)
    monkeypatch.setattr(sys, "platform", "darwin")
    postgres_connections._set_tcp_timeout(connection)
    keep_alive = (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    assert options == [keep_alive, (socket.IPPROTO_TCP, 0x80, 5)]
