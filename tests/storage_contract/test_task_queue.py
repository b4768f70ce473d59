"""The queue of ready tasks: claims, fences, leases and what a task waits for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.errors import ClaimLost, TaskClaimed, TaskCycle, TaskNotReady
from dittybag.domain.tasks import Task
from dittybag.services.task_queue import ClaimedTask, ClaimRequest
from tests.storage_contract.store_session import StoreSession

REQUEST = ClaimRequest(lease_seconds=60)


def agent(session: StoreSession, name: str = "agent") -> StoreSession:
    return StoreSession(session.workspace, replace(session.caller, actor=name, interface="mcp"))


async def add(session: StoreSession, title: str, **fields: Any) -> Task:
    return await session.workspace.tasks.create(session.caller, title=title, **fields)


async def claim(session: StoreSession, request: ClaimRequest = REQUEST) -> ClaimedTask | None:
    return await session.workspace.task_queue.claim_next(session.caller, request)


async def claimed_title(session: StoreSession) -> str | None:
    found = await claim(session)
    return None if found is None else found.task.title


async def test_the_best_ready_task_is_claimed_first(session: StoreSession) -> None:
    await add(session, "old")
    await add(session, "late", due_date="2030-01-02")
    await add(session, "early", due_date="2030-01-01")
    await add(session, "urgent", priority=5)
    await add(session, "assigned", priority=5, assignee="ann")
    await add(session, "in review", priority=5, status="review")
    one = agent(session)
    assert [await claimed_title(one) for _ in range(5)] == ["urgent", "early", "late", "old", None]


async def test_a_task_is_ready_when_all_that_it_waits_for_has_ended(session: StoreSession) -> None:
    first, second = await add(session, "first"), await add(session, "second")
    last = await add(session, "last", priority=5, blocked_by=(first.id, second.id))
    part = await add(session, "part", parent=last.id)
    one = agent(session)
    for expected in ("first", "second", "part", "last"):
        found = await claim(one)
        assert found is not None
        assert found.task.title == expected
        if expected == "last":
            assert [task.id for task in found.done_before] == [first.id, second.id, part.id]
        await one.workspace.task_queue.finish(one.caller, found.task.id, fence=found.claim.fence)
    assert await claim(one) is None


async def test_a_reopened_blocker_blocks_again(session: StoreSession) -> None:
    blocker = await add(session, "blocker")
    await add(session, "blocked", priority=5, blocked_by=(blocker.id,))
    tasks = session.workspace.tasks
    await tasks.complete(session.caller, blocker.id)
    await tasks.reopen_all(session.caller, [blocker.id])
    assert await claimed_title(agent(session)) == "blocker"


async def test_a_deleted_blocker_does_not_block_until_it_is_restored(session: StoreSession) -> None:
    blocker = await add(session, "blocker")
    await add(session, "blocked", priority=5, blocked_by=(blocker.id,))
    await session.workspace.tasks.delete(session.caller, blocker.id)
    deleted = await session.newest_change()
    assert (await session.workspace.task_queue.ready(session.caller, REQUEST, limit=9)).total == 1
    await session.undo(deleted.seq)
    assert await claimed_title(agent(session)) == "blocker"


async def test_an_agent_has_to_name_the_fence(session: StoreSession) -> None:
    await add(session, "t")
    one, other = agent(session), agent(session, "other")
    found = await claim(one)
    assert found is not None
    update = session.workspace.tasks.update
    task = found.task.id
    assert found.claim.fence == (await session.newest_change()).seq
    with pytest.raises(TaskClaimed, match="held by 'agent'"):
        await update(other.caller, task, title="x")
    with pytest.raises(TaskClaimed):
        await update(one.caller, task, title="x")
    with pytest.raises(ClaimLost):
        await update(other.caller, task, title="x", fence=found.claim.fence - 1)
    with pytest.raises(TaskClaimed):
        await session.workspace.task_queue.claim(other.caller, task, REQUEST)
    assert (await update(one.caller, task, title="mine", fence=found.claim.fence)).title == "mine"
    # A person may take it away.
    await update(session.caller, task, status="todo", assignee="")
    with pytest.raises(ClaimLost, match="nobody holds it"):
        await update(one.caller, task, title="x", fence=found.claim.fence)


async def test_a_connection_that_ends_releases_its_tasks(session: StoreSession) -> None:
    await add(session, "t")
    one = agent(session)
    assert await claim(one, replace(REQUEST, connection="c")) is not None
    assert await one.workspace.task_queue.release_connection(one.caller, "other") == 0
    assert await one.workspace.task_queue.release_connection(one.caller, "c") == 1
    assert await claimed_title(agent(session, "next")) == "t"


EDGES: dict[str, dict[str, str]] = {
    "a blocker": {"first": "blocked_by third"},
    "a parent": {"third": "parent first", "first": "blocked_by third"},
    "itself": {"second": "blocked_by second"},
    "its own part": {"first": "parent first"},
}


@pytest.mark.parametrize("case", EDGES)
async def test_a_cycle_is_refused_and_named(session: StoreSession, case: str) -> None:
    tasks = {"first": await add(session, "first")}
    tasks["second"] = await add(session, "second", blocked_by=(tasks["first"].id,))
    tasks["third"] = await add(session, "third", blocked_by=(tasks["second"].id,))
    before = await session.newest_change()
    for title, edge in EDGES[case].items():
        field, other = edge.split()
        value: Any = tasks[other].id
        fields: dict[str, Any] = {field: (value,) if field == "blocked_by" else value}
        with pytest.raises(TaskCycle) as cycle:
            await session.workspace.tasks.update(session.caller, tasks[title].id, **fields)
        assert f"task {tasks[title].id} '{title}'" in str(cycle.value)
    assert await session.newest_change() == before


async def test_a_new_task_must_not_close_a_cycle(session: StoreSession) -> None:
    first = await add(session, "first")
    second = await add(session, "second", blocked_by=(first.id,))
    with pytest.raises(TaskCycle, match="the new task"):
        await add(session, "new", blocked_by=(second.id,), parent=first.id)


async def test_what_waits_or_is_done_cannot_be_claimed(session: StoreSession) -> None:
    first = await add(session, "first")
    second = await add(session, "second", blocked_by=(first.id,))
    queue, caller = session.workspace.task_queue, agent(session).caller
    with pytest.raises(TaskNotReady, match=f"waits for task {first.id}"):
        await queue.claim(caller, second.id, REQUEST)
    await session.workspace.tasks.complete(session.caller, first.id)
    with pytest.raises(TaskNotReady, match="is done"):
        await queue.claim(caller, first.id, REQUEST)
    assert (await queue.claim(caller, second.id, REQUEST)).claim.holder == "agent"


async def test_a_long_cycle_is_refused_and_named_by_its_first_tasks(session: StoreSession) -> None:
    chain = [await add(session, "0")]
    for number in range(1, 60):
        chain.append(await add(session, str(number), blocked_by=(chain[-1].id,)))
    with pytest.raises(TaskCycle) as cycle:
        await session.workspace.tasks.update(session.caller, chain[0].id, blocked_by=(chain[-1].id,))
    assert cycle.value.tasks[0] == f"task {chain[0].id} '0'"
    assert cycle.value.tasks[1] == f"task {chain[-1].id} '59'"
    assert cycle.value.tasks[-1] == "40 more tasks"
    # An edge between its ends in the other direction closes no cycle.
    await session.workspace.tasks.update(session.caller, chain[-1].id, blocked_by=(chain[-2].id, chain[0].id))
