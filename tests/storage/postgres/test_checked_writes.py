"""Writes without a lock: how many round trips they take, and what happens if something changes meanwhile."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it has no types
import pytest
from msgspec.structs import replace

from dittybag.domain.errors import (
    DittybagError,
    NameTaken,
    Outdated,
    ProjectGone,
    PromptNotFound,
    StorageFailed,
)
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.tasks import Task
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.workspace import Workspace
from dittybag.storage.postgres.postgres_connections import LOCK_CLASS, lock_key
from tests.postgres_servers import PostgresServer
from tests.repetitions import SEED, repetitions
from tests.storage.postgres.conftest import OpenStore
from tests.storage_contract.log_consistency import check_log
from tests.storage_contract.store_session import open_session

#: Logs every statement of the connections of a store.
LOGGED = {"log_statement": "all", "log_min_messages": "log"}


async def count_statements(server: PostgresServer, act: Callable[[], Awaitable[Any]]) -> int:
    """Return how many statements the server receives: a client waits for the response to each."""
    before = len(server.log())
    await act()
    return len(re.findall("LOG:  (?:execute|statement)", server.log()[before:]))


class AnySyntax:
    """Accepts all templates, as far as the store can see."""

    async def syntax_error(self, source: str, *, client: Hashable = None) -> None:
        return None


async def test_a_write_takes_few_round_trips(
    server: PostgresServer, schema: str, open_store: OpenStore
) -> None:
    session = await open_session(await open_store(server.url(schema=schema, **LOGGED)), "work")
    session = replace(session, workspace=Workspace(session.store, AnySyntax()))
    tasks = session.workspace.tasks
    prompts = session.workspace.prompts
    numbers = iter(range(1, 100))
    ids: list[int] = []

    async def create_task() -> None:
        ids.append((await tasks.create(session.caller, title="t")).id)

    async def update_prompt() -> None:
        change = PromptChange(content=f"New {next(numbers)}")
        await prompts.update(session.caller, PromptAddress(name="changed"), change)

    # The greatest number of round trips of each operation.
    operations: list[tuple[str, int, Callable[[], Awaitable[Any]]]] = [
        ("create prompt", 1, lambda: session.prompt(f"p{next(numbers)}")),
        ("create resource", 1, lambda: session.resource(f"r{next(numbers)}")),
        ("create task", 1, create_task),
        ("update prompt", 3, update_prompt),
        ("update resource", 3, lambda: session.change_resource("changed", content=f"{next(numbers)}")),
        ("update task", 2, lambda: tasks.update(session.caller, ids[0], title=f"{next(numbers)}")),
        ("complete task", 2, lambda: tasks.complete(session.caller, ids.pop())),
        ("delete prompt", 2, lambda: session.delete_prompt("changed")),
        ("delete task", 2, lambda: tasks.delete(session.caller, ids.pop())),
        ("read prompt", 1, lambda: prompts.get(session.caller, PromptAddress(id=kept.id))),
    ]
    kept = await session.prompt("kept")
    await session.prompt("changed")
    await session.resource("changed")
    for _ in range(4):
        await create_task()
    found: dict[str, int] = {}
    for name, _, act in operations:
        # The first time, statements are prepared.
        if not name.startswith("delete"):
            await act()
        found[name] = await count_statements(server, act)
    assert found == {name: most for name, most, _ in operations}


async def test_a_project_that_another_server_has_changed_is_read_again(
    url: str, open_store: OpenStore
) -> None:
    here, there = [await open_session(await open_store(url), "work") for _ in range(2)]
    await here.prompt("first")
    await there.workspace.projects.rename("work", "renamed", actor="x")
    _, project = await here.workspace.prompts.create(here.caller, name="second", content="x")
    assert project.name == "renamed"
    await there.workspace.projects.rename("renamed", "again", actor="x")
    with pytest.raises(PromptNotFound, match="again"):
        await here.delete_prompt("missing")
    await there.workspace.projects.delete("again", actor="x")
    for act in (here.prompt("third"), here.delete_prompt("first"), here.change_prompt("first", content="x")):
        with pytest.raises(ProjectGone):
            await act


async def test_names_that_are_taken_are_found_out_by_the_commit(url: str, open_store: OpenStore) -> None:
    here, there = [await open_session(await open_store(url)) for _ in range(2)]
    create = partial(here.workspace.prompts.create, here.caller, content="x")
    await there.prompt("taken")
    with pytest.raises(NameTaken):
        await here.prompt("taken")
    await here.prompt("other")
    made = await asyncio.gather(*(create(title=f"Same{'!' * n}") for n in range(5)))
    assert sorted(prompt.name for prompt, _ in made) == ["same", "same-2", "same-3", "same-4", "same-5"]
    with pytest.raises(NameTaken):
        await here.workspace.prompts.update(
            here.caller, PromptAddress(name="other"), PromptChange(name="taken")
        )
    await there.resource("taken", uri="x:1")
    for name, uri in (("taken", "x:2"), ("free", "x:1")):
        with pytest.raises(DittybagError, match="already exists"):
            await here.resource(name, uri=uri)
    await check_log(here.store)


async def test_concurrent_changes_of_one_entity_are_all_made(url: str, open_store: OpenStore) -> None:
    sessions = [await open_session(await open_store(url)) for _ in range(2)]
    await sessions[0].prompt("p", tags=["old"])
    tags = [f"t{number}" for number in range(10)]
    await asyncio.gather(
        *(
            sessions[number % 2].workspace.prompts.retag_all(
                sessions[number % 2].caller, [PromptAddress(name="p")], add=[tag]
            )
            for number, tag in enumerate(tags)
        )
    )
    prompt = await sessions[0].workspace.prompts.get(sessions[0].caller, PromptAddress(name="p"))
    assert (set(prompt.tags), prompt.version) == ({"old", *tags}, 11)
    with pytest.raises(Outdated):
        await sessions[0].workspace.prompts.update(
            sessions[0].caller, PromptAddress(name="p"), PromptChange(content="x"), version=10
        )
    await check_log(sessions[0].store)


async def test_a_task_that_is_claimed_while_it_is_completed_stays_with_its_holder(
    server: PostgresServer, schema: str, url: str, open_store: OpenStore
) -> None:
    session = await open_session(await open_store(url))
    agent = replace(session.caller, interface="mcp", own_tasks_only=True)
    task = await session.task("t")
    holder = await asyncpg.connect(server.url(), server_settings={"search_path": schema})
    keys = LOCK_CLASS, lock_key(schema)
    try:
        await holder.execute("SELECT pg_advisory_lock($1, $2)", *keys)
        completing = asyncio.create_task(session.workspace.tasks.complete(agent, task.id))
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        async with asyncio.timeout(5):
            while not await holder.fetchval(waiting):
                pass
        # What a claim writes.
        await holder.execute("UPDATE tasks SET status = 'doing', version = version + 1")
        await holder.execute(
            "INSERT INTO claims VALUES ($1, 1, 'other', 'c', $2, 1, $2)", task.id, task.created_at * 2
        )
        await holder.execute("SELECT pg_advisory_unlock($1, $2)", *keys)
        with pytest.raises(DittybagError, match="other"):
            await completing
    finally:
        await holder.close()


async def test_one_that_fails_does_not_affect_others_of_its_batch(url: str, open_store: OpenStore) -> None:
    store = await open_store(url)
    session = await open_session(store)
    await session.prompt("first")

    async def fail(transaction: Transaction) -> None:
        now = transaction.now
        task = Task(id=0, user="u", title="t", created_at=now, updated_at=now, project_id=999)
        await transaction.write("create", None, task)

    outcomes = await asyncio.gather(
        session.prompt("a"),
        store.write(fail, actor="x", checked=True),
        session.prompt("first"),
        session.prompt("b"),
        return_exceptions=True,
    )
    assert [isinstance(outcome, Exception) for outcome in outcomes] == [False, True, True, False]
    names = await session.workspace.prompts.names(session.caller, 10)
    assert names == ["a", "b", "first"]
    await check_log(store)


async def test_a_write_that_fails_at_the_end_of_the_commit_is_not_acknowledged(
    server: PostgresServer, schema: str, url: str, open_store: OpenStore
) -> None:
    session = await open_session(await open_store(url))
    # Deferred: it runs after the function has returned its result.
    server.sql(
        f"""CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql
                AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
            CREATE CONSTRAINT TRIGGER refusing AFTER INSERT ON {schema}.changes DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()"""
    )
    with pytest.raises(StorageFailed, match="nothing was changed"):
        await session.prompt("refused")
    assert await session.workspace.prompts.names(session.caller, 10) == []


async def test_a_use_case_that_writes_twice_is_a_mistake(url: str, open_store: OpenStore) -> None:
    store = await open_store(url)

    async def write_twice(transaction: Transaction) -> None:
        for _ in range(2):
            task = Task(id=0, user="u", title="t", created_at=transaction.now, updated_at=transaction.now)
            await transaction.write("create", None, task)

    with pytest.raises(RuntimeError, match="written twice"):
        await store.write(write_twice, actor="x", checked=True)


WRITERS = repetitions(12, 100)
READERS = repetitions(3, 20)
WRITES = repetitions(8, 60)


async def test_readers_see_each_change_once_and_those_of_an_entity_in_order(
    url: str, open_store: OpenStore
) -> None:
    """Readers follow the log by `seq` while servers write, with and without the lock."""
    chance = random.Random(SEED)
    stores = [await open_store(url) for _ in range(3)]
    sessions = [await open_session(store) for store in stores]
    total = WRITERS * WRITES

    async def write(number: int) -> None:
        session = sessions[number % len(sessions)]
        owner = session.owner
        task = await session.task(f"w{number}")
        for turn in range(1, WRITES):
            await asyncio.sleep(chance.uniform(0, 0.003))
            # Every fourth change needs the lock.
            edges: dict[str, Any] = {"blocked_by": ()} if turn % 4 == 0 else {}
            await session.workspace.tasks.update(owner, task.id, title=f"w{number} {turn}", **edges)

    async def follow(store: Store, start: int) -> list[tuple[int, str, int]]:
        seen: list[tuple[int, str, int]] = []
        while len(seen) < total:
            after = seen[-1][0] if seen else start
            query = ChangeQuery(after=after, limit=chance.randint(1, 50), oldest_first=True)
            page = await store.read(lambda transaction: transaction.changes.page(query))  # noqa: B023
            seen += [(change.seq, change.entity, change.after.version) for change in page]  # type: ignore[union-attr]
            await asyncio.sleep(chance.uniform(0, 0.005))
        return seen

    start = await stores[0].read(lambda transaction: transaction.changes.newest_seq())
    async with asyncio.timeout(60 + total / 50):
        writers = [write(number) for number in range(WRITERS)]
        readers = [follow(stores[number % 3], start) for number in range(READERS)]
        seen = (await asyncio.gather(*readers, *writers))[:READERS]
    for log in seen:
        assert log is not None
        assert [seq for seq, _, _ in log] == list(range(start + 1, start + total + 1))
        versions: dict[str, int] = {}
        for _, entity, version in log:
            assert version == versions.get(entity, 0) + 1
            versions[entity] = version
        assert set(versions.values()) == {WRITES}
    await check_log(stores[0])
