"""The page with the graph of tasks: a picture, and the same as a list."""

from __future__ import annotations

import time
from typing import Any, Final

from minijinja import Markup

from dittybag.domain.task_graph import GraphTask, TaskGraph
from dittybag.domain.task_order import WorkOrder, critical_path, work_order
from dittybag.domain.tasks import NO_PROJECT
from dittybag.domain.text import QUERY_LENGTH
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.web.browser_requests import WebRequest, WebResponse
from dittybag.web.task_graph_svg import draw_graph
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
    # Other requests get their turn: 10,000 tasks around one take most of a second.
    values = await asyncio.to_thread(_graph_values, request, graph, now, root)
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
        **values,
    )


def _seconds_to_next_lapse(graph: TaskGraph, now: int) -> int | None:
    """Return after how many seconds the picture changes without an event, because a claim lapses."""
    ends = [task.held_until for task in graph.tasks.values() if task.held_until and task.held_until > now]
    return min(ends) // 1_000_000 - now // 1_000_000 + 1 if ends else None


def _graph_values(request: WebRequest, graph: TaskGraph, now: int, root: int | None) -> dict[str, Any]:
    """Return the picture and the list."""
    picture = draw_graph(graph, now, lambda number: request.link(f"/tasks/{number}"), selected=root)
    order = work_order(graph)
    return {
        "picture": picture,
        # Texts are escaped where they are drawn.
        "svg": Markup(picture.svg),
        "items": [(graph.tasks[number], _waits(graph, order, number)) for number in order.ids[:_MAX_LISTED]],
        "left_out_items": graph.left_out + max(len(order.ids) - _MAX_LISTED, 0),
        "critical": len(critical_path(graph)),
        "state_of": lambda task: task.state(now),
        "worker_of": lambda task: task.worker(now),
        "task_link": lambda number: request.link(f"/tasks/{number}"),
    }


def _waits(graph: TaskGraph, order: WorkOrder, number: int) -> list[GraphTask]:
    """Return the tasks of the graph that a task waits for."""
    return [graph.tasks[other] for other in order.blockers[number]][:_MAX_NAMED]
