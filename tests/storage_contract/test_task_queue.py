"""The queue of ready tasks: claims, fences, leases and what a task waits for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.errors import TaskCycle
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
