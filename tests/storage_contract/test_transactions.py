"""Transactions: all or nothing, one writer at a time, and nobody's work lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dittybag.domain.changes import Change, Kind
from dittybag.domain.errors import DittybagError, NameTaken, Outdated, StorageError
from dittybag.domain.ports import Store, Transaction, Work
from dittybag.domain.tasks import Task
from tests.storage_contract.desk import ACTOR, Desk, OpenStore, desk_at
from tests.storage_contract.ledger import check_books, holdings, log
from tests.storage_contract.things import KINDS, change, delete, make

Step = Callable[[Transaction, Any, str], Awaitable[Any]]


class Mishap(Exception):
    """Something that the store knows nothing of."""


def making(desk: Desk, kind: Kind, label: str) -> Work[Any]:
    async def work(transaction: Transaction) -> Any:
        return await make(transaction, kind, desk.project, label)

    return work


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("first", "second"), [(change, change), (change, delete), (delete, change), (delete, delete)]
)
async def test_of_two_writers_who_saw_the_same_version_one_wins(
    open_store: OpenStore, kind: Kind, first: Step, second: Step
) -> None:
    desk = await desk_at(await open_store())
    other = await open_store()
    seen = await desk.write(making(desk, kind, "thing"))
    won = await desk.write(lambda transaction: first(transaction, seen, "first"))
    for store in (other, desk.store):
        with pytest.raises(Outdated):
            await store.write(lambda transaction: second(transaction, seen, "second"), actor=ACTOR)
    held = list((await holdings(other)).values())
    assert (won in held) is (first is change)
    assert seen not in held
    await check_books(other, seen.id if kind == "project" else desk.project)


@pytest.mark.parametrize("kind", KINDS)
async def test_writers_at_the_same_moment_have_one_winner_and_it_is_what_is_kept(
    open_store: OpenStore, kind: Kind
) -> None:
    desk = await desk_at(await open_store())
    stores = [desk.store, await open_store(), await open_store()]
    thing = await desk.write(making(desk, kind, "thing"))
    for turn in range(10):

        def attempt(store: Store, who: int, seen: Any = thing, turn: int = turn) -> Awaitable[Any]:
            return store.write(
                lambda transaction: change(transaction, seen, f"turn-{turn}-{who}"), actor=ACTOR
            )

        outcomes = await asyncio.gather(
            *(attempt(stores[who % 3], who) for who in range(9)), return_exceptions=True
        )
        (thing,) = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        assert [type(outcome) for outcome in outcomes].count(Outdated) == 8
        assert thing in (await holdings(stores[turn % 3])).values()
    await check_books(desk.store)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_outdated_writer_is_told_of_what(desk: Desk, kind: Kind) -> None:
    seen = await desk.write(making(desk, kind, "thing"))
    await desk.write(lambda transaction: delete(transaction, seen))
    with pytest.raises(Outdated) as caught:
        await desk.write(lambda transaction: delete(transaction, seen))
    assert (caught.value.kind, caught.value.name) == (kind, str(seen.id) if kind == "task" else "thing")


async def test_use_cases_of_two_processes_lose_no_update(open_store: OpenStore) -> None:
    """Each use case reads and writes in one transaction, so nobody's version is ever outdated."""
    desks = [await desk_at(await open_store()) for _ in range(2)]
    await desks[0].prompt("p")
    task = await desks[0].task("t")
    await asyncio.gather(
        *(desks[turn % 2].change_prompt("p", content=str(turn)) for turn in range(40)),
        *(
            desks[turn % 2].workspace.tasks.update(desks[0].caller, task.id, notes=str(turn))
            for turn in range(40)
        ),
    )
    held = {kind: entity for (kind, _), entity in (await holdings(desks[0].store)).items()}
    assert (held["prompt"].version, held["task"].version) == (41, 41)
    await check_books(desks[1].store)


