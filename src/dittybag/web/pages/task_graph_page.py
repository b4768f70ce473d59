"""The page with the graph of tasks: a picture, and the same as a list."""

from __future__ import annotations

import time
from typing import Any, Final

from dittybag.domain.task_graph import GraphTask, TaskGraph
from dittybag.domain.tasks import NO_PROJECT
from dittybag.domain.text import QUERY_LENGTH
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.web.browser_requests import WebRequest, WebResponse
from dittybag.web.task_graph_layout import edges_of, lay_out
from dittybag.web.template_rendering import render_page

#: Maximum number of tasks from which those of the picture are chosen.
_MAX_TASKS: Final = 1000
#: Maximum number of tasks in the list below the picture.
_MAX_LISTED: Final = 300
#: Maximum number of tasks named in one line of the list.
_MAX_NAMED: Final = 20


async def show_graph(request: WebRequest) -> WebResponse:
    """Show the tasks of a project, or those around one task, with what waits for what."""
    project = request.query.get("project", "").strip()[:QUERY_LENGTH]
    root = request.int_parameter("task") or None
    shows_ended = request.query.get("ended") == "1"
    graph = await request.workspace.tasks.graph(
        request.caller,
        project=("" if project == NO_PROJECT else project) if project else None,
        root=root,
        ended=shows_ended,
        limit=_MAX_TASKS,
    )
    now = time.time_ns() // 1000
    template = "tasks/task_graph_region.html" if request.is_fragment else "tasks/task_graph.html"
    return render_page(
        request,
        template,
        project_filter=project,
        root=None if root is None else graph.tasks.get(root),
        shows_ended=shows_ended,
        graph=graph,
        seconds=_seconds_to_next_lapse(graph, now),
        address=request.with_query(),
        state_of=lambda task: task.state(now),
        worker_of=lambda task: task.worker(now),
        describe_state=lambda task: task.describe_state(now),
        task_link=lambda number: request.link(f"/tasks/{number}"),
        # Other requests get their turn: 10,000 tasks around one take most of a second.
        **await asyncio.to_thread(_graph_values, graph),
    )


def _seconds_to_next_lapse(graph: TaskGraph, now: int) -> int | None:
    """Return after how many seconds the picture changes without an event, because a claim lapses."""
    ends = [task.held_until for task in graph.tasks.values() if task.held_until and task.held_until > now]
    return min(ends) // 1_000_000 - now // 1_000_000 + 1 if ends else None


def _graph_values(graph: TaskGraph) -> dict[str, Any]:
    """Return the picture and the list."""
    listed = list(graph.tasks.values())[:_MAX_LISTED]
    waits: dict[int, list[GraphTask]] = {}
    for edge in edges_of(graph.tasks.values()):
        waits.setdefault(edge.target, []).append(graph.tasks[edge.source])
    return {
        "picture": lay_out(graph),
        "items": [(task, waits.get(task.id, [])[:_MAX_NAMED]) for task in listed],
        "left_out_items": graph.left_out + len(graph.tasks) - len(listed),
    }
