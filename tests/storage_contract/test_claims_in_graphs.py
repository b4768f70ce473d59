"""Claims in the graph of tasks, and which tasks it keeps."""

from __future__ import annotations

from msgspec.structs import replace

from dittybag.domain.tasks import TaskFilter
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


async def test_of_too_many_tasks_a_graph_keeps_those_that_wait_and_what_they_wait_for(
    session: StoreSession,
) -> None:
    tasks = session.workspace.tasks
    urgent = [await tasks.create(session.caller, title=f"urgent {n}", priority=5) for n in range(10)]
    first = await tasks.create(session.caller, title="first", priority=1)
    then = await tasks.create(session.caller, title="then", priority=1, blocked_by=(first.id,))
    graph = await tasks.graph(session.caller, limit=8)
    assert list(graph.tasks) == [*(task.id for task in urgent[:6]), first.id, then.id]
    assert graph.left_out == 4
    board = await tasks.status_board(session.caller, TaskFilter(), order="priority", limit=3)
    filtered = await tasks.status_board(session.caller, TaskFilter(text="t"), order="priority", limit=3)
    # Both ways to read a board agree.
    assert filtered == board
    assert [(column.key, column.total) for column in board][:3] == [
        ("ready", 11),
        ("doing", 0),
        ("blocked", 1),
    ]
