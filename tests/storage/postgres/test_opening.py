"""Opening: who may, what is made, and what is refused and left as it is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
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
from dittybag.storage.postgres import retry
from dittybag.storage.postgres.connections import parse_address
from dittybag.storage.postgres.migrations import NEWEST, load_migrations
from dittybag.storage.postgres.store import PostgresStore
from dittybag.storage.postgres.text_search import contains
from dittybag.storage.sqlite import migrations as sqlite_migrations
from tests.databases import Server, running
from tests.storage.postgres.conftest import OpenStore
from tests.storage.postgres.deeds import do, done

ROOT = Path(__file__).resolve().parents[3]


async def asked(store: PostgresStore, sql: str, *values: Any) -> Any:
    """What a reader's connection answers."""

    async def work(transaction: Transaction) -> Any:
        return await transaction._connection.fetchval(sql, *values)  # type: ignore[attr-defined]

    return await store.read(work)


async def asked_of_writer(store: PostgresStore, sql: str) -> Any:
    async def work(transaction: Transaction) -> Any:
        return await transaction._connection.fetchval(sql)  # type: ignore[attr-defined]

    return await store.write(work, actor="x")


def test_ten_processes_that_open_a_new_place_at_once_make_it_once(
    server: Server, schema: str, url: str
) -> None:
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.storage.postgres.opener"],
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
        answers = [process.communicate(timeout=60)[0] for process in processes]
    assert [msgspec.json.decode(answer) for answer in answers] == [{"projects": 1}] * 10
    rows = server.sql(f"SELECT number, name FROM {schema}.migrations ORDER BY number")
    assert rows == [f"{number}|{name}" for number, name, _ in load_migrations()]
    assert server.sql(f"SELECT count(*) FROM {schema}.changes") == ["11"]
    assert server.sql(f"SELECT count(*) FROM {schema}.tasks") == ["10"]


def test_the_migrations_have_the_numbers_and_names_of_those_of_sqlite() -> None:
    mine = [(number, name) for number, name, _ in load_migrations()]
    assert mine == [(number, name) for number, name, _ in sqlite_migrations.load_migrations()]
    assert mine[-1][0] == NEWEST


async def test_the_schema_of_a_newer_dittybag_is_refused_and_left_alone(
    server: Server, schema: str, url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)
    server.sql(f"INSERT INTO {schema}.migrations VALUES ({NEWEST + 1}, 'from_the_future', 0)")
    with pytest.raises(StorageTooNew) as caught:
        await PostgresStore.open(url)
    assert (caught.value.found, caught.value.known) == (NEWEST + 1, NEWEST)
    with pytest.raises(StorageTooNew):
        await store.check()
    assert server.sql(f"SELECT count(*) FROM {schema}.migrations") == [str(NEWEST + 1)]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE {}.tasks (id integer)",
        "CREATE TABLE {}.migrations (number integer)",
        "CREATE VIEW {}.projects AS SELECT 1 AS id",
    ],
)
async def test_tables_of_another_program_are_left_alone(
    server: Server, schema: str, url: str, sql: str
) -> None:
    server.sql(f"CREATE SCHEMA {schema}; {sql.format(schema)}")
    with pytest.raises(StorageForeign):
        await PostgresStore.open(url)
    count = f"SELECT count(*) FROM pg_class WHERE relnamespace = '{schema}'::regnamespace"
    assert server.sql(count) == ["1"]


#: What takes back a migration.
TAKEN_BACK = {
    4: """
        DROP FUNCTION viewer(), is_operator_connection(), record_content_use() CASCADE;
        DROP FUNCTION update_restricted_projects() CASCADE;
        DROP TABLE idempotency_keys, restricted_projects, content_uses CASCADE;
        DROP POLICY new ON contents;
        DO $$ DECLARE guarded regclass; BEGIN
            FOR guarded IN SELECT oid FROM pg_class WHERE relrowsecurity
                           AND relnamespace = current_schema()::regnamespace LOOP
                EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', guarded);
                EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', guarded);
            END LOOP;
        END $$;
    """
}


def _take_back(server: Server, schema: str, number: int) -> None:
    undo = f"{TAKEN_BACK[number]} DELETE FROM migrations WHERE number = {number}"
    server.sql(f"SET client_min_messages = error; SET search_path = {schema}; {undo}")


async def test_an_interrupted_migration_is_taken_up_again(
    server: Server, schema: str, url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)
    await do(store, "before")
    await store.close()
    _take_back(server, schema, 4)
    server.sql(
        f"DROP TABLE {schema}.account_events, {schema}.members, {schema}.tokens, {schema}.users;"
        f" DELETE FROM {schema}.counters WHERE name = 'tokens';"
        f" DELETE FROM {schema}.migrations WHERE number = 3"
    )
    store = await open_store(url)
    await store.check()
    assert await done(store) == {"before": 1}
    assert server.sql(f"SELECT max(number) FROM {schema}.migrations") == [str(NEWEST)]


