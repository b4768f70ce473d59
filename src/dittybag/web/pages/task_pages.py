"""The task board, the task list and the task statistics."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from dittybag.domain.changes import Change
from dittybag.domain.errors import NotFound
from dittybag.domain.tasks import NO_PROJECT, TaskGrouping, TaskListing, TaskOrder, count_tasks
from dittybag.services.task_service import TaskBoard
from dittybag.web.browser_requests import PER_PAGE, WebRequest, WebResponse, parse_number
from dittybag.web.task_charts import first_day, task_charts
from dittybag.web.task_display import (
    DUE_FILTERS,
    ENERGY_NAMES,
    KEYS,
    PRIORITY_TITLES,
    BoardColumn,
    TaskCard,
    column_title,
    describe_change,
    due_of,
    local_now,
    read_filters,
    to_task_filter,
)
from dittybag.web.template_rendering import render_page

#: Maximum numbers of tasks per column and of columns per page.
_MAX_CARDS: Final = 20
_MAX_COLUMNS: Final = 8
_VIEWS: Final = ("board", "list", "stats")
_ORDERS: Final[tuple[TaskOrder, ...]] = ("priority", "due", "newest")
#: Maximum number of suggested projects.
_MAX_SUGGESTED: Final = 200


async def show_tasks(request: WebRequest) -> WebResponse:
    """Show open or completed tasks as a board, as a list or as charts."""
    view = request.chosen("view", _VIEWS, "board")
    build = {"board": _board_values, "list": _list_values, "stats": _stats_values}[view]
    filters = read_filters(request)
    values: dict[str, Any] = {
        "view": view,
        "by": request.chosen("by", KEYS, KEYS[0]),
        "completed": _is_done(request),
        "filters": filters,
        "is_filtered": any(filters.values()),
        "sort": _sort_order(request),
        "address": request.with_query(notice=None),
        "tab": lambda **changes: request.with_query(notice=None, page=None, first=None, **changes),
        **await build(request),
    }
    if request.is_fragment:
        return render_page(request, "tasks/task_region.html", **values)
    notice = await _find_notice(request)
    return render_page(
        request,
        "tasks/task_index.html",
        **values,
        change=notice,
        text="" if notice is None else describe_change(notice),
        priorities=PRIORITY_TITLES,
        energies=ENERGY_NAMES,
        dues=DUE_FILTERS,
    )


def _is_done(request: WebRequest) -> bool:
    return request.query.get("done") == "1"


def _sort_order(request: WebRequest) -> TaskOrder:
    return "done" if _is_done(request) else request.chosen("sort", _ORDERS, "priority")


async def _board_values(request: WebRequest) -> dict[str, Any]:
    now, by = local_now(), request.chosen("by", KEYS, KEYS[0])
    first = request.int_parameter("first", maximum=10**6)
    board = await request.workspace.tasks.board(
        request.caller,
        to_task_filter(read_filters(request), now, completed=_is_done(request)),
        by,
        order="done" if _is_done(request) else "priority",
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
                view="list", notice=None, first=None, by=None, **{by: str(column.key) or NO_PROJECT}
            ),
        )
        for column in board.columns
    ]


def _cards(tasks: Iterable[TaskListing], now: datetime) -> list[TaskCard]:
    return [TaskCard(task, due_of(task, now)) for task in tasks]


async def _list_values(request: WebRequest) -> dict[str, Any]:
    now = local_now()
    found = await request.workspace.tasks.listing(
        request.caller,
        to_task_filter(read_filters(request), now, completed=_is_done(request)),
        order=_sort_order(request),
        limit=PER_PAGE,
        offset=request.offset,
    )
    return {"cards": _cards(found.tasks, now), "total": found.total, "pages": request.pages(found.total)}


async def _stats_values(request: WebRequest) -> dict[str, Any]:
    now, tasks = local_now(), request.workspace.tasks
    since = int(first_day(now).timestamp()) * 1_000_000
    counts = count_tasks(await tasks.groups(request.caller))
    quarters = await tasks.completion_counts(request.caller, since)
    return {
        "stats": task_charts(counts, quarters, now.date()),
        "list_link": lambda **filters: f"{request.path}?{urlencode({'view': 'list', **filters})}",
        "no_project": NO_PROJECT,
    }


async def _find_notice(request: WebRequest) -> Change | None:
    """Return the change in the query, to offer undo, if it is still the latest change of its task."""
    task, _, seq = request.query.get("notice", "").partition(".")
    try:
        change = await request.workspace.tasks.latest_change(request.caller, parse_number(task) or 0)
    except NotFound:
        return None
    return change if str(change.seq) == seq else None


async def suggest_projects(request: WebRequest) -> WebResponse:
    """Return the projects of tasks as options, those with the most tasks first."""
    counts = count_tasks(await request.workspace.tasks.groups(request.caller)).by_project
    names = [count.key for count in counts if count.key][:_MAX_SUGGESTED]
    return render_page(request, "tasks/project_options.html", names=names)
