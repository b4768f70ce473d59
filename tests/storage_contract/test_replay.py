"""Replaying a log: another store becomes the same, with the same numbers, and goes on from there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.changes import KINDS, Change, Kind
from dittybag.domain.errors import Invalid
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import DEFAULT_PROJECT
from tests.storage_contract.backends import Backend
from tests.storage_contract.desk import ACTOR, Desk, desk_at
from tests.storage_contract.ledger import ALL, check_books, holdings


async def furnish(desk: Desk) -> None:
    """A history with everything in it: changed, deleted and brought back."""
    garden = await desk_at(desk.store, "garden")
    await desk.workspace.projects.create("gone", actor=ACTOR)
    await desk.prompt("street", "Größe 10%", tags=("x", "y"))
    await garden.prompt("p", "old")
    await garden.change_prompt("p", content="new", tags=("y",))
    await garden.resource("r", "Text")
    await garden.change_resource("r", content="Other text")
    await desk.resource("bytes", bytes(range(256)))
    for number in range(4):
        await desk.task(f"t{number}", notes="Some")
    await desk.workspace.tasks.complete(desk.caller, 2)
    # The last numbers that were given are in use no more.
    await desk.workspace.tasks.delete(desk.caller, 4)
    await desk.workspace.projects.delete("gone", actor=ACTOR)
    await garden.delete_prompt("p")
    await garden.undo((await garden.newest_change()).seq)


async def log_of(store: Store) -> list[Change]:
    return await store.read(lambda transaction: transaction.changes.since(0, ALL))


async def contents_of(store: Store, log: Iterable[Change]) -> list[bytes]:
    digests = {
        digest
        for change in log
        for entity in (change.before, change.after)
        if (digest := getattr(entity, "sha256", None))
    }

    async def work(transaction: Transaction) -> list[bytes]:
        return [await transaction.content(digest) for digest in sorted(digests)]

    return await store.read(work)


async def replay(store: Store, log: list[Change], contents: list[bytes]) -> None:
    async def each() -> AsyncIterator[Change]:
        for change in log:
            yield change

    async def work(transaction: Transaction) -> None:
        for content in contents:
            await transaction.store_content(content)
        await transaction.replay(each())

    await store.write(work, actor="importer")


async def test_a_replayed_log_makes_the_same_store_and_it_goes_on_from_there(
    backend: Backend, desk: Desk
) -> None:
    await furnish(desk)
    log = await log_of(desk.store)
    copy = await backend.open(backend.new_place())
    try:
        await replay(copy, log, await contents_of(desk.store, log))
        assert await log_of(copy) == log
        assert await holdings(copy) == await holdings(desk.store)
        there = await desk_at(copy)
        assert (await there.task("next")).id == 5
        assert (await there.workspace.projects.create("next", actor=ACTOR)).id == 4
        assert (await there.prompt("next")).number == len(log) + 3
        assert [prompt.name for prompt in (await search(there, "GRÖSSE 10%"))] == ["street"]
        page, _ = await there.workspace.prompts.by_tags(there.caller, ["x"], 10, 0)
        assert [prompt.name for prompt in page.prompts] == ["street"]
        await check_books(copy, 3)
    finally:
        await copy.close()


async def test_what_happened_elsewhere_is_repeated_bit_by_bit(backend: Backend, desk: Desk) -> None:
    await furnish(desk)
    log = await log_of(desk.store)
    contents = await contents_of(desk.store, log)
    copy = await backend.open(backend.new_place())
    try:
        await replay(copy, log[:5], contents)
        for start in range(5, len(log), 4):

            async def work(transaction: Transaction, start: int = start) -> None:
                await transaction.continue_replay(log[start : start + 4])

            await copy.write(work, actor="importer")
        assert await log_of(copy) == log
        assert await holdings(copy) == await holdings(desk.store)
        there = await desk_at(copy)
        assert [prompt.name for prompt in (await search(there, "GRÖSSE 10%"))] == ["street"]
        assert (await there.task("next")).id == 5
        assert (await there.newest_change()).seq == len(log) + 1
        await check_books(copy, 3)
    finally:
        await copy.close()


async def search(desk: Desk, query: str) -> Any:
    return (await desk.workspace.prompts.search(desk.caller, query, 10, 0)).prompts


async def test_a_log_that_contradicts_itself_is_refused_and_nothing_of_it_is_kept(
    backend: Backend, desk: Desk
) -> None:
    await furnish(desk)
    log = await log_of(desk.store)
    contents = await contents_of(desk.store, log)
    copy = await backend.open(backend.new_place())
    try:
        before = await log_of(copy), await holdings(copy)
        prompt = next(change for change in log if change.kind == "prompt")
        again = replace(prompt, seq=log[-1].seq + 1, batch=log[-1].seq + 1)
        with pytest.raises(Invalid, match=f"change {again.seq} does not fit"):
            await replay(copy, [*log, again], contents)
        assert (await log_of(copy), await holdings(copy)) == before
        await replay(copy, log, contents)
        assert await log_of(copy) == log
        with pytest.raises(ValueError, match="happened here already"):
            await replay(copy, log, contents)
        assert await log_of(copy) == log
    finally:
        await copy.close()


async def test_a_store_is_untouched_until_something_happens_in_it(desk: Desk) -> None:
    async def untouched(transaction: Transaction) -> Change | None:
        return await transaction.initial_change()

    first = await desk.read(untouched)
    assert first is not None
    assert getattr(first.after, "name", None) == DEFAULT_PROJECT
    await desk.task("t")
    assert await desk.read(untouched) is None


async def test_things_of_all_projects_and_users_come_in_the_order_of_their_creation(desk: Desk) -> None:
    await furnish(desk)
    held = await holdings(desk.store)

    async def paged(kind: Kind, transaction: Transaction) -> list[Any]:
        found: list[Any] = []
        number = 0
        while some := await transaction.page_of_kind(kind, number, 2):
            assert len(some) <= 2
            found += some
            number = getattr(some[-1], "number", some[-1].id)
        return found

    for kind in KINDS:
        things = await desk.read(partial(paged, kind))
        expected = [entity for (each, _), entity in held.items() if each == kind]
        assert things == sorted(expected, key=lambda thing: getattr(thing, "number", thing.id))


async def test_a_thing_is_found_by_its_fields_wherever_it_is(desk: Desk) -> None:
    await furnish(desk)
    for (kind, _), entity in (await holdings(desk.store)).items():
        fields: dict[str, Any] = {"id": entity.id, "version": entity.version}
        if kind == "task":
            fields["user"] = desk.caller.user
        assert await desk.read(partial(find, kind, fields)) == entity
        assert await desk.read(partial(find, kind, {**fields, "version": 99})) is None


async def find(kind: Kind, fields: dict[str, Any], transaction: Transaction) -> Any:
    return await transaction.find(kind, **fields)
