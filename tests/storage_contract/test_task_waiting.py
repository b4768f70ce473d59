"""Waiting for ready tasks: whatever moment a call is cancelled at, nothing stays claimed for it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from msgspec.structs import replace

from dittybag.services.task_queue import ClaimedTask, ClaimRequest
from tests.storage_contract.store_session import StoreSession

REQUEST = ClaimRequest(lease_seconds=60)


@pytest.mark.parametrize("wait_seconds", [0, 60])
async def test_a_call_that_is_cancelled_claims_nothing(session: StoreSession, wait_seconds: int) -> None:
    caller = replace(session.caller, interface="mcp")
    workspace = session.workspace
    await workspace.tasks.create(caller, title="A")
    claimed: ClaimedTask | None = None
    steps = 0
    while claimed is None:
        call = asyncio.ensure_future(workspace.task_waiting.claim_next(caller, REQUEST, wait_seconds))
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        with suppress(asyncio.CancelledError):
            claimed = await call
        if claimed is None:
            ready = await workspace.task_queue.ready(caller, REQUEST, limit=10)
            assert [task.title for task in ready.tasks] == ["A"], steps
        steps = 2 * steps + 1 if steps > 20 else steps + 1
    assert claimed.task.title == "A"