async def test_what_a_failing_use_case_wrote_is_gone(desk: Desk) -> None:
    existing = {kind: await desk.write(making(desk, kind, f"{kind}-old")) for kind in KINDS}
    before = await holdings(desk.store), await log(desk.store, [desk.project])
    stamps = [desk.store.stamp(kind, desk.project) for kind in KINDS]

    async def work(transaction: Transaction) -> None:
        for kind in KINDS:
            new = await make(transaction, kind, desk.project, f"{kind}-new")
            assert new.version == 1
            await change(transaction, existing[kind], f"{kind}-changed")
            await delete(transaction, new)
        raise Mishap

    with pytest.raises(Mishap):
        await desk.write(work)
    assert (await holdings(desk.store), await log(desk.store, [desk.project])) == before
    assert [desk.store.stamp(kind, desk.project) for kind in KINDS] == stamps
    assert await desk.workspace.prompts.search(desk.caller, "prompt-new", 10, 0) == (
        await desk.workspace.prompts.search(desk.caller, "prompt-changed", 10, 0)
    )
    for kind in KINDS:
        await desk.write(making(desk, kind, f"{kind}-new"))
    await check_books(desk.store)


async def test_a_failing_use_case_among_many_concurrent_ones_fails_alone(desk: Desk) -> None:
    taken = await desk.prompt("taken")

    async def mishap(transaction: Transaction) -> None:
        for kind in KINDS:
            await make(transaction, kind, desk.project, "half-done")
        raise Mishap

    async def refused(transaction: Transaction) -> None:
        raise Mishap

    async def outdated(transaction: Transaction) -> None:
        await make(transaction, "task", desk.project, "half-done")
        await change(transaction, Task(id=10**6, user="u", title="t", created_at=0, updated_at=0), "other")

    async def duplicate(transaction: Transaction) -> None:
        await make(transaction, "task", desk.project, "half-done")
        await make(transaction, "prompt", desk.project, taken.name)

    async def clash(transaction: Transaction) -> None:
        raise NameTaken("prompt", "taken")

    failing: list[tuple[Work[None], type[Exception]]] = [
        (mishap, Mishap),
        (refused, Mishap),
        (outdated, Outdated),
        (duplicate, DittybagError),
        (clash, NameTaken),
    ]
    jobs: list[Awaitable[Any]] = []
    for number in range(60):
        jobs.append(desk.write(making(desk, KINDS[number % 4], f"kept-{number}")))
        if number % 5 == 4:
            jobs.append(desk.write(failing[number // 5 % 5][0]))
    outcomes = await asyncio.gather(*jobs, return_exceptions=True)

    made = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert len(made) == 60
    for index, error in enumerate(failed):
        assert isinstance(error, failing[index % 5][1]), error
    held = await holdings(desk.store)
    assert len(held) == 1 + 1 + 60
    assert all(entity in held.values() for entity in made)
    await check_books(desk.store)
    assert len([change for change in await log(desk.store, [desk.project]) if change.kind != "project"]) == 46


async def test_each_use_case_has_a_batch_of_its_own_and_keeps_it_together(desk: Desk) -> None:
    async def several(transaction: Transaction) -> list[Any]:
        return [await make(transaction, "task", desk.project, f"t{number}") for number in range(3)]

    results = await asyncio.gather(*(desk.write(several) for _ in range(20)))
    changes = [change for change in await log(desk.store, [desk.project]) if change.kind == "task"]
    batches: dict[int, list[Change]] = {}
    for item in changes:
        batches.setdefault(item.batch, []).append(item)
    assert sorted(([item.after for item in batch] for batch in batches.values()), key=repr) == sorted(
        results, key=repr
    )
    assert list(batches) == [batch[0].seq for batch in batches.values()]

    async def together(transaction: Transaction) -> list[list[Change]]:
        return [await transaction.changes.batch(number) for number in batches]

    assert await desk.read(together) == list(batches.values())


@pytest.mark.parametrize("kind", ["project", "prompt", "resource"])
async def test_the_store_itself_refuses_a_second_thing_of_one_name(desk: Desk, kind: Kind) -> None:
    """Below the services, which would have asked first; so that no race can break it."""
    await desk.write(making(desk, kind, "thing"))
    with pytest.raises(DittybagError):
        await desk.write(making(desk, kind, "thing"))
    await check_books(desk.store)
    assert len(await holdings(desk.store)) == 2


async def test_a_write_is_seen_by_everybody_when_it_is_acknowledged(open_store: OpenStore) -> None:
    desk = await desk_at(await open_store())
    other = await open_store()
    made: list[Task] = []

    async def newest(transaction: Transaction) -> Task | None:
        return await transaction.tasks.get(desk.caller.user, made[-1].id)

    for number in range(20):
        made.append(await desk.task(f"t{number}"))
        for store in (desk.store, other):
            assert await store.read(newest) == made[-1]
            assert await store.read(newest, slow=True) == made[-1]


async def test_a_transaction_sees_what_it_wrote(desk: Desk) -> None:
    async def work(transaction: Transaction) -> None:
        prompt = await make(transaction, "prompt", desk.project, "new")
        assert await transaction.prompts.by_name(desk.project, "new") == prompt
        assert (await transaction.prompts.search(desk.project, "new", 10, 0))[0] == 1
        assert (await transaction.prompts.by_tags(desk.project, ["new"], 10, 0))[0] == 1
        changed = await change(transaction, prompt, "other")
        assert (await transaction.prompts.search(desk.project, "other", 10, 0))[0] == 1
        latest = await transaction.changes.latest("prompt", prompt.id)
        assert latest is not None
        assert (latest.before, latest.after) == (prompt, changed)

    await desk.write(work)


async def test_a_reading_transaction_cannot_write(desk: Desk) -> None:
    before = await holdings(desk.store)
    for slow in (False, True):
        for kind in KINDS:
            with pytest.raises(DittybagError):
                await desk.store.read(making(desk, kind, "thing"), slow=slow)
    assert await holdings(desk.store) == before
    await check_books(desk.store)


async def test_a_failing_read_leaves_the_store_usable(desk: Desk) -> None:
    async def work(transaction: Transaction) -> None:
        raise Mishap

    for slow in (False, True):
        with pytest.raises(Mishap):
            await desk.read(work, slow=slow)
        await desk.task("t")
    assert len(await holdings(desk.store)) == 3


async def test_the_actor_and_the_time_of_a_write_are_logged(desk: Desk) -> None:
    first = await desk.newest_change()

    async def work(transaction: Transaction) -> int:
        await make(transaction, "task", desk.project, "t")
        return transaction.now

    now = await desk.store.write(work, actor="Ännchen 🤖")
    newest = await desk.newest_change()
    assert (newest.actor, newest.at, newest.seq > first.seq) == ("Ännchen 🤖", now, True)


async def test_ids_are_unique_even_in_one_transaction(desk: Desk) -> None:
    async def work(transaction: Transaction) -> set[str]:
        return {transaction.new_id() for _ in range(1000)}

    assert len(await desk.write(work) | await desk.write(work)) == 2000


async def test_closing_finishes_what_has_been_begun(open_store: OpenStore) -> None:
    desk = await desk_at(await open_store())
    writes = [asyncio.create_task(desk.task(f"t{number}")) for number in range(300)]
    await asyncio.sleep(0)
    await desk.store.close()
    made = await asyncio.wait_for(asyncio.gather(*writes), 10)
    held = await holdings(await open_store())
    assert all(task in held.values() for task in made)


async def test_a_closed_store_says_so_and_waits_for_nothing(open_store: OpenStore) -> None:
    desk = await desk_at(await open_store())
    await desk.task("t")
    await desk.store.close()
    await desk.store.close()
    async with asyncio.timeout(2):
        with pytest.raises(StorageError):
            await desk.workspace.tasks.get(desk.caller, 1)
        with pytest.raises(StorageError):
            await desk.task("late")


async def test_a_write_nobody_waits_for_any_more_is_done_wholly_or_not_at_all(open_store: OpenStore) -> None:
    desk = await desk_at(await open_store())

    async def both(transaction: Transaction) -> None:
        for kind in KINDS:
            await make(transaction, kind, desk.project, f"{kind}-{transaction.new_id()}")

    for patience in range(40):
        write = asyncio.create_task(desk.write(both))
        for _ in range(patience):
            await asyncio.sleep(0)
        write.cancel()
        await asyncio.gather(write, return_exceptions=True)
    await desk.store.close()
    again = await open_store()
    await check_books(again)
    counts = {kind: sum(key[0] == kind for key in await holdings(again)) for kind in KINDS}
    assert len({counts["project"] - 1, counts["prompt"], counts["resource"], counts["task"]}) == 1
