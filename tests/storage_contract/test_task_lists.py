"""Lists of tasks of a team, tasks with those around them, and taking tasks away."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.errors import AmbiguousReference, ClaimLost, Invalid, TaskClaimed, TaskNotFound
from dittybag.domain.queries import TaskQuery
from dittybag.domain.tasks import Task
from dittybag.services.task_queue import ClaimRequest
from tests.storage_contract.store_session import StoreSession

REQUEST = ClaimRequest(lease_seconds=60)


def agent(session: StoreSession) -> StoreSession:
    return StoreSession(session.workspace, replace(session.caller, actor="agent", interface="mcp"))


async def add(session: StoreSession, title: str, **fields: Any) -> Task:
    return await session.workspace.tasks.create(session.caller, title=title, **fields)


async def titles(session: StoreSession, **conditions: Any) -> list[str]:
    query = TaskQuery(user=session.caller.user, **conditions)
    found = await session.workspace.tasks.page(session.caller, query)
    total, searched = await session.workspace.store.read(lambda transaction: transaction.tasks.search(query))
    assert total == len(searched) or query.limit is not None
    assert searched == [task for task in found if task in searched]
    return [task.title for task in found]


async def test_tasks_are_listed_by_status_assignee_labels_and_parent(session: StoreSession) -> None:
    a = await add(session, "a", labels=("x", "y"), assignee="ann")
    await add(session, "b", labels=("x", "'"), status="doing", parent=a.id)
    await add(session, "c", labels=("xy",), status="dropped", parent=a.id, assignee="ann")
    assert await titles(session) == ["a", "b", "c"]
    assert await titles(session, completed=False) == ["a", "b"]
    assert await titles(session, statuses=("dropped", "doing")) == ["b", "c"]
    assert await titles(session, labels=("x",)) == ["a", "b"]
    assert await titles(session, labels=("x", "y")) == ["a"]
    assert await titles(session, labels=("'",)) == ["b"]
    assert await titles(session, assignee="ann") == ["a", "c"]
    assert await titles(session, assignee="ann", parent=a.id) == ["c"]
    for missing in (10**30, -1):
        with pytest.raises(Invalid, match=rf"parent: task {missing} does not exist"):
            await titles(session, parent=missing)


async def test_a_task_is_shown_with_those_around_it(session: StoreSession) -> None:
    whole = await add(session, "whole")
    first = await add(session, "first", parent=whole.id, status="done")
    second = await add(session, "second", parent=whole.id, blocked_by=(first.id,))
    third = await add(session, "third", blocked_by=(second.id,))
    claimed = await session.workspace.task_queue.claim(session.caller, second.id, REQUEST)
    shown = await session.workspace.tasks.details(session.caller, second.id)
    assert (shown.task, shown.claim) == (claimed.task, claimed.claim)
    assert shown.parent is not None
    assert shown.parent.id == whole.id
    assert [task.id for task in shown.blockers] == [first.id]
    assert ([task.id for task in shown.blocked], shown.parts) == ([third.id], [])
    around = await session.workspace.tasks.details(session.caller, whole.id)
    assert [(part.id, part.status) for part in around.parts] == [(first.id, "done"), (second.id, "doing")]
    assert (around.blockers, around.blocked, around.parent, around.claim) == ([], [], None, None)
    with pytest.raises(TaskNotFound):
        await session.workspace.tasks.details(session.caller, 10**30)


async def test_people_take_tasks_away_and_agents_do_not(session: StoreSession) -> None:
    task = await add(session, "a")
    one, queue = agent(session), session.workspace.task_queue
    held = await queue.claim(one.caller, task.id, REQUEST)
    with pytest.raises(TaskClaimed):
        await queue.take(replace(one.caller, actor="another"), task.id, REQUEST)
    taken = await queue.take(session.caller, task.id, REQUEST)
    assert (taken.claim.holder, taken.task.status) == (session.caller.actor, "doing")
    with pytest.raises(ClaimLost):
        await queue.finish(one.caller, task.id, fence=held.claim.fence)


async def test_tasks_are_finished_all_or_none_in_one_batch(session: StoreSession) -> None:
    a, b = await add(session, "a"), await add(session, "b")
    queue = session.workspace.task_queue
    with pytest.raises(TaskNotFound):
        await queue.finish_all(session.caller, [a.id, b.id, 10**9], comment="x")
    assert await session.workspace.tasks.get(session.caller, a.id) == a
    marks = await queue.finish_all(session.caller, [a.id, a.id, b.id], status="dropped")
    assert [(mark.task.status, mark.changed) for mark in marks] == [("dropped", True)] * 2
    again = await queue.finish_all(session.caller, [a.id], status="dropped")
    assert [mark.changed for mark in again] == [False]
    with pytest.raises(TaskClaimed):
        await _finish_as_agent(session, b)


async def _finish_as_agent(session: StoreSession, task: Task) -> None:
    queue = session.workspace.task_queue
    await session.workspace.tasks.reopen_all(session.caller, [task.id])
    await queue.claim(session.caller, task.id, REQUEST)
    await queue.finish_all(agent(session).caller, [task.id])


async def test_tasks_are_listed_in_every_order_and_by_several_priorities(session: StoreSession) -> None:
    due: dict[str, Any] = {"b": "2026-03-02", "c": "2026-03-01T10:00:00Z", "D": "2026-03-01"}
    for title, priority in (("b", 5), ("a", 4), ("D", 5), ("ee", 1), ("c", 4)):
        await add(session, title, priority=priority, due_date=due.get(title, ""))
    [first, *_] = await session.workspace.tasks.page(session.caller, TaskQuery(user=session.caller.user))
    await session.workspace.tasks.update(session.caller, first.id, notes="x")
    expected = {
        "priority": "b D a c ee",
        "queue": "D b c a ee",
        "due": "D c b a ee",
        "created": "c ee D a b",
        "updated": "b c ee D a",
        "title": "a b c D ee",
        "shortest": "b a D c ee",
    }
    for order, wanted in expected.items():
        assert await titles(session, order=order) == wanted.split(), order
        assert await titles(session, order=order, limit=2, offset=1) == wanted.split()[1:3], order
    assert await titles(session, order="title", is_reversed=True) == ["ee", "D", "c", "b", "a"]
    assert await titles(session, order="due", is_reversed=True) == ["b", "c", "D", "ee", "a"]
    assert await titles(session, priorities=(5, 1)) == ["b", "D", "ee"]
    assert await titles(session, priorities=(5, 1), order="queue", limit=2) == ["D", "b"]


async def test_among_many_titles_only_a_whole_one_names_a_task(session: StoreSession) -> None:
    async def find(title: str) -> str | None:
        found = await session.workspace.tasks.find_named(session.caller, title)
        return None if found is None else found.title

    for number in range(210):
        await session.task(f"Mend sail {number}")
    await session.task("sail")
    for title in ("mend", "sail 2"):
        with pytest.raises(AmbiguousReference, match=r"matches several items: .*"):
            await find(title)
    assert (await find("SAIL"), await find("mend  sail 209")) == ("sail", "Mend sail 209")
    assert (await find("209"), await find("rope"), await find(" ")) == ("Mend sail 209", None, None)
    await add(session, "Sail", status="done")
    assert await find("sail") == "sail"
