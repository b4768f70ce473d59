"""The change log has exactly one entry per write and leads to the tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.changes import Action, Change, Interface
from dittybag.domain.entities import Kind, key_of
from dittybag.domain.errors import DittybagError
from dittybag.domain.ports import Transaction
from dittybag.domain.queries import ChangeQuery, PromptQuery
from dittybag.services.prompt_service import PromptAddress
from dittybag.services.search_service import RankedQuery
from tests.storage_contract.log_consistency import ALL, check_log, read_log
from tests.storage_contract.store_session import ACTOR, StoreSession, open_session

UseCase = Callable[[StoreSession], Awaitable[Any]]


async def create_samples(session: StoreSession) -> None:
    """Create an entity of every kind: task 1, and prompt, resource and project `old`."""
    await session.prompt("old", tags=["a"])
    await session.resource("old", "Words")
    await session.task("old")
    await session.workspace.projects.create("old", actor=ACTOR)


ONE_ROW: list[tuple[Action, Kind, UseCase]] = [
    ("create", "project", lambda session: session.workspace.projects.create("new", actor=ACTOR)),
    ("update", "project", lambda session: session.workspace.projects.rename("old", "new", actor=ACTOR)),
    ("delete", "project", lambda session: session.workspace.projects.delete("old", actor=ACTOR)),
    ("create", "prompt", lambda session: session.prompt("new", "Text", tags=["x"], description="d")),
    ("update", "prompt", lambda session: session.change_prompt("old", content="Text", tags=("y",))),
    ("delete", "prompt", lambda session: session.delete_prompt("old")),
    ("create", "resource", lambda session: session.resource("new", bytes(range(256)))),
    ("update", "resource", lambda session: session.change_resource("old", content="Text")),
    ("delete", "resource", lambda session: session.delete_resource("old")),
    ("create", "task", lambda session: session.task("new", notes="n")),
    ("update", "task", lambda session: session.workspace.tasks.update(session.caller, 1, title="other")),
    ("update", "task", lambda session: session.workspace.tasks.complete(session.caller, 1)),
    ("delete", "task", lambda session: session.workspace.tasks.delete(session.caller, 1)),
]


async def full_log(session: StoreSession) -> list[Change]:
    """Return the log of all projects in these tests."""
    return await read_log(session.store, range(1, 10))


@pytest.mark.parametrize(
    ("action", "kind", "use_case"), ONE_ROW, ids=[f"{row[0]} {row[1]} {n}" for n, row in enumerate(ONE_ROW)]
)
async def test_a_write_is_logged_as_one_change_with_the_state_before_and_after(
    session: StoreSession, action: Action, kind: Kind, use_case: UseCase
) -> None:
    await create_samples(session)
    old = await full_log(session)
    entity = await use_case(session)
    added = (await full_log(session))[len(old) :]
    assert [(change.action, change.kind, change.entity) for change in added] == [
        (action, kind, key_of(entity))
    ]
    (change,) = added
    assert (change.actor, change.batch) == (ACTOR, change.seq)
    assert change.seq > old[-1].seq
    if action == "delete":
        assert (change.before, change.after) == (entity, None)
    else:
        assert change.after == entity
        assert (change.before is None) is (action == "create")
    if kind in ("prompt", "resource"):
        assert change.project == session.project
    elif kind == "task":
        assert change.project is None
    await check_log(session.store, *range(2, 10))


REFUSED: list[UseCase] = [
    lambda session: session.workspace.projects.create("old", actor=ACTOR),
    lambda session: session.workspace.projects.rename("old", "default", actor=ACTOR),
    lambda session: session.workspace.projects.delete("none", actor=ACTOR),
    lambda session: session.prompt("old"),
    lambda session: session.prompt("bad name"),
    lambda session: session.prompt("new", title="old"),
    lambda session: session.change_prompt("none", content="x"),
    lambda session: session.change_prompt("old", content=""),
    lambda session: session.workspace.prompts.delete(session.caller, PromptAddress(id="none")),
    lambda session: session.resource("old", "new content", uri="x:new"),
    lambda session: session.resource("new", "new content", uri="file:///old"),
    lambda session: session.change_resource("old", content="not base64!", mime_type="image/png"),
    lambda session: session.change_resource("none", content="x"),
    lambda session: session.task("", priority=9),
    lambda session: session.workspace.tasks.update(session.caller, 99, title="x"),
    lambda session: session.workspace.tasks.delete(session.caller, 99),
    lambda session: session.undo(10**6),
]


@pytest.mark.parametrize("use_case", REFUSED, ids=range(len(REFUSED)))
async def test_a_refused_write_is_not_logged(session: StoreSession, use_case: UseCase) -> None:
    await create_samples(session)
    old = await full_log(session)
    with pytest.raises(DittybagError):
        await use_case(session)
    assert await full_log(session) == old
    await check_log(session.store)


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


async def test_deleting_a_project_logs_its_contents_in_one_batch(session: StoreSession) -> None:
    garden = await open_session(session.store, "garden")
    entities: list[Any] = [await garden.prompt("p1"), await garden.prompt("p2"), await garden.resource("r")]
    entities.append(await session.workspace.projects.find("garden"))
    old = await full_log(session)
    await session.workspace.projects.delete("garden", actor=ACTOR)
    added = (await full_log(session))[len(old) :]
    assert [(change.action, change.before, change.after) for change in added] == [
        ("delete", entity, None) for entity in entities
    ]
    assert {change.batch for change in added} == {added[0].seq}
    assert {change.project for change in added} == {garden.project}
    await check_log(session.store, garden.project)


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
