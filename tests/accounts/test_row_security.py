"""Row-level security in PostgreSQL: queries without a filter return no rows of other users."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.errors import ChangeNotFound, DittybagError, ProjectGone
from dittybag.domain.ports import Transaction, Write
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.tasks import Task
from dittybag.services.caller import Caller
from dittybag.services.history_service import UndoSelection
from dittybag.services.library_search import NO_LIBRARIES
from dittybag.services.ranked_search import search_ranked
from dittybag.services.search_service import RankedPage, RankedQuery
from dittybag.storage.postgres.postgres_store import PostgresStore
from dittybag.storage.sql.sql_transaction import SqlTransaction
from tests.accounts.accounts_world import (
    HIDDEN_PROJECT,
    OPEN_PROJECT,
    OWNER,
    STRANGER,
    TEAM_PROJECT,
    TEAM_WORD,
    TokenHolder,
    World,
    parse_outcome,
    post_message,
    word_of,
)
from tests.accounts.permission_matrix import METHODS, TOOLS, MatrixRow
from tests.postgres_servers import PostgresServer

#: Tables without user data.
WITHOUT_USER_DATA = {"applied_migrations", "counters", "writers", "restricted_projects", "task_edges"}
USERS = ("alice", "bob", "rita", "root", "mallory", STRANGER)


def forbidden_words(user: str) -> set[str]:
    """Return the words that a user must not see."""
    words = {word_of(other) for other in USERS} - {word_of(user)}
    if user != STRANGER:
        words |= {HIDDEN_PROJECT, STRANGER}
    if user in ("mallory", STRANGER):
        words.add(TEAM_WORD)
    return words


def query_as(world: World, viewer: str | None, sql: str, *values: Any, single: bool = False) -> list[Any]:
    """Run a query as a viewer and return the rows."""

    async def work(transaction: Transaction) -> list[Any]:
        assert isinstance(transaction, SqlTransaction)
        return list(await transaction._tables.driver.rows(sql, *values))

    return world.run(world.workspace.store.read(work, viewer=viewer, single=single))


class RollBack(Exception):
    """Rolls back a transaction and carries the row count."""


def affected_rows(world: World, viewer: str | None, sql: str) -> int:
    """Return how many rows a statement changes for a viewer. It is rolled back."""

    async def work(transaction: Transaction) -> None:
        assert isinstance(transaction, SqlTransaction)
        raise RollBack(await transaction._tables.driver.run(sql))

    with pytest.raises(RollBack) as caught:
        world.run(world.workspace.store.write(work, actor="x", viewer=viewer))
    return int(str(caught.value))


def tables(world: World) -> list[str]:
    sql = "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    return [row[0] for row in query_as(world, None, sql)]


def test_every_table_with_user_data_has_row_level_security(rls_world: World) -> None:
    sql = """SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
             AND NOT (relrowsecurity AND relforcerowsecurity)"""
    assert {row[0] for row in query_as(rls_world, None, sql)} == WITHOUT_USER_DATA


@pytest.mark.parametrize("user", USERS)
def test_queries_without_a_filter_return_nothing_foreign(rls_world: World, user: str) -> None:
    for table in tables(rls_world):
        everything = query_as(rls_world, None, f"SELECT * FROM {table}")
        for single in (False, True):
            shown = query_as(rls_world, user, f"SELECT * FROM {table}", single=single)
            for word in forbidden_words(user):
                assert word.encode() not in repr(shown).encode(), (table, word)
            assert {repr(row) for row in shown} <= {repr(row) for row in everything}
    (tokens,) = query_as(rls_world, user, "SELECT count(*) FROM tokens WHERE user_name <> $1", user)
    assert tokens[0] == 0
    assert query_as(rls_world, user, "SELECT * FROM sessions") == []
    # The user's own rows are visible.
    mine = {row[0] for row in query_as(rls_world, user, "SELECT notes FROM tasks")}
    assert word_of(user) in mine
    bytes_shown = {bytes(row[0]) for row in query_as(rls_world, user, "SELECT bytes FROM contents")}
    assert (TEAM_WORD.encode() in bytes_shown) == (user not in ("mallory", STRANGER))
    assert (word_of(STRANGER).encode() in bytes_shown) == (user == STRANGER)


def test_the_counts_of_a_project_are_visible_to_its_members_only(rls_world: World) -> None:
    hidden = rls_world.projects[HIDDEN_PROJECT]
    for table in ("prompt_counts", "tag_counts", "resource_counts"):
        sql = f"SELECT project, count FROM {table} WHERE project = $1"
        assert query_as(rls_world, None, sql, hidden) or table == "tag_counts"
        assert query_as(rls_world, "mallory", sql, hidden) == [], table
        assert affected_rows(rls_world, "mallory", f"DELETE FROM {table} WHERE project = {hidden}") == 0


def test_the_operator_sees_everything(rls_world: World) -> None:
    for table in ("tasks", "changes", "prompts"):
        text = repr(query_as(rls_world, None, f"SELECT * FROM {table}"))
        assert word_of(STRANGER) in text, table
    assert {row[0] for row in query_as(rls_world, None, "SELECT DISTINCT user_name FROM tokens")} >= {
        "alice",
        "mallory",
    }


@pytest.mark.parametrize("user", ["mallory", "alice", STRANGER])
def test_statements_without_a_filter_change_nothing_foreign(rls_world: World, user: str) -> None:
    own = {
        "tasks": "title = title || '!'",
        "prompts": "content = content || '!'",
        "resources": "title = 'other'",
        "projects": "name = name || '!'",
        "changes": "actor = 'nobody'",
    }
    for table, change in own.items():
        (seen,) = query_as(rls_world, user, f"SELECT count(*) FROM {table}")
        (there,) = query_as(rls_world, None, f"SELECT count(*) FROM {table}")
        assert affected_rows(rls_world, user, f"UPDATE {table} SET {change}") == seen[0], table
        assert affected_rows(rls_world, None, f"UPDATE {table} SET {change}") == there[0], table
        assert seen[0] < there[0], table
        if table not in ("projects", "resources"):
            assert affected_rows(rls_world, user, f"DELETE FROM {table}") == seen[0], table
    for table in ("users", "tokens", "members", "account_events", "sessions", "contents"):
        assert affected_rows(rls_world, user, f"DELETE FROM {table}") == 0, table
    assert affected_rows(rls_world, user, "UPDATE tokens SET revoked_at = 1, scope = 'admin'") == 0
    assert affected_rows(rls_world, user, "UPDATE members SET role = 'write'") == 0


def test_rows_cannot_be_inserted_for_other_users(rls_world: World) -> None:
    team, hidden = rls_world.projects[TEAM_PROJECT], rls_world.projects[HIDDEN_PROJECT]
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
        "INSERT INTO users VALUES ('mallory2', 1, NULL)",
    ]
    before = rls_world.last_change()
    for statement in statements:

        async def work(transaction: Transaction, statement: str = statement) -> None:
            await transaction._tables.connection.execute(statement)  # type: ignore[attr-defined]

        if "FROM content_uses" in statement:
            # The user sees no rows that could be copied.
            assert affected_rows(rls_world, "mallory", statement) == 0
            continue
        with pytest.raises(DittybagError):
            rls_world.run(rls_world.workspace.store.write(work, actor="x", viewer="mallory"))
    assert rls_world.last_change() == before


def test_a_commit_without_a_lock_writes_nothing_that_the_viewer_may_not(rls_world: World) -> None:
    store = rls_world.workspace.store
    times: dict[str, Any] = {"created_at": 1, "updated_at": 1}
    prompt = Prompt(
        number=0, id="x", project=rls_world.projects[TEAM_PROJECT], name="x", title="x", content="x", **times
    )

    async def foreign(transaction: Transaction) -> tuple[Prompt, Task]:
        (page,) = await transaction.page_of_kind("prompt", 0, 1)
        tasks = await transaction.page_of_kind("task", 0, 100)
        return page, next(task for task in tasks if task.user == "alice" and task.project_id is None)

    hidden, task = rls_world.run(store.read(foreign))
    writes = [
        Write("create", None, prompt),
        Write("create", None, Task(id=0, user="alice", title="t", **times)),
        Write("update", hidden, replace(hidden, content="mine", version=hidden.version + 1)),
        Write("delete", hidden, None),
        Write("update", task, replace(task, user="mallory", version=task.version + 1)),
        Write("delete", task, None),
    ]
    before = rls_world.last_change()

    async def make_all() -> list[Any]:
        own = Task(id=0, user="mallory", title="own", **times)
        works = [
            lambda transaction, write=write: transaction.write_all([write])
            for write in (*writes, Write("create", None, own))
        ]
        running = [store.write(work, actor="x", viewer="mallory", checked=True) for work in works]
        return await asyncio.gather(*running, return_exceptions=True)

    *outcomes, own = rls_world.run(make_all())
    assert [isinstance(outcome, DittybagError) for outcome in outcomes] == [True] * len(writes), outcomes
    # The only one that the viewer may make is made, though it shares the call with the others.
    assert isinstance(own[0], Task)
    assert rls_world.last_change() == before + 1


def test_a_malicious_viewer_name_gives_no_access(rls_world: World) -> None:
    for name in ("*", "", "user:alice", "' OR true --", "mallory\nuser:alice", "ü" * 500):
        assert query_as(rls_world, name, "SELECT * FROM tasks") == [], name
    # The same for values that Dittybag never sets.
    for value in ("alice", "user", "user:", "**", " "):

        async def work(transaction: Transaction, value: str = value) -> int:
            connection = transaction._tables.connection  # type: ignore[attr-defined]
            await connection.fetchval("SELECT set_config('dittybag.viewer', $1, true)", value)
            return int(await connection.fetchval("SELECT count(*) FROM tasks"))

        assert rls_world.run(rls_world.workspace.store.write(work, actor="x")) == 0, value


def test_pooled_connections_do_not_leak_rows_between_users(rls_world: World) -> None:
    store = rls_world.workspace.store

    async def whose(transaction: Transaction) -> set[str]:
        connection = transaction._tables.connection  # type: ignore[attr-defined]
        sql = 'SELECT DISTINCT "user" FROM tasks WHERE project_id IS NULL'
        return {row[0] for row in await connection.fetch(sql)}

    async def look(user: str, number: int) -> None:
        looking = asyncio.ensure_future(
            store.write(whose, actor="x", viewer=user)
            if number % 5 == 0
            else store.read(whose, viewer=user, single=number % 2 == 0)
        )
        if number % 7 == 0:
            # A cancelled call leaves its connection in the middle of a transaction.
            for _ in range(number % 4):
                await asyncio.sleep(0)
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
            return
        assert await looking == {user}

    async def run_concurrently() -> None:
        for _ in range(5):
            await asyncio.gather(*(look(user, number) for number in range(30) for user in USERS))
            assert await store.read(whose) >= set(USERS)

    rls_world.run(run_concurrently())


def test_a_batch_with_hidden_changes_is_not_partly_undone(rls_world: World) -> None:
    world = rls_world

    async def work(transaction: Transaction) -> int:
        seqs = []
        for project in (TEAM_PROJECT, HIDDEN_PROJECT):
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
            created = await transaction.write("create", None, prompt)
            assert created is not None
            seqs.append(created.number)
        return seqs[0]

    seq = world.run(world.workspace.store.write(work, actor="tests"))
    principal = world.run(
        world.workspace.accounts.external_principal("alice", "write", world.projects[TEAM_PROJECT])
    )
    caller = Caller(world.projects[TEAM_PROJECT], "alice", "alice", principal)
    before = world.last_change()
    with pytest.raises(ChangeNotFound):
        world.run(world.workspace.history.undo(caller, UndoSelection(seq=seq, project=caller.project)))
    assert world.last_change() == before


@pytest.mark.parametrize("user", USERS)
def test_the_ranked_search_finds_only_what_the_policies_show(rls_world: World, user: str) -> None:
    """Even if it is asked for the project and the tasks of others."""
    store = rls_world.workspace.store
    stranger = word_of(STRANGER)
    for project in rls_world.projects.values():
        for other in USERS:
            for text in (
                TEAM_WORD,
                stranger,
                word_of(other),
                f'"{stranger}"',
                f'"{word_of(other)}"',
                stranger[:-1],
            ):
                caller = Caller(project, "x", other)
                query = RankedQuery(text, incomplete=True)

                async def work(
                    transaction: Transaction, caller: Caller = caller, query: RankedQuery = query
                ) -> RankedPage:
                    return await search_ranked(transaction, caller, query, NO_LIBRARIES)

                with suppress(ProjectGone):
                    page = rls_world.run(store.read(work, viewer=user))
                    assert page.total == len(page.hits) or page.total > query.limit
                    shown = f"{page.hits} {page.suggestion}"
                    assert not [word for word in forbidden_words(user) if word in shown]


# A server without permission checks


@pytest.fixture(scope="module")
def no_rls_world(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world with a database role that bypasses row-level security."""
    with World(tmp_path_factory.mktemp("world"), server.url("without_rls")) as created:
        yield created


