"""Behind Dittybag stands PostgreSQL itself: what a query forgets to leave out does not come out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from dittybag.domain.errors import ChangeNotFound, DittybagError
from dittybag.domain.ports import Transaction
from dittybag.domain.prompts import Prompt
from dittybag.services.caller import Caller
from dittybag.storage.postgres.store import PostgresStore
from tests.accounts.rows import METHODS, TOOLS, Row
from tests.accounts.world import SECRET, STRANGER, TEAM, TEAM_WORD, Somebody, World, sent, told, word_of
from tests.databases import Server

#: Tables in which there is nothing of anybody.
OF_NOBODY = {"migrations", "counters", "writers", "restricted_projects"}
USERS = ("alice", "bob", "rita", "root", "mallory", STRANGER)


def foreign_words(user: str) -> set[str]:
    """What a user must not get to see."""
    words = {word_of(other) for other in USERS} - {word_of(user)}
    if user != STRANGER:
        words |= {SECRET, STRANGER}
    if user in ("mallory", STRANGER):
        words.add(TEAM_WORD)
    return words


def asked(world: World, viewer: str | None, sql: str, *values: Any, single: bool = False) -> list[Any]:
    """The rows that come out when a user looks, whatever is asked."""

    async def work(transaction: Transaction) -> list[Any]:
        rows: list[Any] = await transaction._connection.fetch(sql, *values)  # type: ignore[attr-defined]
        return rows

    return world.run(world.workspace.store.read(work, viewer=viewer, single=single))


class UndoResult(Exception):
    """What was tried is not to stay."""


def tried(world: World, viewer: str | None, sql: str) -> int:
    """How many rows a statement changes when a user looks. It is rolled back."""

    async def work(transaction: Transaction) -> None:
        transaction.wrote = True  # type: ignore[attr-defined]
        status = await transaction._connection.execute(sql)  # type: ignore[attr-defined]
        raise UndoResult(status.rpartition(" ")[2])

    with pytest.raises(UndoResult) as caught:
        world.run(world.workspace.store.write(work, actor="x", viewer=viewer))
    return int(str(caught.value))


def tables(world: World) -> list[str]:
    sql = "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    return [row[0] for row in asked(world, None, sql)]


def test_every_table_is_guarded_or_holds_nothing_of_anybody(guarded_world: World) -> None:
    sql = """SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
             AND NOT (relrowsecurity AND relforcerowsecurity)"""
    assert {row[0] for row in asked(guarded_world, None, sql)} == OF_NOBODY


@pytest.mark.parametrize("user", USERS)
def test_queries_without_a_filter_show_nobody_anything_foreign(guarded_world: World, user: str) -> None:
    for table in tables(guarded_world):
        everything = asked(guarded_world, None, f"SELECT * FROM {table}")
        for single in (False, True):
            shown = asked(guarded_world, user, f"SELECT * FROM {table}", single=single)
            for word in foreign_words(user):
                assert word.encode() not in repr(shown).encode(), (table, word)
            assert {repr(row) for row in shown} <= {repr(row) for row in everything}
    (tokens,) = asked(guarded_world, user, "SELECT count(*) FROM tokens WHERE user_name <> $1", user)
    assert tokens[0] == 0
    assert asked(guarded_world, user, "SELECT * FROM sessions") == []
    # And what is theirs is there.
    mine = {row[0] for row in asked(guarded_world, user, "SELECT notes FROM tasks")}
    assert word_of(user) in mine
    bytes_shown = {bytes(row[0]) for row in asked(guarded_world, user, "SELECT bytes FROM contents")}
    assert (TEAM_WORD.encode() in bytes_shown) == (user not in ("mallory", STRANGER))
    assert (word_of(STRANGER).encode() in bytes_shown) == (user == STRANGER)


def test_the_operator_sees_everything(guarded_world: World) -> None:
    for table in ("tasks", "changes", "prompts"):
        text = repr(asked(guarded_world, None, f"SELECT * FROM {table}"))
        assert word_of(STRANGER) in text, table
    assert {row[0] for row in asked(guarded_world, None, "SELECT DISTINCT user_name FROM tokens")} >= {
        "alice",
        "mallory",
    }


@pytest.mark.parametrize("user", ["mallory", "alice", STRANGER])
def test_statements_without_a_filter_change_nothing_foreign(guarded_world: World, user: str) -> None:
    own = {
        "tasks": "title = title || '!'",
        "idempotency_keys": "key = key || '!'",
        "prompts": "content = content || '!'",
        "resources": "title = 'other'",
        "projects": "name = name || '!'",
        "changes": "actor = 'nobody'",
    }
    for table, change in own.items():
        (seen,) = asked(guarded_world, user, f"SELECT count(*) FROM {table}")
        (there,) = asked(guarded_world, None, f"SELECT count(*) FROM {table}")
        assert tried(guarded_world, user, f"UPDATE {table} SET {change}") == seen[0], table
        assert tried(guarded_world, None, f"UPDATE {table} SET {change}") == there[0], table
        assert seen[0] < there[0] or table == "idempotency_keys", table
        if table not in ("projects", "resources"):
            assert tried(guarded_world, user, f"DELETE FROM {table}") == seen[0], table
    for table in ("users", "tokens", "members", "account_events", "sessions", "contents"):
        assert tried(guarded_world, user, f"DELETE FROM {table}") == 0, table
    assert tried(guarded_world, user, "UPDATE tokens SET revoked_at = 1, scope = 'admin'") == 0
    assert tried(guarded_world, user, "UPDATE members SET role = 'write'") == 0


def test_nothing_can_be_put_where_it_is_foreign(guarded_world: World) -> None:
    team, hidden = guarded_world.projects[TEAM], guarded_world.projects[SECRET]
    prompt = "number, id, project, name, title, content, tags, arguments, created_at, updated_at, version"
    log = "seq, batch, at, actor, action, kind, entity, project, after"
    statements = [
        """INSERT INTO tasks
           (id, "user", title, priority, energy, time_estimate, created_at, updated_at, version)
           VALUES (98765, 'alice', 't', 1, 'low', '1hr', 1, 1, 1)""",
        "UPDATE tasks SET \"user\" = 'alice'",
        f"INSERT INTO prompts ({prompt}) VALUES (98765, 'x', {team}, 'x', 'x', 'x', '{{}}', '[]', 1, 1, 1)",
        f"INSERT INTO prompts ({prompt}) VALUES (98765, 'x', {hidden}, 'x', 'x', 'x', '{{}}', '[]', 1, 1, 1)",
        f"""INSERT INTO changes ({log})
            VALUES (98765, 98765, 1, 'x', 'create', 'task', '1', NULL, '{{"user": "alice"}}')""",
        f"INSERT INTO changes ({log}) VALUES (98765, 98765, 1, 'x', 'create', 'prompt', '1', {team}, '{{}}')",
        f"INSERT INTO members VALUES ({team}, 'mallory', 'write')",
        f"INSERT INTO content_uses SELECT sha256, {team} FROM content_uses",
        "INSERT INTO idempotency_keys (owner, key, digest, at) VALUES ('alice', 'k', '', 1)",
        "INSERT INTO users VALUES ('mallory2', 1, NULL)",
    ]
    before = guarded_world.last_change()
    for statement in statements:

        async def work(transaction: Transaction, statement: str = statement) -> None:
            await transaction._connection.execute(statement)  # type: ignore[attr-defined]

        if "FROM content_uses" in statement:
            # There is nothing that could be shared with others.
            assert tried(guarded_world, "mallory", statement) == 0
            continue
        with pytest.raises(DittybagError):
            guarded_world.run(guarded_world.workspace.store.write(work, actor="x", viewer="mallory"))
    assert guarded_world.last_change() == before


def test_a_name_that_says_more_than_a_name_opens_nothing(guarded_world: World) -> None:
    for name in ("*", "", "user:alice", "' OR true --", "mallory\nuser:alice", "ü" * 500):
        assert asked(guarded_world, name, "SELECT * FROM tasks") == [], name
    # Nor does a value that Dittybag never sets.
    for value in ("alice", "user", "user:", "**", " "):

        async def work(transaction: Transaction, value: str = value) -> int:
            connection = transaction._connection  # type: ignore[attr-defined]
            await connection.fetchval("SELECT set_config('dittybag.viewer', $1, true)", value)
            return int(await connection.fetchval("SELECT count(*) FROM tasks"))

        assert guarded_world.run(guarded_world.workspace.store.write(work, actor="x")) == 0, value


def test_connections_that_change_hands_show_everybody_what_is_theirs(guarded_world: World) -> None:
    store = guarded_world.workspace.store

    async def whose(transaction: Transaction) -> set[str]:
        connection = transaction._connection  # type: ignore[attr-defined]
        return {row[0] for row in await connection.fetch('SELECT DISTINCT "user" FROM tasks')}

    async def look(user: str, number: int) -> None:
        looking = asyncio.ensure_future(
            store.write(whose, actor="x", viewer=user)
            if number % 5 == 0
            else store.read(whose, viewer=user, single=number % 2 == 0)
        )
        if number % 7 == 0:
            # Somebody who does not wait leaves a connection behind in the middle of something.
            for _ in range(number % 4):
                await asyncio.sleep(0)
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
            return
        assert await looking == {user}

    async def all_at_once() -> None:
        for _ in range(5):
            await asyncio.gather(*(look(user, number) for number in range(30) for user in USERS))
            assert await store.read(whose) >= set(USERS)

    guarded_world.run(all_at_once())


def test_what_was_done_together_with_something_hidden_is_not_undone_in_part(guarded_world: World) -> None:
    world = guarded_world

    async def work(transaction: Transaction) -> int:
        seqs = []
        for project in (TEAM, SECRET):
            prompt = Prompt(
                number=0,
                id=transaction.new_id(),
                project=world.projects[project],
                name=f"together-{project}",
                title=f"Together {project}",
                description=None,
                content="x",
                tags=(),
                arguments=(),
                created_at=1,
                updated_at=1,
            )
            made = await transaction.write("create", None, prompt)
            assert made is not None
            seqs.append(made.number)
        return seqs[0]

    seq = world.run(world.workspace.store.write(work, actor="tests"))
    principal = world.run(world.workspace.accounts.external_principal("alice", "write", world.projects[TEAM]))
    caller = Caller(world.projects[TEAM], "alice", "alice", principal)
    before = world.last_change()
    with pytest.raises(ChangeNotFound):
        world.run(world.workspace.history.undo(caller, seq))
    assert world.last_change() == before


# The served product, with a bug everywhere


@pytest.fixture(scope="module")
def unguarded_world(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The same for a role that skips all policies."""
    with World(tmp_path_factory.mktemp("world"), server.url("unguarded")) as made:
        yield made