async def test_what_was_there_before_is_guarded_like_what_comes_later(
    server: Server, schema: str, open_store: OpenStore
) -> None:
    server.sql(f"CREATE ROLE {schema}_clerk LOGIN; CREATE SCHEMA {schema} AUTHORIZATION {schema}_clerk")
    url = server.url(schema=schema, user=f"{schema}_clerk")
    await (await open_store(url)).close()
    _take_back(server, schema, 4)
    resource = "number, id, project, name, uri, uri_digest, mime_type, is_text, is_template, sha256, size"
    log = "seq, batch, at, actor, action, kind, entity, project, before, after"
    server.sql(
        f"""SET search_path = {schema};
        INSERT INTO users VALUES ('ann', 1), ('bea', 1);
        INSERT INTO projects VALUES (2, 'closed', 1, 1, 1), (3, 'open', 1, 1, 1);
        INSERT INTO members VALUES (2, 'ann', 'write');
        INSERT INTO contents VALUES ('a', 'now'), ('b', 'long ago'), ('c', 'everybodys');
        INSERT INTO resources ({resource}, created_at, updated_at, version) VALUES
            (5, 'x', 2, 'x', 'x:', '', 'text/plain', true, false, 'a', 3, 1, 1, 2),
            (6, 'y', 3, 'y', 'y:', '', 'text/plain', true, false, 'c', 3, 1, 1, 1);
        INSERT INTO changes ({log}) VALUES
            (5, 5, 1, 'x', 'create', 'resource', 'x', 2, NULL, '{{"sha256": "b"}}'),
            (6, 6, 1, 'x', 'update', 'resource', 'x', 2, '{{"sha256": "b"}}', '{{"sha256": "a"}}')"""
    )
    store = await open_store(url)

    async def shown(transaction: Transaction) -> set[str]:
        rows = await transaction._connection.fetch("SELECT sha256 FROM contents")  # type: ignore[attr-defined]
        return {row[0] for row in rows}

    assert await store.read(shown) == {"a", "b", "c"}
    assert await store.read(shown, viewer="ann") == {"a", "b", "c"}
    assert await store.read(shown, viewer="bea") == {"c"}


async def test_workspaces_in_schemas_of_one_database_know_nothing_of_each_other(
    server: Server, schema: str, open_store: OpenStore
) -> None:
    names = [f"{schema} one", f'{schema} "two"', f"{schema}%ü", "x" * 63]
    stores = [await open_store(server.url(schema=name)) for name in names]
    for number, store in enumerate(stores):
        await do(store, f"t{number}")
    for number, store in enumerate(stores):
        assert await done(store) == {f"t{number}": 1}
        assert await asked(store, "SELECT current_schema()") == names[number]


async def test_without_a_name_the_first_schema_of_the_search_path_is_used(
    server: Server, open_store: OpenStore
) -> None:
    server.sql("CREATE DATABASE plain")
    store = await open_store(server.url("plain"))
    await do(store, "t")
    assert server.sql("SELECT title FROM public.tasks", "plain") == ["t"]


