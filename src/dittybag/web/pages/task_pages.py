"""The task board and the task list."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from dittybag.domain.tasks import (
    NO_PROJECT,
    TaskColumn,
    TaskGrouping,
    TaskListing,
    TaskOrder,
)
from dittybag.web.browser_requests import PER_PAGE, WebRequest, WebResponse
from dittybag.web.filter_chips import filter_chips, without_filters
from dittybag.web.task_display import (
    DUE_FILTERS,
    KEYS,
    PRIORITY_TITLES,
    STATUS_COLUMNS,
    STATUS_NAMES,
    BoardGrouping,
    column_title,
    describe_filters,
    due_of,
    local_now,
    read_filters,
    read_status,
    suggestions,
    to_task_filter,
)
from dittybag.web.task_holders import holder_of
from dittybag.web.template_rendering import render_page

#: Maximum numbers of tasks per column and of columns per page.
_MAX_CARDS: Final = 20
_MAX_COLUMNS: Final = 8
_VIEWS: Final = ("board", "list")
_ORDERS: Final[tuple[TaskOrder, ...]] = ("priority", "due", "newest")
#: Maximum number of suggested projects.
_MAX_SUGGESTED: Final = 200


async def show_tasks(request: WebRequest) -> WebResponse:
    """Show tasks as a board or a list."""
    view = request.chosen("view", _VIEWS, "board")
    build = {"board": _board_values, "list": _list_values}[view]
    filters, status = read_filters(request), read_status(request)
    values: dict[str, Any] = {
        "view": view,
        "by": request.chosen("by", KEYS, KEYS[0]),
        "listed_status": status,
        "filters": filters,
        "is_filtered": any(filters.values()),
        "chips": filter_chips(request, describe_filters(filters, status)),
        "clear": without_filters(request, [*filters, "status"]),
        "sort": _sort_order(request),
        "address": request.with_query(),
        "tab": lambda **changes: request.with_query(page=None, first=None, **changes),
        **await build(request),
    }
    if request.is_fragment:
        return render_page(request, "tasks/task_region.html", **values)
    return render_page(
        request,
        "tasks/task_index.html",
        **values,
        priorities=PRIORITY_TITLES,
        statuses=STATUS_NAMES,
        dues=DUE_FILTERS,
    )


def _sort_order(request: WebRequest) -> TaskOrder:
    is_done = read_status(request) == "done"
    return "done" if is_done else request.chosen("sort", _ORDERS, "priority")


async def _board_values(request: WebRequest) -> dict[str, Any]:
    by = request.chosen("by", KEYS, KEYS[0])
    return await (_status_board_values(request) if by == "status" else _grouped_values(request, by))


async def _status_board_values(request: WebRequest) -> dict[str, Any]:
    """Return the columns ready, doing, blocked, review and done."""
    columns = await request.workspace.tasks.status_board(
        request.caller,
        to_task_filter(read_filters(request), local_now(), None),
        order="priority",
        limit=_MAX_CARDS,
    )
    links = {"ready": "todo", "blocked": "todo"}
    return {
        **await _column_values(request, columns, "status"),
        "column_link": lambda key: request.with_query(view="list", by=None, status=links.get(key, key)),
        # The title of a blocked task's column is not that of its status.
        "moves": [(status, title) for title, status in STATUS_COLUMNS.values() if status is not None],
        "earlier": None,
        "later": None,
        "hidden_columns": 0,
    }


async def _grouped_values(request: WebRequest, by: TaskGrouping) -> dict[str, Any]:
    """Return a column for each priority or project."""
    status = read_status(request)
    first = request.int_parameter("first", maximum=10**6)
    board = await request.workspace.tasks.board(
        request.caller,
        to_task_filter(read_filters(request), local_now(), status),
        by,
        order="done" if status == "done" else "priority",
        limit=_MAX_CARDS,
        width=_MAX_COLUMNS,
        first=first,
    )
    return {
        **await _column_values(request, board.columns, by),
        "column_link": lambda key: request.with_query(
            view="list", first=None, by=None, **{by: key or NO_PROJECT}
        ),
        "moves": [(column.key, column_title(by, column.key)) for column in board.columns],
        "earlier": first and request.with_query(first=max(first - _MAX_COLUMNS, 0) or None),
        "later": first + _MAX_COLUMNS < board.count and request.with_query(first=first + _MAX_COLUMNS),
        "hidden_columns": board.count - len(board.columns),
    }


async def _column_values(
    request: WebRequest, columns: Sequence[TaskColumn], by: BoardGrouping
) -> dict[str, Any]:
    return {
        "columns": columns,
        "total": sum(column.total for column in columns),
        "title": partial(column_title, by),
        "targets": {key: status for key, (_, status) in STATUS_COLUMNS.items()},
        **await _card_values(request, [task for column in columns for task in column.tasks]),
    }


async def _card_values(request: WebRequest, tasks: Sequence[TaskListing]) -> dict[str, Any]:
    """Return what the cards of these tasks need."""
    now = local_now()
    locked = await request.workspace.tasks.locked_projects(request.caller)
    labels, assignees = suggestions(tasks)
    return {
        "due_of": partial(due_of, now=now),
        "shows_project": any(task.project not in (None, request.project.name) for task in tasks),
        "holder_of": partial(holder_of, now=time.time_ns() // 1000, person=request.context.person),
        "is_writable": lambda task: request.can_write_own and task.project_id not in locked,
        "labels": labels,
        "assignees": assignees,
    }


async def _list_values(request: WebRequest) -> dict[str, Any]:
    found = await request.workspace.tasks.listing(
        request.caller,
        to_task_filter(read_filters(request), local_now(), read_status(request)),
        order=_sort_order(request),
        limit=PER_PAGE,
        offset=request.offset,
    )
    return {
        "tasks": found.tasks,
        "total": found.total,
        "pages": request.pages(found.total),
        "moves": list(STATUS_NAMES.items()),
        **await _card_values(request, found.tasks),
    }


async def suggest_projects(request: WebRequest) -> WebResponse:
    """Return the projects of tasks as options, those with the most tasks first."""
    counts = (await request.workspace.tasks.stats(request.caller)).by_project
    names = sorted(filter(None, counts), key=lambda name: (-counts[name], name))[:_MAX_SUGGESTED]
    return render_page(request, "tasks/project_options.html", names=names)