def leaks(world: World, who: Somebody, operations: dict[str, Row], *, tool: bool) -> set[str]:
    """The operations of a careless server that tell somebody what is not theirs, or change it."""
    host = world.host("all", module="tests.accounts.careless_server")
    found = set()
    for name, row in operations.items():
        asked_for = [row.ask(world, who), *(pair.foreign(world, who) for pair in row.pairs)]
        for arguments in asked_for:
            before = world.last_change()
            params = {"name": name, "arguments": arguments} if tool else arguments
            method = "tools/call" if tool else name.partition(" ")[0]
            text = told(sent(host, who.token, "/mcp", method, params), "/mcp").text
            for value in map(str, arguments.values()):
                # What was asked for may be named in the answer.
                text = text.replace(value, "") if len(value) > len(word_of("")) else text
            changed = world.run(world.workspace.history.page_all(None, limit=100))
            entities = [
                change.after or change.before
                for change in changed
                if change.seq > before and change.kind == "task"
            ]
            is_foreign = any(getattr(entity, "user", who.user) != who.user for entity in entities)
            if is_foreign or any(word in text for word in foreign_words(who.user)):
                found.add(name)
    return found


OWN_TOOLS = {name: row for (profile, name), row in TOOLS.items() if profile == "all"}


def test_a_careless_server_leaks_nothing(guarded_world: World) -> None:
    member = guarded_world.known[0]
    outsider = next(who for who in guarded_world.known if who.name == "no member")
    for who in (member, outsider):
        assert leaks(guarded_world, who, OWN_TOOLS, tool=True) == set()
        assert leaks(guarded_world, who, METHODS, tool=False) == set()


