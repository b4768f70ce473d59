"""Transactions are atomic and serialised, and no update is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.entities import Kind
from dittybag.domain.errors import DittybagError, NameTaken, Outdated, StorageError
from dittybag.domain.ports import Store, Transaction, Work, Write
from dittybag.domain.queries import PromptQuery
from dittybag.domain.tasks import Task
from tests.storage_contract.log_consistency import check_log, read_log, stored_entities
from tests.storage_contract.sample_entities import KINDS, change, create_entity, delete
from tests.storage_contract.store_session import ACTOR, OpenStore, StoreSession, open_session

Step = Callable[[Transaction, Any, str], Awaitable[Any]]


class InjectedError(Exception):
    """An error that the store does not know."""


def creating(session: StoreSession, kind: Kind, label: str) -> Work[Any]:
    async def work(transaction: Transaction) -> Any:
        return await create_entity(transaction, kind, session.project, label)

    return work


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("first", "second"), [(change, change), (change, delete), (delete, change), (delete, delete)]
)
async def test_only_one_of_two_writers_of_the_same_version_succeeds(
    open_store: OpenStore, kind: Kind, first: Step, second: Step
) -> None:
    session = await open_session(await open_store())
    other = await open_store()
    seen = await session.write(creating(session, kind, "entity"))
    won = await session.write(lambda transaction: first(transaction, seen, "first"))
    for store in (other, session.store):
        with pytest.raises(Outdated):
            await store.write(lambda transaction: second(transaction, seen, "second"), actor=ACTOR)
    held = list((await stored_entities(other)).values())
    assert (won in held) is (first is change)
    assert seen not in held
    await check_log(other, seen.id if kind == "project" else session.project)


@pytest.mark.parametrize("kind", KINDS)
async def test_only_one_of_concurrent_writers_succeeds_and_its_write_is_stored(
    open_store: OpenStore, kind: Kind
) -> None:
    session = await open_session(await open_store())
    stores = [session.store, await open_store(), await open_store()]
    entity = await session.write(creating(session, kind, "entity"))
    for turn in range(10):

        def attempt(store: Store, who: int, seen: Any = entity, turn: int = turn) -> Awaitable[Any]:
            return store.write(
                lambda transaction: change(transaction, seen, f"turn-{turn}-{who}"), actor=ACTOR
            )

        outcomes = await asyncio.gather(
            *(attempt(stores[who % 3], who) for who in range(9)), return_exceptions=True
        )
        (entity,) = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        assert [type(outcome) for outcome in outcomes].count(Outdated) == 8
        assert entity in (await stored_entities(stores[turn % 3])).values()
    await check_log(session.store)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_outdated_write_names_the_entity(session: StoreSession, kind: Kind) -> None:
    seen = await session.write(creating(session, kind, "entity"))
    await session.write(lambda transaction: delete(transaction, seen))
    with pytest.raises(Outdated) as caught:
        await session.write(lambda transaction: delete(transaction, seen))
    assert (caught.value.kind, caught.value.name) == (kind, str(seen.id) if kind == "task" else "entity")


async def test_creations_of_two_processes_are_logged_one_after_the_other(open_store: OpenStore) -> None:
    sessions = [await open_session(await open_store()) for _ in range(2)]
    for number in range(30):
        await asyncio.gather(*(session.task(f"t{number}") for session in sessions))
    log = await read_log(sessions[1].store, [sessions[0].project])
    assert [item.seq for item in log] == list(range(1, 62))
    await check_log(sessions[1].store)


async def test_use_cases_of_two_processes_lose_no_update(open_store: OpenStore) -> None:
    """Each use case reads and writes in one transaction, so no version is ever outdated."""
    desks = [await open_session(await open_store()) for _ in range(2)]
    await desks[0].prompt("p")
    task = await desks[0].task("t")
    await asyncio.gather(
        *(desks[turn % 2].change_prompt("p", content=str(turn)) for turn in range(40)),
        *(
            desks[turn % 2].workspace.tasks.update(desks[0].caller, task.id, notes=str(turn))
            for turn in range(40)
        ),
    )
    held = {kind: entity for (kind, _), entity in (await stored_entities(desks[0].store)).items()}
    assert (held["prompt"].version, held["task"].version) == (41, 41)
    await check_log(desks[1].store)


async def test_the_writes_of_a_failed_transaction_are_rolled_back(session: StoreSession) -> None:
    existing = {kind: await session.write(creating(session, kind, f"{kind}-old")) for kind in KINDS}
    before = await stored_entities(session.store), await read_log(session.store, [session.project])
    stamps = [session.store.stamp(kind, session.project) for kind in KINDS]

    async def work(transaction: Transaction) -> None:
        for kind in KINDS:
            new = await create_entity(transaction, kind, session.project, f"{kind}-new")
            assert new.version == 1
            await change(transaction, existing[kind], f"{kind}-changed")
            await delete(transaction, new)
        raise InjectedError

    with pytest.raises(InjectedError):
        await session.write(work)
    assert (await stored_entities(session.store), await read_log(session.store, [session.project])) == before
    assert [session.store.stamp(kind, session.project) for kind in KINDS] == stamps
    assert await session.workspace.prompts.page(
        session.caller, PromptQuery(project=session.caller.project, text="prompt-new", limit=10, offset=0)
    ) == (
        await session.workspace.prompts.page(
            session.caller,
            PromptQuery(project=session.caller.project, text="prompt-changed", limit=10, offset=0),
        )
    )
    for kind in KINDS:
        await session.write(creating(session, kind, f"{kind}-new"))
    await check_log(session.store)


async def test_a_failing_transaction_does_not_affect_concurrent_ones(session: StoreSession) -> None:
    taken = await session.prompt("taken")

    async def injected(transaction: Transaction) -> None:
        for kind in KINDS:
            await create_entity(transaction, kind, session.project, "half-done")
        raise InjectedError

    async def refused(transaction: Transaction) -> None:
        raise InjectedError

    async def outdated(transaction: Transaction) -> None:
        await create_entity(transaction, "task", session.project, "half-done")
        await change(transaction, Task(id=10**6, user="u", title="t", created_at=0, updated_at=0), "other")

    async def duplicate(transaction: Transaction) -> None:
        await create_entity(transaction, "task", session.project, "half-done")
        await create_entity(transaction, "prompt", session.project, taken.name)

    async def clash(transaction: Transaction) -> None:
        raise NameTaken("prompt", "taken")

    failing: list[tuple[Work[None], type[Exception]]] = [
        (injected, InjectedError),
        (refused, InjectedError),
        (outdated, Outdated),
        (duplicate, DittybagError),
        (clash, NameTaken),
    ]
    jobs: list[Awaitable[Any]] = []
    for number in range(60):
        jobs.append(session.write(creating(session, KINDS[number % 4], f"kept-{number}")))
        if number % 5 == 4:
            jobs.append(session.write(failing[number // 5 % 5][0]))
    outcomes = await asyncio.gather(*jobs, return_exceptions=True)

    made = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert len(made) == 60
    for index, error in enumerate(failed):
        assert isinstance(error, failing[index % 5][1]), error
    held = await stored_entities(session.store)
    assert len(held) == 1 + 1 + 60
    assert all(entity in held.values() for entity in made)
    await check_log(session.store)
    assert (
        len(
            [
                change
                for change in await read_log(session.store, [session.project])
                if change.kind != "project"
            ]
        )
        == 46
    )


async def test_each_transaction_has_its_own_batch(session: StoreSession) -> None:
    async def several(transaction: Transaction) -> list[Any]:
        return [
            await create_entity(transaction, "task", session.project, f"t{number}") for number in range(3)
        ]

    results = await asyncio.gather(*(session.write(several) for _ in range(20)))
    changes = [change for change in await read_log(session.store, [session.project]) if change.kind == "task"]
    batches: dict[int, list[Change]] = {}
    for item in changes:
        batches.setdefault(item.batch, []).append(item)
    assert sorted(([item.after for item in batch] for batch in batches.values()), key=repr) == sorted(
        results, key=repr
    )
    assert list(batches) == [batch[0].seq for batch in batches.values()]

    async def together(transaction: Transaction) -> list[list[Change]]:
        return [await transaction.changes.batch(number) for number in batches]

    assert await session.read(together) == list(batches.values())


@pytest.mark.parametrize("kind", ["project", "prompt", "resource"])
async def test_the_store_itself_refuses_a_duplicate_name(session: StoreSession, kind: Kind) -> None:
    """The services check names first; the constraint in the store prevents races."""
    await session.write(creating(session, kind, "entity"))
    with pytest.raises(DittybagError):
        await session.write(creating(session, kind, "entity"))
    await check_log(session.store)
    assert len(await stored_entities(session.store)) == 2


async def test_an_acknowledged_write_is_visible_to_all_processes(open_store: OpenStore) -> None:
    session = await open_session(await open_store())
    other = await open_store()
    made: list[Task] = []

    async def newest(transaction: Transaction) -> Task | None:
        return await transaction.tasks.get(session.caller.user, made[-1].id)

    for number in range(20):
        made.append(await session.task(f"t{number}"))
        for store in (session.store, other):
            assert await store.read(newest) == made[-1]
            assert await store.read(newest, slow=True) == made[-1]


def renamed(task: Task, title: str) -> Task:
    return replace(task, title=title, version=task.version + 1)


async def test_several_writes_at_once_are_one_batch_in_order(session: StoreSession) -> None:
    first, second = await session.task("first"), await session.task("second")
    new = replace(first, id=0, title="new", version=1)
    writes = [
        Write("update", first, renamed(first, "changed")),
        Write("create", None, new),
        Write("delete", second, None),
        Write("create", None, new),
    ]
    stored = await session.write(lambda transaction: transaction.write_all(writes))
    assert stored == [
        renamed(first, "changed"),
        replace(new, id=second.id + 1),
        None,
        replace(new, id=second.id + 2),
    ]
    log = (await read_log(session.store, [session.project]))[-len(writes) :]
    assert [(item.action, item.before, item.after) for item in log] == [
        (write.action, write.before, after) for write, after in zip(writes, stored, strict=True)
    ]
    assert {item.batch for item in log} == {log[0].seq}
    await check_log(session.store)


async def test_several_writes_at_once_are_refused_if_one_of_them_is_outdated(session: StoreSession) -> None:
    first, second = await session.task("first"), await session.task("second")
    await session.write(lambda transaction: change(transaction, second, "later"))
    before = await stored_entities(session.store)
    writes = [Write("update", task, renamed(task, "lost")) for task in (first, second)]
    with pytest.raises(Outdated):
        await session.write(lambda transaction: transaction.write_all(writes))
    assert await stored_entities(session.store) == before
    await check_log(session.store)


async def test_a_transaction_sees_its_own_writes(session: StoreSession) -> None:
    async def work(transaction: Transaction) -> None:
        prompt = await create_entity(transaction, "prompt", session.project, "new")
        assert await transaction.prompts.by_name(session.project, "new") == prompt
        for query in (
            PromptQuery(project=session.project, text="new", limit=10),
            PromptQuery(project=session.project, any_tag=("new",), limit=10),
        ):
            assert (await transaction.prompts.page(query))[0] == 1
        changed = await change(transaction, prompt, "other")
        query = PromptQuery(project=session.project, text="other", limit=10)
        assert (await transaction.prompts.page(query))[0] == 1
        latest = await transaction.changes.latest("prompt", prompt.id)
        assert latest is not None
        assert (latest.before, latest.after) == (prompt, changed)

    await session.write(work)


async def test_a_read_transaction_cannot_write(session: StoreSession) -> None:
    before = await stored_entities(session.store)
    for slow in (False, True):
        for kind in KINDS:
            with pytest.raises(DittybagError):
                await session.store.read(creating(session, kind, "entity"), slow=slow)
    assert await stored_entities(session.store) == before
    await check_log(session.store)


async def test_a_failing_read_leaves_the_store_usable(session: StoreSession) -> None:
    async def work(transaction: Transaction) -> None:
        raise InjectedError

    for slow in (False, True):
        with pytest.raises(InjectedError):
            await session.read(work, slow=slow)
        await session.task("t")
    assert len(await stored_entities(session.store)) == 3


async def test_the_actor_and_the_time_of_a_write_are_logged(session: StoreSession) -> None:
    first = await session.newest_change()

    async def work(transaction: Transaction) -> int:
        await create_entity(transaction, "task", session.project, "t")
        return transaction.now

    now = await session.store.write(work, actor="Ännchen 🤖")
    newest = await session.newest_change()
    assert (newest.actor, newest.at, newest.seq > first.seq) == ("Ännchen 🤖", now, True)


async def test_ids_are_unique_even_in_one_transaction(session: StoreSession) -> None:
    async def work(transaction: Transaction) -> set[str]:
        return {transaction.new_id() for _ in range(1000)}

    assert len(await session.write(work) | await session.write(work)) == 2000


async def test_closing_a_store_finishes_started_writes(open_store: OpenStore) -> None:
    session = await open_session(await open_store())
    writes = [asyncio.create_task(session.task(f"t{number}")) for number in range(300)]
    await asyncio.sleep(0)
    await session.store.close()
    made = await asyncio.wait_for(asyncio.gather(*writes), 10)
    held = await stored_entities(await open_store())
    assert all(task in held.values() for task in made)


async def test_a_closed_store_refuses_requests_immediately(open_store: OpenStore) -> None:
    session = await open_session(await open_store())
    await session.task("t")
    await session.store.close()
    await session.store.close()
    async with asyncio.timeout(2):
        with pytest.raises(StorageError):
            await session.workspace.tasks.get(session.caller, 1)
        with pytest.raises(StorageError):
            await session.task("late")


async def test_a_cancelled_write_is_completed_or_not_done_at_all(open_store: OpenStore) -> None:
    session = await open_session(await open_store())

    async def both(transaction: Transaction) -> None:
        for kind in KINDS:
            await create_entity(transaction, kind, session.project, f"{kind}-{transaction.new_id()}")

    for patience in range(40):
        write = asyncio.create_task(session.write(both))
        for _ in range(patience):
            await asyncio.sleep(0)
        write.cancel()
        await asyncio.gather(write, return_exceptions=True)
    await session.store.close()
    again = await open_store()
    await check_log(again)
    counts = {kind: sum(key[0] == kind for key in await stored_entities(again)) for kind in KINDS}
    assert len({counts["project"] - 1, counts["prompt"], counts["resource"], counts["task"]}) == 1
