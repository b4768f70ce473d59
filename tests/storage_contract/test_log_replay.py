"""Replaying a log recreates the same store with the same sequence numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.errors import Invalid
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.domain.queries import ChangeQuery, PromptQuery
from tests.storage_contract.backends import Backend
from tests.storage_contract.log_consistency import check_log, stored_entities
from tests.storage_contract.store_session import ACTOR, StoreSession, open_session


async def create_samples(session: StoreSession) -> None:
    """Create a history with updates, deletions and restored entities."""
    garden = await open_session(session.store, "garden")
    garden = replace(garden, caller=replace(garden.caller, interface="web"))
    await session.workspace.projects.create("gone", actor=ACTOR)
    await session.prompt("street", "Größe 10%", tags=("x", "y"))
    await garden.prompt("p", "old")
    await garden.change_prompt("p", content="new", tags=("y",))
    await garden.resource("r", "Text")
    await garden.change_resource("r", content="Other text")
    await session.resource("bytes", bytes(range(256)))
    for number in range(4):
        await session.task(f"t{number}", notes="Some")
    await session.workspace.tasks.complete(session.caller, 2)
    # The last assigned numbers are no longer in use.
    await session.workspace.tasks.delete(session.caller, 4)
    await session.workspace.projects.delete("gone", actor=ACTOR)
    await garden.delete_prompt("p")
    await garden.undo((await garden.newest_change()).seq)


async def log_of(store: Store) -> list[Change]:
    return await store.read(lambda transaction: transaction.changes.page(ChangeQuery(oldest_first=True)))


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


async def test_a_replayed_log_recreates_the_store_and_later_writes_continue_from_it(
    backend: Backend, session: StoreSession
) -> None:
    await create_samples(session)
    log = await log_of(session.store)
    copy = await backend.open(backend.new_location())
    try:
        await replay(copy, log, await contents_of(session.store, log))
        assert await log_of(copy) == log
        assert await stored_entities(copy) == await stored_entities(session.store)
        there = await open_session(copy)
        assert (await there.task("next")).id == 5
        assert (await there.workspace.projects.create("next", actor=ACTOR)).id == 4
        assert (await there.prompt("next")).number == len(log) + 3
        assert [prompt.name for prompt in (await search(there, "GRÖSSE 10%"))] == ["street"]
        page, _ = await there.workspace.prompts.by_tags(there.caller, ["x"], 10, 0)
        assert [prompt.name for prompt in page.prompts] == ["street"]
        await check_log(copy, 3)
    finally:
        await copy.close()


async def test_replayed_prompts_that_were_changed_or_deleted_are_counted_as_in_the_original(
    backend: Backend, session: StoreSession
) -> None:
    await session.prompt("short", tags=("gone", "kept"))
    await session.prompt("other", tags=("kept", "old"))
    await session.change_prompt("other", tags=("new", "kept"))
    await session.delete_prompt("short")
    log = await log_of(session.store)
    copy = await backend.open(backend.new_location())
    try:
        await replay(copy, log, [])
        there = await open_session(copy)
        assert [(tag.name, tag.prompt_count) for tag in await there.workspace.prompts.tags(there.caller)] == [
            ("kept", 1),
            ("new", 1),
        ]
        query = PromptQuery(project=there.project, limit=10)
        assert (await there.workspace.prompts.page(there.caller, query)).total == 1
    finally:
        await copy.close()


async def test_a_log_can_be_replayed_in_parts(backend: Backend, session: StoreSession) -> None:
    await create_samples(session)
    log = await log_of(session.store)
    contents = await contents_of(session.store, log)
    copy = await backend.open(backend.new_location())
    try:
        await replay(copy, log[:5], contents)
        for start in range(5, len(log), 4):

            async def work(transaction: Transaction, start: int = start) -> None:
                await transaction.continue_replay(log[start : start + 4])

            await copy.write(work, actor="importer")
        assert await log_of(copy) == log
        assert await stored_entities(copy) == await stored_entities(session.store)
        there = await open_session(copy)
        assert [prompt.name for prompt in (await search(there, "GRÖSSE 10%"))] == ["street"]
        assert (await there.task("next")).id == 5
        assert (await there.newest_change()).seq == len(log) + 1
        await check_log(copy, 3)
    finally:
        await copy.close()


async def search(session: StoreSession, query: str) -> Any:
    return (
        await session.workspace.prompts.page(
            session.caller, PromptQuery(project=session.caller.project, text=query, limit=10, offset=0)
        )
    ).prompts


async def test_an_inconsistent_log_is_refused_and_nothing_is_stored(
    backend: Backend, session: StoreSession
) -> None:
    await create_samples(session)
    log = await log_of(session.store)
    contents = await contents_of(session.store, log)
    copy = await backend.open(backend.new_location())
    try:
        before = await log_of(copy), await stored_entities(copy)
        prompt = next(change for change in log if change.kind == "prompt")
        again = replace(prompt, seq=log[-1].seq + 1, batch=log[-1].seq + 1)
        with pytest.raises(Invalid, match=f"change {again.seq} conflicts with"):
            await replay(copy, [*log, again], contents)
        assert (await log_of(copy), await stored_entities(copy)) == before
        await replay(copy, log, contents)
        assert await log_of(copy) == log
        with pytest.raises(ValueError, match="already contains changes"):
            await replay(copy, log, contents)
        assert await log_of(copy) == log
    finally:
        await copy.close()


async def test_a_store_has_only_its_initial_change_until_the_first_write(session: StoreSession) -> None:
    async def untouched(transaction: Transaction) -> Change | None:
        return await transaction.initial_change()

    first = await session.read(untouched)
    assert first is not None
    assert getattr(first.after, "name", None) == DEFAULT_PROJECT
    await session.task("t")
    assert await session.read(untouched) is None


async def test_entities_of_all_projects_and_users_are_paged_in_creation_order(
    session: StoreSession,
) -> None:
    await create_samples(session)
    held = await stored_entities(session.store)

    async def paged(kind: Kind, transaction: Transaction) -> list[Any]:
        found: list[Any] = []
        number = 0
        while some := await transaction.page_of_kind(kind, number, 2):
            assert len(some) <= 2
            found += some
            number = getattr(some[-1], "number", some[-1].id)
        return found

    for kind in ENTITY_TYPES:
        entities = await session.read(partial(paged, kind))
        expected = [entity for (each, _), entity in held.items() if each == kind]
        assert entities == sorted(expected, key=lambda entity: getattr(entity, "number", entity.id))


async def test_an_entity_is_found_by_its_fields_in_any_project(session: StoreSession) -> None:
    await create_samples(session)
    for (kind, _), entity in (await stored_entities(session.store)).items():
        fields: dict[str, Any] = {"id": entity.id, "version": entity.version}
        if kind == "task":
            fields["user"] = session.caller.user
        assert await session.read(partial(find, kind, fields)) == entity
        assert await session.read(partial(find, kind, {**fields, "version": 99})) is None


async def find(kind: Kind, fields: dict[str, Any], transaction: Transaction) -> Any:
    return await transaction.find(kind, **fields)
