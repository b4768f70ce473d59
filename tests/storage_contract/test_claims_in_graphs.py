"""Claims in the graph of tasks."""

from __future__ import annotations

from msgspec.structs import replace

from dittybag.services.task_queue import ClaimRequest
from tests.storage_contract.store_session import StoreSession


async def test_a_graph_says_who_holds_a_task_until_when(session: StoreSession) -> None:
    tasks, queue = session.workspace.tasks, session.workspace.task_queue
    held = await tasks.create(session.caller, title="held")
    free = await tasks.create(session.caller, title="free", blocked_by=(held.id,))
    agent = replace(session.caller, actor="agent", interface="mcp")
    claimed = await queue.claim(agent, held.id, ClaimRequest(lease_seconds=60))
    graph = await tasks.graph(session.caller)
    until, task = claimed.claim.until, graph.tasks[held.id]
    assert (task.holder, task.held_until) == (claimed.claim.holder, until)
    assert (task.state(until - 1), task.worker(until - 1)) == ("doing", claimed.claim.holder)
    # Then, somebody else can claim it.
    assert task.state(until) == "ready"
    assert graph.tasks[free.id].state(until) == "blocked"
