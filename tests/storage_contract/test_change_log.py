"""The change log: every write exactly one row, and together they are the tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dittybag.domain.changes import Action, Change, Kind, key_of
from dittybag.domain.errors import DittybagError
from dittybag.domain.ports import Transaction
from dittybag.services.prompt_service import PromptAddress
from tests.storage_contract.desk import ACTOR, Desk, desk_at
from tests.storage_contract.ledger import ALL, check_books, log

UseCase = Callable[[Desk], Awaitable[Any]]


async def furnish(desk: Desk) -> None:
    """Something of every kind to work on: task 1, and prompt, resource and project `old`."""
    await desk.prompt("old", tags=["a"])
    await desk.resource("old", "Words")
    await desk.task("old")
    await desk.workspace.projects.create("old", actor=ACTOR)


ONE_ROW: list[tuple[Action, Kind, UseCase]] = [
    ("create", "project", lambda desk: desk.workspace.projects.create("new", actor=ACTOR)),
    ("update", "project", lambda desk: desk.workspace.projects.rename("old", "new", actor=ACTOR)),
    ("delete", "project", lambda desk: desk.workspace.projects.delete("old", actor=ACTOR)),
    ("create", "prompt", lambda desk: desk.prompt("new", "Text", tags=["x"], description="d")),
    ("update", "prompt", lambda desk: desk.change_prompt("old", content="Text", tags=("y",))),
    ("delete", "prompt", lambda desk: desk.delete_prompt("old")),
    ("create", "resource", lambda desk: desk.resource("new", bytes(range(256)))),
    ("update", "resource", lambda desk: desk.change_resource("old", content="Text")),
    ("delete", "resource", lambda desk: desk.delete_resource("old")),
    ("create", "task", lambda desk: desk.task("new", notes="n")),
    ("update", "task", lambda desk: desk.workspace.tasks.update(desk.caller, 1, title="other")),
    ("update", "task", lambda desk: desk.workspace.tasks.complete(desk.caller, 1)),
    ("delete", "task", lambda desk: desk.workspace.tasks.delete(desk.caller, 1)),
]


async def whole_log(desk: Desk) -> list[Change]:
    """The log of all projects that these tests know."""
    return await log(desk.store, range(1, 10))


@pytest.mark.parametrize(
    ("action", "kind", "use_case"), ONE_ROW, ids=[f"{row[0]} {row[1]} {n}" for n, row in enumerate(ONE_ROW)]
)
async def test_a_write_is_one_row_with_what_was_there_before_and_after(
    desk: Desk, action: Action, kind: Kind, use_case: UseCase
) -> None:
    await furnish(desk)
    old = await whole_log(desk)
    entity = await use_case(desk)
    added = (await whole_log(desk))[len(old) :]
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
        assert change.project == desk.project
    elif kind == "task":
        assert change.project is None
    await check_books(desk.store, *range(2, 10))


REFUSED: list[UseCase] = [
    lambda desk: desk.workspace.projects.create("old", actor=ACTOR),
    lambda desk: desk.workspace.projects.rename("old", "default", actor=ACTOR),
    lambda desk: desk.workspace.projects.delete("none", actor=ACTOR),
    lambda desk: desk.prompt("old"),
    lambda desk: desk.prompt("bad name"),
    lambda desk: desk.prompt("new", title="old"),
    lambda desk: desk.change_prompt("none", content="x"),
    lambda desk: desk.change_prompt("old", content=""),
    lambda desk: desk.workspace.prompts.delete(desk.caller, PromptAddress(id="none")),
    lambda desk: desk.resource("old", "new content", uri="x:new"),
    lambda desk: desk.resource("new", "new content", uri="file:///old"),
    lambda desk: desk.change_resource("old", content="not base64!", mime_type="image/png"),
    lambda desk: desk.change_resource("none", content="x"),
    lambda desk: desk.task("", priority=9),
    lambda desk: desk.workspace.tasks.update(desk.caller, 99, title="x"),
    lambda desk: desk.workspace.tasks.delete(desk.caller, 99),
    lambda desk: desk.undo(10**6),
]


@pytest.mark.parametrize("use_case", REFUSED, ids=range(len(REFUSED)))
async def test_what_is_refused_is_not_logged(desk: Desk, use_case: UseCase) -> None:
    await furnish(desk)
    old = await whole_log(desk)
    with pytest.raises(DittybagError):
        await use_case(desk)
    assert await whole_log(desk) == old
    await check_books(desk.store)


async def test_what_changes_nothing_is_not_logged(desk: Desk) -> None:
    await furnish(desk)
    await desk.workspace.tasks.complete(desk.caller, 1)
    old = await whole_log(desk)
    await desk.workspace.tasks.complete(desk.caller, 1)
    await desk.workspace.projects.rename("old", "old", actor=ACTOR)
    await desk.workspace.history.restore(desk.caller, old[-1].seq)
    await desk.workspace.prompts.recent(desk.caller, 10, 0)
    await desk.workspace.search.all_kinds(desk.caller, "old", ["prompt", "task"], 10)
    assert await whole_log(desk) == old


async def test_deleting_a_project_logs_everything_in_it_as_one_batch(desk: Desk) -> None:
    garden = await desk_at(desk.store, "garden")
    things: list[Any] = [await garden.prompt("p1"), await garden.prompt("p2"), await garden.resource("r")]
    things.append(await desk.workspace.projects.find("garden"))
    old = await whole_log(desk)
    await desk.workspace.projects.delete("garden", actor=ACTOR)
    added = (await whole_log(desk))[len(old) :]
    assert [(change.action, change.before, change.after) for change in added] == [
        ("delete", thing, None) for thing in things
    ]
    assert {change.batch for change in added} == {added[0].seq}
    assert {change.project for change in added} == {garden.project}
    await check_books(desk.store, garden.project)


async def test_a_page_of_changes_has_the_newest_first_of_this_project_and_of_no_project(desk: Desk) -> None:
    garden = await desk_at(desk.store, "garden")
    for number in range(6):
        await desk.prompt(f"p{number}")
        await garden.prompt(f"g{number}")
        await desk.task(f"t{number}")
    everything = await whole_log(desk)
    for here in (desk, garden):
        expected = [change for change in everything if change.project in (None, here.project)][::-1]
        assert await here.workspace.history.page(here.caller, limit=ALL) == expected
        paged: list[Change] = []
        while page := await here.workspace.history.page(
            here.caller, limit=4, before=paged[-1].seq if paged else None
        ):
            assert len(page) <= 4
            paged += page
        assert paged == expected
        for kind in ("project", "prompt", "resource", "task"):
            found = await here.workspace.history.page(here.caller, kind=kind, limit=ALL)
            assert found == [change for change in expected if change.kind == kind]


async def test_the_history_of_one_thing_is_found_by_its_id(desk: Desk) -> None:
    prompt = await desk.prompt("p")
    await desk.prompt("other")
    await desk.change_prompt("p", content="x")
    await desk.delete_prompt("p")
    expected = [change for change in await whole_log(desk) if change.entity == prompt.id][::-1]
    assert [change.action for change in expected] == ["delete", "update", "create"]
    assert await desk.workspace.history.page(desk.caller, entity=prompt.id) == expected
    assert await desk.workspace.history.page(desk.caller, kind="prompt", entity=prompt.id) == expected
    assert await desk.workspace.history.page(desk.caller, kind="task", entity=prompt.id) == []
    latest = await desk.read(lambda transaction: transaction.changes.latest("prompt", prompt.id))
    assert latest == expected[0]
    assert await desk.read(lambda transaction: transaction.changes.latest("task", prompt.id)) is None


async def test_an_id_that_things_of_two_kinds_have_finds_both_histories(desk: Desk) -> None:
    task = await desk.task("t")
    assert str(task.id) == str(desk.project)
    page = await desk.workspace.history.page(desk.caller, entity=str(task.id))
    assert [change.kind for change in page] == ["task", "project"]


@pytest.mark.parametrize("seq", [0, -1, 10**6, 2**63, -(2**63) - 1, 10**30])
async def test_a_number_that_no_change_has_finds_none(desk: Desk, seq: int) -> None:
    assert await desk.read(lambda transaction: transaction.changes.get(seq)) is None
    page = await desk.workspace.history.page(desk.caller, before=seq)
    assert len(page) == (1 if seq > 1 else 0)


async def test_a_change_is_found_by_its_number(desk: Desk) -> None:
    await furnish(desk)
    changes = await whole_log(desk)

    async def work(transaction: Transaction) -> list[Change | None]:
        return [await transaction.changes.get(change.seq) for change in changes]

    assert await desk.read(work) == changes
