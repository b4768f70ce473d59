"""The change log has exactly one entry per write and leads to the tables."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dittybag.domain.changes import Change, Interface
from dittybag.domain.ports import Transaction
from dittybag.domain.queries import ChangeQuery, PromptQuery
from dittybag.services.search_service import RankedQuery
from tests.storage_contract.log_consistency import ALL, read_log
from tests.storage_contract.store_session import ACTOR, StoreSession, open_session


async def create_samples(session: StoreSession) -> None:
    """Create an entity of every kind: task 1, and prompt, resource and project `old`."""
    await session.prompt("old", tags=["a"])
    await session.resource("old", "Words")
    await session.task("old")
    await session.workspace.projects.create("old", actor=ACTOR)


async def full_log(session: StoreSession) -> list[Change]:
    """Return the log of all projects in these tests."""
    return await read_log(session.store, range(1, 10))


async def test_an_operation_without_effect_is_not_logged(session: StoreSession) -> None:
    await create_samples(session)
    await session.workspace.tasks.complete(session.caller, 1)
    old = await full_log(session)
    await session.workspace.tasks.complete(session.caller, 1)
    await session.workspace.projects.rename("old", "old", actor=ACTOR)
    await session.workspace.history.restore(session.caller, old[-1].seq, project=session.caller.project)
    await session.workspace.prompts.page(
        session.caller, PromptQuery(project=session.caller.project, limit=10, offset=0)
    )
    await session.workspace.search.ranked(session.caller, RankedQuery("old"))
    assert await full_log(session) == old


async def test_a_page_of_changes_has_this_project_and_tasks_newest_first(
    session: StoreSession,
) -> None:
    garden = await open_session(session.store, "garden")
    for number in range(6):
        await session.prompt(f"p{number}")
        await garden.prompt(f"g{number}")
        await session.task(f"t{number}")
    everyentity = await full_log(session)
    for here in (session, garden):
        expected = [change for change in everyentity if change.project in (None, here.project)][::-1]
        assert (
            await here.workspace.history.page(
                here.caller, ChangeQuery(project=here.caller.project, limit=ALL)
            )
            == expected
        )
        paged: list[Change] = []
        while page := await here.workspace.history.page(
            here.caller,
            ChangeQuery(project=here.caller.project, limit=4, before=paged[-1].seq if paged else None),
        ):
            assert len(page) <= 4
            paged += page
        assert paged == expected
        for kind in ("project", "prompt", "resource", "task"):
            found = await here.workspace.history.page(
                here.caller, ChangeQuery(project=here.caller.project, kind=kind, limit=ALL)
            )
            assert found == [change for change in expected if change.kind == kind]


async def test_the_history_of_an_entity_is_found_by_its_id(session: StoreSession) -> None:
    prompt = await session.prompt("p")
    await session.prompt("other")
    await session.change_prompt("p", content="x")
    await session.delete_prompt("p")
    expected = [change for change in await full_log(session) if change.entity == prompt.id][::-1]
    assert [change.action for change in expected] == ["delete", "update", "create"]
    assert (
        await session.workspace.history.page(
            session.caller, ChangeQuery(project=session.caller.project, entity=prompt.id)
        )
        == expected
    )
    assert (
        await session.workspace.history.page(
            session.caller, ChangeQuery(project=session.caller.project, kind="prompt", entity=prompt.id)
        )
        == expected
    )
    assert (
        await session.workspace.history.page(
            session.caller, ChangeQuery(project=session.caller.project, kind="task", entity=prompt.id)
        )
        == []
    )
    latest = await session.read(lambda transaction: transaction.changes.latest("prompt", prompt.id))
    assert latest == expected[0]
    assert await session.read(lambda transaction: transaction.changes.latest("task", prompt.id)) is None


async def test_an_id_shared_by_entities_of_two_kinds_finds_both_histories(session: StoreSession) -> None:
    task = await session.task("t")
    assert str(task.id) == str(session.project)
    page = await session.workspace.history.page(
        session.caller, ChangeQuery(project=session.caller.project, entity=str(task.id))
    )
    assert [change.kind for change in page] == ["task", "project"]


@pytest.mark.parametrize("seq", [0, -1, 10**6, 2**63, -(2**63) - 1, 10**30])
async def test_an_unknown_seq_finds_no_change(session: StoreSession, seq: int) -> None:
    assert await session.read(lambda transaction: transaction.changes.get(seq)) is None
    page = await session.workspace.history.page(
        session.caller, ChangeQuery(project=session.caller.project, before=seq)
    )
    assert len(page) == (1 if seq > 1 else 0)


async def test_a_change_is_found_by_its_seq(session: StoreSession) -> None:
    await create_samples(session)
    changes = await full_log(session)

    async def work(transaction: Transaction) -> list[Change | None]:
        return [await transaction.changes.get(change.seq) for change in changes]

    assert await session.read(work) == changes


async def test_the_log_has_the_interface_of_the_caller(session: StoreSession) -> None:
    interfaces: tuple[Interface | None, ...] = (None, "web", "cli", "mcp")
    for interface in interfaces:
        caller = replace(session.caller, interface=interface)
        await session.workspace.tasks.create(caller, title="t")
    changes = await session.workspace.history.page(session.caller, ChangeQuery(kind="task"))
    assert tuple(change.interface for change in reversed(changes)) == interfaces
