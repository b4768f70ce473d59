"""The pages of tasks: boards, lists and statistics."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from dittybag.domain.errors import NotFound
from dittybag.domain.tasks import TaskGrouping, TaskListing, TaskOrder
from dittybag.services.task_service import TaskBoard
from dittybag.web.browser_requests import WebResponse, WebRequest, Route
from dittybag.web.pages import task_actions, task_form
from dittybag.web.task_charts import first_day, statistics
from dittybag.web.task_display import (
    DUE_FILTERS,
    ENERGY_NAMES,
    KEYS,
    NO_PROJECT,
    ORDERS,
    VIEWS,
    TaskCard,
    BoardColumn,
    to_task_filter,
    column_filter,
    column_title,
    due_of,
    read_filters,
    local_now,
    priorities,
)
from dittybag.web.template_rendering import render_page

#: So many tasks of a column are shown, and so many columns at a time.
_CARDS: Final = 20
_WIDTH: Final = 8
_PAGE: Final = 50
#: So many projects are proposed to whoever types one.
_PROPOSED: Final = 200


async def show(request: WebRequest) -> WebResponse:
    """What there is to do, in columns, as a list or as charts; or what is done."""
    wanted = request.query.get("view")
    view = wanted if wanted in VIEWS else "board"
    shown = {"board": _board, "list": _list, "stats": _stats}[view]
    filters = read_filters(request.query)
    values: dict[str, Any] = {
        "view": view,
        "by": _by(request),
        "completed": request.query.get("done") == "1",
        "filters": filters,
        "sort": _order(request),
        "address": request.with_query(said=None),
        "tab": lambda **changes: request.with_query(said=None, page=None, first=None, **changes),
        **await shown(request),
    }
    if request.is_fragment:
        return render_page(request, "tasks/task_region.html", **values)
    return render_page(
        request,
        "tasks/task_index.html",
        **values,
        said=await _said(request),
        priorities=priorities(),
        energies=ENERGY_NAMES,
        dues=DUE_FILTERS,
    )


def _by(request: WebRequest) -> TaskGrouping:
    return next((key for key in KEYS if key == request.query.get("by")), KEYS[0])


def _order(request: WebRequest) -> TaskOrder:
    if request.query.get("done") == "1":
        return "done"
    return ORDERS.get(request.query.get("sort", ""), "priority")


async def _board(request: WebRequest) -> dict[str, Any]:
    now, by = local_now(), _by(request)
    is_done = request.query.get("done") == "1"
    first = request.int_parameter("first", 0, 0, 10**6)
    board = await request.workspace.tasks.board(
        request.caller,
        to_task_filter(read_filters(request.query), now, completed=is_done),
        by,
        order="done" if is_done else "priority",
        limit=_CARDS,
        width=_WIDTH,
        first=first,
    )
    return {
        "columns": _columns(request, board, by, now),
        "total": sum(column.total for column in board.columns),
        "earlier": request.with_query(first=max(first - _WIDTH, 0) or None, said=None) if first else "",
        "later": request.with_query(first=first + _WIDTH, said=None) if first + _WIDTH < board.count else "",
        "hidden_columns": board.count - len(board.columns),
    }


def _columns(request: WebRequest, board: TaskBoard, by: TaskGrouping, now: datetime) -> list[BoardColumn]:
    return [
        BoardColumn(
            value=str(column.key),
            title=column_title(by, column.key),
            total=column.total,
            cards=_cards(column.tasks, now),
            address=request.with_query(
                view="list", said=None, first=None, by=None, **column_filter(by, column.key)
            ),
        )
        for column in board.columns
    ]


def _cards(tasks: Iterable[TaskListing], now: datetime) -> list[TaskCard]:
    return [TaskCard(task, due_of(task, now)) for task in tasks]


async def _list(request: WebRequest) -> dict[str, Any]:
    now = local_now()
    number = request.int_parameter("page", 1, 1, 10**6)
    found = await request.workspace.tasks.listing(
        request.caller,
        to_task_filter(read_filters(request.query), now, completed=request.query.get("done") == "1"),
        order=_order(request),
        limit=_PAGE,
        offset=(number - 1) * _PAGE,
    )
    return {
        "cards": _cards(found.tasks, now),
        "total": found.total,
        "current": number,
        "last": -(-found.total // _PAGE),
        "to": lambda number: request.with_query(page=number, said=None),
    }


async def _stats(request: WebRequest) -> dict[str, Any]:
    now, tasks = local_now(), request.workspace.tasks
    since = int(first_day(now).timestamp()) * 1_000_000
    groups = await tasks.groups(request.caller)
    quarters = await tasks.completion_counts(request.caller, since)
    return {
        "stats": statistics(groups, quarters, now.date()),
        "listed": lambda **filters: f"{request.path}?{urlencode({'view': 'list', **filters})}",
        "no_project": NO_PROJECT,
    }


async def _said(request: WebRequest) -> dict[str, Any] | None:
    """What was done to a task just now, if the address says so and nothing has come after it."""
    task, _, seq = request.query.get("said", "").partition(".")
    if not (task.isdecimal() and len(task) < 19):
        return None
    try:
        change = await request.workspace.tasks.latest_change(request.caller, int(task))
    except NotFound:
        return None
    return task_actions.said(change) if str(change.seq) == seq else None


async def projects(request: WebRequest) -> WebResponse:
    """The projects that tasks belong to, those with the most first, for whoever types one."""
    totals: dict[str, int] = {}
    for group in await request.workspace.tasks.groups(request.caller):
        if group.project:
            totals[group.project] = totals.get(group.project, 0) + group.total
    names = sorted(totals, key=lambda name: (-totals[name], name))[:_PROPOSED]
    return render_page(request, "tasks/project_options.html", names=names)


routes: Final = (
    Route("GET", "/tasks", show),
    Route("GET", "/tasks/projects", projects),
    *task_actions.routes,
    *task_form.routes,
)
