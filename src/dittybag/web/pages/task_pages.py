"""The task board, the task list and the task statistics."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from dittybag.domain.errors import NotFound
from dittybag.domain.tasks import NO_PROJECT, TaskGrouping, TaskListing, TaskOrder
from dittybag.services.task_service import TaskBoard
from dittybag.web.browser_requests import Route, WebRequest, WebResponse
from dittybag.web.pages import task_actions, task_form
from dittybag.web.task_charts import first_day, statistics
from dittybag.web.task_display import (
    DUE_FILTERS,
    ENERGY_NAMES,
    KEYS,
    ORDERS,
    VIEWS,
    BoardColumn,
    TaskCard,
    column_filter,
    column_title,
    due_of,
    local_now,
    priorities,
    read_filters,
    to_task_filter,
)
from dittybag.web.template_rendering import render_page

#: Maximum numbers of tasks per column and of columns per page.
_MAX_CARDS: Final = 20
_MAX_COLUMNS: Final = 8
_PER_PAGE: Final = 50
#: Maximum number of suggested projects.
_MAX_SUGGESTED: Final = 200


async def show_tasks(request: WebRequest) -> WebResponse:
    """Show open or completed tasks as a board, as a list or as charts."""
    requested = request.query.get("view")
    view = requested if requested in VIEWS else "board"
    build = {"board": _board_values, "list": _list_values, "stats": _stats_values}[view]
    filters = read_filters(request.query)
    values: dict[str, Any] = {
        "view": view,
        "by": _group_key(request),
        "completed": request.query.get("done") == "1",
        "filters": filters,
        "sort": _sort_order(request),
        "address": request.with_query(notice=None),
        "tab": lambda **changes: request.with_query(notice=None, page=None, first=None, **changes),
        **await build(request),
    }
    if request.is_fragment:
        return render_page(request, "tasks/task_region.html", **values)
    return render_page(
        request,
        "tasks/task_index.html",
        **values,
        notice=await _find_notice(request),
        priorities=priorities(),
        energies=ENERGY_NAMES,
        dues=DUE_FILTERS,
    )


def _group_key(request: WebRequest) -> TaskGrouping:
    return next((key for key in KEYS if key == request.query.get("by")), KEYS[0])


def _sort_order(request: WebRequest) -> TaskOrder:
    if request.query.get("done") == "1":
        return "done"
    return ORDERS.get(request.query.get("sort", ""), "priority")


async def _board_values(request: WebRequest) -> dict[str, Any]:
    now, by = local_now(), _group_key(request)
    is_done = request.query.get("done") == "1"
    first = request.int_parameter("first", 0, 0, 10**6)
    board = await request.workspace.tasks.board(
        request.caller,
        to_task_filter(read_filters(request.query), now, completed=is_done),
        by,
        order="done" if is_done else "priority",
        limit=_MAX_CARDS,
        width=_MAX_COLUMNS,
        first=first,
    )
    return {
        "columns": _board_columns(request, board, by, now),
        "total": sum(column.total for column in board.columns),
        "earlier": request.with_query(first=max(first - _MAX_COLUMNS, 0) or None, notice=None)
        if first
        else "",
        "later": request.with_query(first=first + _MAX_COLUMNS, notice=None)
        if first + _MAX_COLUMNS < board.count
        else "",
        "hidden_columns": board.count - len(board.columns),
    }


def _board_columns(
    request: WebRequest, board: TaskBoard, by: TaskGrouping, now: datetime
) -> list[BoardColumn]:
    return [
        BoardColumn(
            value=str(column.key),
            title=column_title(by, column.key),
            total=column.total,
            cards=_cards(column.tasks, now),
            address=request.with_query(
                view="list", notice=None, first=None, by=None, **column_filter(by, column.key)
            ),
        )
        for column in board.columns
    ]


def _cards(tasks: Iterable[TaskListing], now: datetime) -> list[TaskCard]:
    return [TaskCard(task, due_of(task, now)) for task in tasks]


async def _list_values(request: WebRequest) -> dict[str, Any]:
    now = local_now()
    number = request.int_parameter("page", 1, 1, 10**6)
    found = await request.workspace.tasks.listing(
        request.caller,
        to_task_filter(read_filters(request.query), now, completed=request.query.get("done") == "1"),
        order=_sort_order(request),
        limit=_PER_PAGE,
        offset=(number - 1) * _PER_PAGE,
    )
    return {
        "cards": _cards(found.tasks, now),
        "total": found.total,
        "current": number,
        "last": -(-found.total // _PER_PAGE),
        "to": lambda number: request.with_query(page=number, notice=None),
    }


async def _stats_values(request: WebRequest) -> dict[str, Any]:
    now, tasks = local_now(), request.workspace.tasks
    since = int(first_day(now).timestamp()) * 1_000_000
    groups = await tasks.groups(request.caller)
    quarters = await tasks.completion_counts(request.caller, since)
    return {
        "stats": statistics(groups, quarters, now.date()),
        "list_link": lambda **filters: f"{request.path}?{urlencode({'view': 'list', **filters})}",
        "no_project": NO_PROJECT,
    }


async def _find_notice(request: WebRequest) -> dict[str, Any] | None:
    """Return the notice about the change in the query, if it is still the latest change of its task."""
    task, _, seq = request.query.get("notice", "").partition(".")
    if not (task.isdecimal() and len(task) < 19):
        return None
    try:
        change = await request.workspace.tasks.latest_change(request.caller, int(task))
    except NotFound:
        return None
    return task_actions.notice_for(change) if str(change.seq) == seq else None


async def suggest_projects(request: WebRequest) -> WebResponse:
    """Return the projects of tasks as options, those with the most tasks first."""
    totals: dict[str, int] = {}
    for group in await request.workspace.tasks.groups(request.caller):
        if group.project:
            totals[group.project] = totals.get(group.project, 0) + group.total
    names = sorted(totals, key=lambda name: (-totals[name], name))[:_MAX_SUGGESTED]
    return render_page(request, "tasks/project_options.html", names=names)


routes: Final = (
    Route("GET", "/tasks", show_tasks),
    Route("GET", "/tasks/projects", suggest_projects),
    *task_actions.routes,
    *task_form.routes,
)