def leaks(world: World, who: TokenHolder, operations: dict[str, MatrixRow], *, tool: bool) -> set[str]:
    """Return the operations of an unscoped server that show or change foreign data."""
    host = world.host("all", module="tests.accounts.unscoped_server")
    found = set()
    for name, row in operations.items():
        requests = [row.ask(world, who), *(pair.foreign(world, who) for pair in row.pairs)]
        for arguments in requests:
            before = world.last_change()
            params = {"name": name, "arguments": arguments} if tool else arguments
            method = "tools/call" if tool else name.partition(" ")[0]
            text = parse_outcome(post_message(host, who.token, "/mcp", method, params), "/mcp").text
            for value in map(str, arguments.values()):
                # The response may repeat the arguments.
                text = text.replace(value, "") if len(value) > len(word_of("")) else text
            if HIDDEN_PROJECT in repr(arguments):
                text = text.replace(f"Project '{HIDDEN_PROJECT}' does not exist", "")
            changed = world.run(world.workspace.history.page(OWNER, ChangeQuery(limit=100)))
            entities = [
                change.after or change.before
                for change in changed
                if change.seq > before and change.kind == "task"
            ]
            is_foreign = any(_is_foreign(world, who, entity) for entity in entities)
            if is_foreign or any(word in text for word in forbidden_words(who.user)):
                found.add(name)
    return found