def test_without_the_policies_it_would_leak(unguarded_world: World) -> None:
    member = unguarded_world.known[0]
    outsider = next(who for who in unguarded_world.known if who.name == "no member")
    tasks = {"task_list", "task_get", "task_update", "task_complete", "task_search", "list_changes", "search"}
    assert leaks(unguarded_world, member, OWN_TOOLS, tool=True) >= tasks
    shown = leaks(unguarded_world, outsider, OWN_TOOLS, tool=True)
    assert shown >= tasks | {"list_prompts", "get_prompt", "search_prompts"}
    assert leaks(unguarded_world, outsider, METHODS, tool=False) >= {"prompts/list", "resources/read"}


def test_a_role_that_skips_policies_is_a_reason_for_caution(
    guarded_world: World, unguarded_world: World, server: Server
) -> None:
    async def warnings(url: str) -> list[str]:
        store = await PostgresStore.open(url)
        try:
            return await store.warnings()
        finally:
            await store.close()

    assert guarded_world.run(warnings(guarded_world.database)) == []
    (words,) = guarded_world.run(warnings(unguarded_world.database))
    assert "'dittybag' skips" in words
    server.sql("CREATE ROLE passer LOGIN BYPASSRLS; CREATE SCHEMA passing AUTHORIZATION passer")
    (words,) = guarded_world.run(warnings(server.url(user="passer", schema="passing")))
    assert "'passer' skips" in words
