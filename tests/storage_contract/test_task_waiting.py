"""Waiting for a ready task: who waits is woken, and a cancelled call leaves nothing claimed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final

import pytest
from msgspec.structs import replace

from dittybag.domain.tasks import Task
from dittybag.services.task_queue import ClaimedTask, ClaimRequest
from tests.repetitions import SEED, repetitions
from tests.storage_contract.backends import Backend
from tests.storage_contract.store_session import OpenStore, StoreSession, open_session

REQUEST: Final = ClaimRequest(lease_seconds=600)
CANCELLATIONS: Final = repetitions(60, 2000)
#: In seconds: longer than anything takes unless something is wrong.
LONG: Final = 60


def agent(session: StoreSession, name: str = "agent") -> StoreSession:
    return StoreSession(session.workspace, replace(session.caller, actor=name, interface="mcp"))


def waiting(session: StoreSession, seconds: float = LONG) -> asyncio.Task[ClaimedTask | None]:
    call = session.workspace.task_waiting.claim_next(session.caller, REQUEST, seconds)
    return asyncio.get_running_loop().create_task(call)


async def add(session: StoreSession, title: str = "t", **fields: Any) -> Task:
    return await session.workspace.tasks.create(session.caller, title=title, **fields)


async def test_each_of_several_who_wait_gets_one_task(session: StoreSession, open_store: OpenStore) -> None:
    other = await open_session(await open_store())
    calls = [waiting(agent(each, f"a{number}")) for number in range(3) for each in (session, other)]
    numbers = [(await add(session)).id for _ in calls]
    found = await asyncio.gather(*calls)
    assert sorted(claimed.task.id for claimed in found if claimed is not None) == numbers


async def test_a_call_that_waits_is_woken_by_every_way_of_becoming_ready(session: StoreSession) -> None:
    tasks, queue = session.workspace.tasks, session.workspace.task_queue
    blocker = await add(session, status="review")
    blocked = await add(session, blocked_by=(blocker.id,))
    held = await add(session)
    claimed = await queue.claim(agent(session, "holder").caller, held.id, replace(REQUEST, connection="c"))
    assigned = await add(session, assignee="somebody")

    async def woken_by(change: Awaitable[Any], expected: int) -> None:
        call = waiting(agent(session))
        # It has looked, and sleeps.
        while not session.workspace.task_waiting._waiters:  # noqa: ASYNC110  # only steps pass
            await asyncio.sleep(0)
        await change
        found = await call
        assert found is not None
        assert found.task.id == expected
        await tasks.update(session.caller, expected, status="review")

    await woken_by(tasks.complete(session.caller, blocker.id), blocked.id)
    await woken_by(
        queue.release(agent(session, "holder").caller, held.id, fence=claimed.claim.fence), held.id
    )
    await woken_by(tasks.update(session.caller, assigned.id, assignee=None), assigned.id)
    await woken_by(tasks.update(session.caller, held.id, status="todo", assignee=None), held.id)
    again = await queue.claim(
        agent(session, "holder").caller, (await add(session)).id, replace(REQUEST, connection="d")
    )
    await woken_by(queue.release_connection(agent(session, "holder").caller, "d"), again.task.id)


async def test_a_call_that_waits_is_woken_when_a_claim_lapses(session: StoreSession) -> None:
    task = await add(session)
    holder = agent(session, "holder")
    claimed = await holder.workspace.task_queue.claim(
        holder.caller, task.id, replace(REQUEST, lease_seconds=1)
    )
    start = time.monotonic()
    found = await waiting(agent(session))
    assert found is not None
    assert (found.task.id, found.claim.holder) == (task.id, "agent")
    assert found.claim.claimed_at >= claimed.claim.until
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("reads", range(1, 4))
async def test_a_claim_that_lapses_between_two_looks_is_noticed(backend: Backend, reads: int) -> None:
    location = await backend.borrow()
    #: What the clock shows next, before it stands still at the end of the claim.
    moments: list[int] = []
    end = 2_000_000_000_000_000
    store = await backend.open(location, lambda: moments.pop() if moments else end)
    session = await open_session(store)
    task = await add(session)
    moments.append(end - REQUEST.lease_seconds * 1_000_000)
    holder = agent(session, "holder")
    claimed = await holder.workspace.task_queue.claim(holder.caller, task.id, REQUEST)
    assert claimed.claim.until == end
    moments += [end - 1] * reads
    async with asyncio.timeout(2):
        found = await waiting(agent(session))
    assert found is not None
    await store.close()
    await backend.give_back(location)


async def test_a_call_ends_without_a_task_when_its_time_is_over(session: StoreSession) -> None:
    passed: list[float] = []
    found = await session.workspace.task_waiting.claim_next(session.caller, REQUEST, 0.5, passed.append)
    assert found is None
    assert passed


@pytest.mark.timeout(120 + CANCELLATIONS)
async def test_a_call_that_is_cancelled_at_any_moment_leaves_nothing_claimed(session: StoreSession) -> None:
    rng = random.Random(SEED)
    task = await add(session)
    one = agent(session)
    found, duration = await _time_claim(one, task)
    claimed: ClaimedTask | None = found
    cancelled = 0
    for number in range(CANCELLATIONS):
        if claimed is not None:
            await one.workspace.task_queue.release(one.caller, task.id, fence=claimed.claim.fence)
        call = waiting(one, LONG if number % 4 else 0)
        await _pass(call, number, rng.uniform(0, 1.5 * duration))
        cancelled += call.cancel()
        if number % 3 == 0:
            # Again, while the first cancellation is being handled.
            await _pass(call, number // 3 % 8, rng.uniform(0, duration))
            call.cancel()
        claimed = None
        with suppress(asyncio.CancelledError):
            claimed = await call
        held = await session.workspace.task_queue.claims_of(session.caller, [task.id])
        assert bool(held) == (claimed is not None), f"cancellation {number}"
        assert not session.workspace.task_waiting._waiters
    assert cancelled > CANCELLATIONS / 3


async def _time_claim(one: StoreSession, task: Task) -> tuple[ClaimedTask, float]:
    """Claim a task a few times. Return the last claim, and how long the fastest took, in seconds."""
    durations: list[float] = []
    while True:
        start = time.perf_counter()
        claimed = await waiting(one)
        durations.append(time.perf_counter() - start)
        assert claimed is not None
        if len(durations) == 5:
            return claimed, min(durations)
        await one.workspace.task_queue.release(one.caller, task.id, fence=claimed.claim.fence)


async def _pass(call: asyncio.Task[object], number: int, seconds: float) -> None:
    """Let a call run for a few steps, or for some time."""
    for _ in range(number if number < 30 else 0):
        await asyncio.sleep(0)
    end = time.perf_counter() + (0 if number < 30 else seconds)
    while time.perf_counter() < end and not call.done():  # noqa: ASYNC110  # only steps pass
        await asyncio.sleep(0)