def _is_foreign(world: World, who: TokenHolder, entity: Any) -> bool:
    """Whether a task is another user's, or belongs to a project that the user is not a member of."""
    if not isinstance(entity, Task) or entity.project_id is None:
        return getattr(entity, "user", who.user) != who.user
    allowed = {world.projects[TEAM_PROJECT]} if who.role == "write" else set()
    return entity.project_id in set(world.projects.values()) - {world.projects[OPEN_PROJECT]} - allowed


OWN_TOOLS = {name: row for (profile, name), row in TOOLS.items() if profile == "all"}


def test_an_unscoped_server_leaks_nothing(rls_world: World) -> None:
    member = rls_world.holders[0]
    outsider = next(who for who in rls_world.holders if who.name == "outsider")
    for who in (member, outsider):
        assert leaks(rls_world, who, OWN_TOOLS, tool=True) == set()
        assert leaks(rls_world, who, METHODS, tool=False) == set()


def test_an_unscoped_server_leaks_without_row_level_security(no_rls_world: World) -> None:
    member = no_rls_world.holders[0]
    outsider = next(who for who in no_rls_world.holders if who.name == "outsider")
    tasks = {"task_list", "task_get", "task_update", "task_complete", "task_search", "list_changes", "search"}
    assert leaks(no_rls_world, member, OWN_TOOLS, tool=True) >= tasks
    shown = leaks(no_rls_world, outsider, OWN_TOOLS, tool=True)
    # Not `search_prompts`: its statements see all rows, so they check the project themselves.
    assert shown >= tasks | {"list_prompts", "get_prompt"}
    assert "search_prompts" not in shown
    assert leaks(no_rls_world, outsider, METHODS, tool=False) >= {"prompts/list", "resources/read"}


def test_a_role_that_bypasses_row_level_security_causes_a_warning(
    rls_world: World, no_rls_world: World, server: PostgresServer
) -> None:
    async def warnings(url: str) -> list[str]:
        store = await PostgresStore.open(url)
        try:
            return await store.warnings()
        finally:
            await store.close()

    assert rls_world.run(warnings(rls_world.database)) == []
    (warning,) = rls_world.run(warnings(no_rls_world.database))
    assert "'dittybag' bypasses" in warning
    server.sql("CREATE ROLE passer LOGIN BYPASSRLS; CREATE SCHEMA passing AUTHORIZATION passer")
    (warning,) = rls_world.run(warnings(server.url(user="passer", schema="passing")))
    assert "'passer' bypasses" in warning
