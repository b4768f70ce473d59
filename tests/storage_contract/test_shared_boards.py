"""Boards with the tasks of projects: what is visible, and what cards show."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dittybag.domain.queries import TaskView
from dittybag.domain.tasks import TaskFilter, TaskGrouping, TaskListing
from dittybag.services.task_queue import ClaimRequest
from tests.storage_contract.project_tasks import create_project_task
from tests.storage_contract.store_session import StoreSession, open_session


@pytest.mark.parametrize("by", [None, "priority", "project", "energy"])
@pytest.mark.parametrize("text", ["", "Dig"])
async def test_tasks_of_hidden_projects_are_on_no_board(
    session: StoreSession, by: TaskGrouping | None, text: str
) -> None:
    garden = await open_session(session.store, "garden")
    hidden = await open_session(session.store, "hidden")
    seen = [await session.task("Dig deep"), await create_project_task(garden, "Dig a hole")]
    await create_project_task(hidden, "Dig for gold")
    view = TaskView(shared=True, hidden=(hidden.project, 987654))
    _, columns = await session.read(
        lambda transaction: transaction.tasks.columns(
            session.caller.user,
            TaskFilter(text=text),
            by,
            None if by == "project" else [0] if by is None else [3, 1] if by == "priority" else ["medium"],
            span=range(5),
            order="priority",
            limit=10,
            view=view,
        )
    )
    assert {task.id for column in columns for task in column.tasks} == {task.id for task in seen}
    assert sum(column.total for column in columns) == 2


async def listed(session: StoreSession, number: int) -> TaskListing:
    columns = await session.workspace.tasks.status_board(
        session.caller, TaskFilter(), order="priority", limit=50
    )
    [found] = [task for column in columns for task in column.tasks if task.id == number]
    return found


async def test_a_card_has_parts_comments_and_how_its_task_was_claimed(session: StoreSession) -> None:
    garden = await open_session(session.store, "garden")
    tasks, queue = session.workspace.tasks, session.workspace.task_queue
    whole = await create_project_task(garden, "Plant")
    parts = [await create_project_task(garden, f"Part {number}", parent=whole.id) for number in range(3)]
    await tasks.complete(session.caller, parts[0].id)
    for text in ("one", "two"):
        await tasks.update(session.caller, whole.id, comment=text)
    card = await listed(session, whole.id)
    assert (card.parts, card.open_parts, card.comments, card.project_id) == (3, 2, 2, garden.project)
    assert (card.holder, card.claimed_via) == (None, None)
    agent = replace(session.caller, actor="agent", interface="mcp")
    await queue.claim(agent, parts[1].id, ClaimRequest())
    person = replace(session.caller, actor="ann", interface="cli")
    await queue.claim(person, parts[2].id, ClaimRequest())
    assert [(await listed(session, part.id)).claimed_via for part in parts[1:]] == ["mcp", "cli"]


async def test_the_details_of_a_task_name_what_belongs_to_it(session: StoreSession) -> None:
    tasks, queue = session.workspace.tasks, session.workspace.task_queue
    await session.prompt("greeting")
    whole = await session.task("Whole")
    before = await session.task("Before")
    number = (
        await tasks.create(
            session.caller,
            title="Middle",
            parent=whole.id,
            blocked_by=(before.id,),
            links=("greeting", "https://example.com"),
        )
    ).id
    part = await tasks.create(session.caller, title="Part", parent=number)
    after = await tasks.create(session.caller, title="After", blocked_by=(number,))
    found = await tasks.details(session.caller, number)
    assert found.parent is not None
    assert (found.parent.id, found.waits_for, found.writable) == (whole.id, 2, True)
    assert [[task.id for task in group] for group in (found.blockers, found.blocked, found.parts)] == [
        [before.id],
        [after.id],
        [part.id],
    ]
    assert list(found.linked) == ["greeting"]
    assert found.claim is None
    await tasks.complete_all(session.caller, [before.id, part.id])
    agent = replace(session.caller, actor="agent", interface="mcp")
    claimed = await queue.claim(agent, number, ClaimRequest())
    found = await tasks.details(session.caller, number)
    assert (found.claim, found.claimed_via) == (claimed.claim, "mcp")
    assert (found.part_counts.total, found.part_counts.ended, found.waits_for) == (1, 1, 0)
