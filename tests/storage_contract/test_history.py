"""Undo and restore: deleted and overwritten entities are restored byte for byte."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.changes import Purged
from dittybag.domain.entities import Entity, Kind
from dittybag.domain.errors import (
    ChangeNotFound,
    DittybagError,
)
from dittybag.domain.ports import Transaction
from dittybag.domain.prompts import Argument
from dittybag.domain.queries import ChangeQuery, PromptQuery, TaskQuery
from dittybag.domain.resources import Resource
from dittybag.services.search_service import RankedQuery
from tests.storage_contract.log_consistency import (
    EntitiesByKey,
    check_log,
    read_log,
    stored_entities,
    without_version,
)
from tests.storage_contract.sample_entities import create_entity
from tests.storage_contract.store_session import ACTOR, StoreSession, open_session

EVERY_BYTE = bytes(range(256))
ODD_TEXT = "Zeile 1\r\n\t\x01\x7f\u2028 \"'`;-- %_\\ 👩‍👩‍👧 \ufeff\uffff e\u0301 ß İ ς"
GARDEN = 2


async def create_samples(session: StoreSession) -> None:
    """Create entities of every kind, here and in the project `garden`, with all fields set."""
    garden = await open_session(session.store, "garden")
    assert garden.project == GARDEN
    for place in (session, garden):
        await place.prompt(
            "prompt",
            ODD_TEXT,
            title='Title "%_',
            description=ODD_TEXT,
            tags=["b", "a"],
            arguments=[Argument(name="x", description="ä", required=True, choices=("1", "ß"))],
        )
        await place.prompt("second", tags=["a"])
        await place.resource("text", ODD_TEXT, title="T", description=ODD_TEXT, mime_type="text/markdown")
        await place.resource("binary", EVERY_BYTE, mime_type="image/png", description="d")
        await place.resource("template", "Hello", uri="x:{name}")
        await place.resource("empty", "")
    await session.task(
        "task",
        project="garden",
        priority=5,
        energy="deep",
        time_estimate="½",
        notes=ODD_TEXT,
        due_date="2026-03-01",
    )
    done = await session.task("done")
    await session.workspace.tasks.complete(session.caller, done.id)


async def contents(session: StoreSession, held: EntitiesByKey) -> dict[str, bytes]:
    """Return the contents of all resources by id."""
    return {
        entity.id: await session.content(entity) for entity in held.values() if isinstance(entity, Resource)
    }


def without_versions(held: EntitiesByKey) -> dict[tuple[Kind, str], Entity | Purged | None]:
    return {key: without_version(entity) for key, entity in held.items()}


async def _delete_project(session: StoreSession) -> object:
    return await session.workspace.projects.delete("garden", actor=ACTOR)


async def _overwrite_task(session: StoreSession) -> object:
    return await session.workspace.tasks.update(
        session.caller, 1, title="x", project="", notes="", due_date="", priority=1
    )


async def _overwrite_prompt(session: StoreSession) -> object:
    return await session.change_prompt(
        "prompt", title="x", content="x", description="", tags=("c",), arguments=()
    )


async def _several_at_once(session: StoreSession) -> object:
    async def work(transaction: Transaction) -> None:
        for prompt in await transaction.prompts.in_project(session.project):
            await transaction.write("delete", prompt, None)
        for resource in await transaction.resources.listing(session.project):
            await transaction.write("update", resource, replace(resource, title="x", version=2))
        await create_entity(transaction, "task", session.project, "new")

    return await session.write(work)


Operation = Callable[[StoreSession], Awaitable[object]]

#: The operations and the projects they change.
OPERATIONS: dict[str, tuple[int, Operation]] = {
    "delete a project with contents": (GARDEN, _delete_project),
    "overwrite a prompt": (1, _overwrite_prompt),
    "overwrite a text": (
        1,
        lambda session: session.change_resource("text", content="x", title="", description=""),
    ),
    "delete bytes": (1, lambda session: session.delete_resource("binary")),
    "overwrite a task": (1, _overwrite_task),
    "several at once": (1, _several_at_once),
}

operations = pytest.mark.parametrize(("where", "operation"), OPERATIONS.values(), ids=list(OPERATIONS))


def in_project(session: StoreSession, project: int) -> StoreSession:
    """Return the same session in another project, which need not exist."""
    return StoreSession(session.workspace, replace(session.caller, project=project))


@operations
async def test_undo_restores_every_byte_and_can_itself_be_undone(
    session: StoreSession, where: int, operation: Operation
) -> None:
    await create_samples(session)
    here = in_project(session, where)
    before = await stored_entities(session.store)
    bytes_before = await contents(session, before)
    await operation(session)
    after = await stored_entities(session.store)
    bytes_after = await contents(session, after)
    assert without_versions(after) != without_versions(before)

    states = [(before, bytes_before), (after, bytes_after)] * 2
    for wanted, wanted_bytes in states:
        newest = (await read_log(session.store, [where]))[-1]
        undone = await here.undo(newest.seq)
        assert {change.batch for change in undone} == {newest.batch}
        now = await stored_entities(session.store)
        assert without_versions(now) == without_versions(wanted)
        assert await contents(session, now) == wanted_bytes
        await check_log(session.store, GARDEN, 3)


async def test_a_restored_entity_is_found_in_all_views(session: StoreSession) -> None:
    """Lists, pages, tags and searches."""
    await create_samples(session)

    async def views() -> list[Any]:
        prompts, resources, tasks = (
            session.workspace.prompts,
            session.workspace.resources,
            session.workspace.tasks,
        )
        return [
            await prompts.listing(session.caller, 0, 100),
            await prompts.page(
                session.caller, PromptQuery(project=session.caller.project, limit=100, offset=0)
            ),
            await prompts.by_tags(session.caller, ["a", "b"], 100, 0),
            await prompts.tags(session.caller),
            await prompts.page(
                session.caller,
                PromptQuery(project=session.caller.project, text="👩‍👩‍👧", limit=100, offset=0),
            ),
            [r.id for r in await resources.listing(session.caller, 0, 100, templates=False)],
            [r.id for r in await resources.templates(session.caller)],
            await resources.uris(session.caller, "", 100),
            [t.id for t in await tasks.page(session.caller, TaskQuery(user=session.caller.user, limit=100))],
            [
                (hit.ref, hit.passage)
                for hit in (
                    await session.workspace.search.ranked(session.caller, RankedQuery("ZEILE 1"))
                ).hits
            ],
        ]

    before = await views()
    await session.delete_prompt("prompt")
    await session.delete_resource("text")
    await session.delete_resource("template")
    await _overwrite_task(session)
    assert await views() != before
    for change in await session.workspace.history.page(
        session.caller, ChangeQuery(project=session.caller.project, limit=4)
    ):
        await session.undo(change.seq)
    assert await views() == before


async def test_a_change_of_another_project_cannot_be_undone(session: StoreSession) -> None:
    await create_samples(session)
    for change in [change for change in await read_log(session.store, [GARDEN]) if change.project == GARDEN]:
        with pytest.raises(ChangeNotFound):
            await session.undo(change.seq)
        with pytest.raises(ChangeNotFound):
            await session.workspace.history.restore(
                session.caller, change.seq, project=session.caller.project
            )


@pytest.mark.parametrize("seq", [0, -1, 10**6, 2**63, 10**30])
async def test_an_unknown_change_cannot_be_undone(session: StoreSession, seq: int) -> None:
    with pytest.raises(ChangeNotFound):
        await session.undo(seq)
    with pytest.raises(ChangeNotFound):
        await session.workspace.history.restore(session.caller, seq, project=session.caller.project)


async def test_ids_of_undone_creations_are_not_reused(session: StoreSession) -> None:
    task = await session.task("t")
    await session.undo((await session.newest_change()).seq)
    prompt = await session.prompt("p")
    await session.undo((await session.newest_change()).seq)
    resource = await session.resource("r")
    await session.undo((await session.newest_change()).seq)
    assert (await session.task("t")).id > task.id
    assert (await session.prompt("p")).number > prompt.number
    assert (await session.resource("r")).number > resource.number


async def test_a_version_from_before_a_deletion_is_outdated_after_undo(session: StoreSession) -> None:
    seen = await session.prompt("p")
    await session.delete_prompt("p")
    await session.undo((await session.newest_change()).seq)

    async def work(transaction: Transaction) -> object:
        return await transaction.write("update", seen, replace(seen, content="x", version=seen.version + 1))

    with pytest.raises(DittybagError) as caught:
        await session.write(work)
    assert caught.value.code == "OUTDATED"