async def test_a_database_that_cannot_hold_all_texts_is_refused(server: Server) -> None:
    server.sql("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    with pytest.raises(StorageFailed) as caught:
        await PostgresStore.open(server.url("latin"))
    assert "UTF8" in caught.value.problem
    assert server.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", "latin") == ["0"]


async def test_a_store_whose_tables_are_gone_says_so(
    server: Server, schema: str, url: str, open_store: OpenStore
) -> None:
    store = await open_store(url)
    await store.check()
    server.sql(f"DROP SCHEMA {schema} CASCADE")
    with pytest.raises(StorageError):
        await store.check()
    with pytest.raises(StorageError):
        await do(store, "t")


async def test_writers_are_durable_and_readers_cannot_write(url: str, open_store: OpenStore) -> None:
    # This server itself would forget the last moments after a crash.
    store = await open_store(url)
    assert await asked(store, "SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'") == "off"
    assert await asked_of_writer(store, "SELECT current_setting('synchronous_commit')") == "on"
    assert await asked_of_writer(store, "SELECT current_setting('transaction_isolation')") == "read committed"
    assert await asked(store, "SELECT current_setting('transaction_isolation')") == "repeatable read"
    for single in (False, True):
        with pytest.raises(StorageReadOnly):
            await store.read(lambda transaction: transaction.store_content(b"x"), single=single)


async def test_a_user_who_may_not_write_is_told_so(
    server: Server, schema: str, open_store: OpenStore
) -> None:
    await open_store(server.url(schema=schema))
    server.sql(f"CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA {schema} TO reader")
    server.sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader")
    store = await open_store(server.url(schema=schema, user="reader"))
    assert await done(store) == {}
    with pytest.raises(StorageReadOnly):
        await do(store, "t")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that asks for passwords."""
    with running("carried") as server:
        server.sql("CREATE ROLE guest LOGIN SUPERUSER PASSWORD 'p@ss/w:rd'")
        rules = server.sql("SHOW hba_file")[0]
        Path(rules).write_text("local all all trust\nhost all all all scram-sha-256\n")
        server.sql("SELECT pg_reload_conf()")
        yield server


async def test_a_password_opens_the_door_and_is_in_no_message(
    guarded: Server, schema: str, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0.1)
    url = guarded.url(schema=schema, user="guest", password="p@ss/w:rd")
    store = await open_store(url)
    await do(store, "t")
    assert store.path == f"postgresql://guest@127.0.0.1:{guarded.port}/postgres?schema={schema}"
    wrong = [
        guarded.url(user="guest", password="s3cret"),
        guarded.url(user="nobody", password="s3cret"),
        guarded.url("nowhere", user="guest", password="p@ss/w:rd"),
        url.replace(f":{guarded.port}/", ":1/"),
        url.replace("127.0.0.1", "no.such.host.invalid"),
        "postgresql://guest:s3cret@[::1/x",
        "postgresql://guest:s3cret@127.0.0.1:port/x",
        "postgresql://guest:s3cret@127.0.0.1/x?sslmode=s3cret",
        "postgresql://guest:s3cret@127.0.0.1/x?password=s3cret&schema=",
        f"postgresql://guest@127.0.0.1:{guarded.port}/postgres?password=s3cret",
        "mysql://guest:s3cret@127.0.0.1/x",
        "postgresql://guest:s3cret@127.0.0.1/x?schema=%00",
        f"postgresql://guest:s3cret@127.0.0.1/x?schema={'s' * 64}",
    ]
    for each in wrong:
        with pytest.raises(StorageFailed) as caught:
            await PostgresStore.open(each)
        told = f"{caught.value!r} {caught.value} {caught.value.where} {caught.value.problem}"
        cause = caught.value.__cause__
        while cause is not None:
            told += repr(cause)
            cause = cause.__cause__
        for secret in ("p@ss", "p%40ss", "s3cret"):
            assert secret not in told, told
    assert "s3cret" not in repr(parse_address("postgresql://guest:s3cret@127.0.0.1/x"))


async def test_a_server_that_is_not_there_is_an_error_that_says_what_to_do(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0.1)
    with pytest.raises(StorageUnreachable, match="Check that it is running"):
        await PostgresStore.open(server.url().replace(f":{server.port}/", ":1/"))


#: What each table is asked, and a plan that reads every row is forbidden.
SEARCHES = {
    "prompts": f"{contains('title', '$1')} OR {contains('content', '$1')}",
    "resources": f"lower(name) LIKE $1 OR {contains('title', '$1')} OR folded_content LIKE $1",
    "tasks": f"{contains('title', '$1')} OR {contains('notes', '$1')}",
}


async def test_searches_use_trigrams_where_the_extension_is_and_it_may_come_later(
    open_store: OpenStore,
) -> None:
    with running("installed") as server:
        server.sql("CREATE DATABASE poor")
        # Whoever may not even make a schema may not install anything either.
        server.sql("CREATE ROLE poor LOGIN; CREATE SCHEMA first AUTHORIZATION poor", "poor")
        indexes = "SELECT indexname FROM pg_indexes WHERE indexname LIKE '%trigrams' ORDER BY 1"
        url = server.url("poor", user="poor", schema="first")
        store = await open_store(url)
        await do(store, "needle")
        assert server.sql(indexes, "poor") == []
        await store.close()

        server.sql("CREATE EXTENSION pg_trgm", "poor")
        store = await open_store(url)
        assert server.sql(indexes, "poor") == ["prompts_trigrams", "resources_trigrams", "tasks_trigrams"]
        for table, condition in SEARCHES.items():
            # The operator's own connection has them, although the role is ordinary and there are policies.
            await asked(store, "SELECT set_config('enable_seqscan', 'off', false)")
            plan = await asked(
                store, f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {table} WHERE {condition}", "%needle%"
            )
            assert f"{table}_trigrams" in plan
            # It pays nothing for the policies.
            assert "viewer" not in plan
            query = f"EXPLAIN SELECT 1 FROM {table} WHERE {condition}".replace("$1", "'%needle%'")
            plan = server.sql(f"SET search_path = first; SET enable_seqscan = off; {query}", "poor")
            assert f"Bitmap Index Scan on {table}_trigrams" in "".join(plan)

        rich = await open_store(server.url("poor", schema="second"))
        await do(rich, "t")
        # Workspaces come and go; the extension belongs to the database.
        await rich.close()
        await store.close()
        server.sql("DROP SCHEMA first CASCADE; DROP SCHEMA second CASCADE", "poor")
        assert server.sql("SELECT extname FROM pg_extension WHERE extname = 'pg_trgm'", "poor") == ["pg_trgm"]


async def test_the_extension_is_installed_outside_of_any_workspace(open_store: OpenStore) -> None:
    with running("installed") as server:
        stores = await asyncio.gather(*(open_store(server.url(schema=f"s{number}")) for number in range(4)))
        assert server.sql(
            "SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'pg_trgm'"
        ) == ["public"]
        assert server.sql("SELECT count(*) FROM pg_indexes WHERE indexname LIKE '%trigrams'") == ["12"]
        await asyncio.gather(*(store.close() for store in stores))
