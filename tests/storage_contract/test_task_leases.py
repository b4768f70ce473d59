"""Leases, to the microsecond: the clock of the store is handed in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest
from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.claims import MICROSECONDS
from dittybag.domain.errors import ClaimLost, TaskClaimed
from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimedTask, ClaimRequest
from dittybag.services.workspace import Workspace
from tests.storage_contract.backends import Backend

LEASE: Final = 60
REQUEST: Final = ClaimRequest(lease_seconds=LEASE, connection="c")
PERSON: Final = Caller(1, "ann")
ONE, OTHER = (Caller(1, name, interface="mcp") for name in ("one", "other"))


class Clock(Struct):
    """A clock that stands still."""

    now: int = 2_000_000_000_000_000


class Held(Struct, frozen=True):
    """A task that is held since now."""

    clock: Clock
    workspace: Workspace
    claimed: ClaimedTask

    @property
    def task(self) -> int:
        return self.claimed.task.id

    @property
    def fence(self) -> int:
        return self.claimed.claim.fence


@pytest.fixture
async def held(backend: Backend) -> AsyncIterator[Held]:
    clock = Clock()
    location = await backend.borrow()
    store = await backend.open(location, lambda: clock.now)
    workspace = Workspace(store)
    await workspace.tasks.create(PERSON, title="t")
    claimed = await workspace.task_queue.claim_next(ONE, REQUEST)
    assert claimed is not None
    yield Held(clock, workspace, claimed)
    await store.close()
    await backend.give_back(location)


async def test_a_claim_lasts_until_the_last_microsecond(held: Held) -> None:
    queue = held.workspace.task_queue
    held.clock.now += LEASE * MICROSECONDS - 1
    assert not await queue.is_any_ready(OTHER, REQUEST)
    assert await queue.next_lapse(OTHER) == 1
    with pytest.raises(TaskClaimed):
        await queue.claim(OTHER, held.task, ClaimRequest())
    assert await queue.claims_of(PERSON, [held.task])
    await held.workspace.tasks.update(ONE, held.task, fence=held.fence, title="in time")


async def test_a_claim_has_lapsed_at_its_end(held: Held) -> None:
    queue, tasks = held.workspace.task_queue, held.workspace.tasks
    held.clock.now += LEASE * MICROSECONDS
    with pytest.raises(ClaimLost, match="nobody holds it"):
        await tasks.update(ONE, held.task, fence=held.fence, title="late")
    assert await queue.claims_of(PERSON, [held.task]) == {}
    assert await queue.renew(ONE, "c") == 0
    assert await queue.release_connection(ONE, "c") == 0
    again = await queue.claim_next(OTHER, REQUEST)
    assert again is not None
    assert (again.claim.holder, again.claim.fence > held.fence) == ("other", True)
    with pytest.raises(ClaimLost, match="'other' has held it"):
        await tasks.update(ONE, held.task, fence=held.fence, title="late")


async def test_every_write_of_the_holder_renews_its_claim(held: Held) -> None:
    tasks, queue = held.workspace.tasks, held.workspace.task_queue
    for _ in range(3):
        held.clock.now += LEASE * MICROSECONDS - 1
        await tasks.update(ONE, held.task, fence=held.fence, comment="progress")
        held.clock.now += LEASE * MICROSECONDS - 1
        assert await queue.renew(ONE, "c") == 1
        held.clock.now += LEASE * MICROSECONDS - 1
        await tasks.update(ONE, held.task, fence=held.fence)
    held.clock.now += LEASE * MICROSECONDS
    assert await queue.is_any_ready(OTHER, REQUEST)


async def test_a_task_that_is_given_back_is_assigned_to_nobody(held: Held) -> None:
    queue = held.workspace.task_queue
    released = await queue.release(ONE, held.task, fence=held.fence, comment="half done")
    assert (released.status, released.assignee) == ("todo", None)
    assert [(comment.author, comment.text) for comment in released.comments] == [("one", "half done")]
    claimed = await queue.claim_next(OTHER, replace(REQUEST, connection="d"))
    assert claimed is not None
    assert claimed.claim.holder == "other"
