"""The task board, the task list and the task statistics."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from dittybag.domain.changes import Change
from dittybag.domain.errors import NotFound
from dittybag.domain.tasks import NO_PROJECT, TaskOrder, count_tasks
from dittybag.web.browser_requests import PER_PAGE, WebRequest, WebResponse, parse_number
from dittybag.web.task_display import (
    DUE_FILTERS,
    ENERGY_NAMES,
    KEYS,
    PRIORITY_TITLES,
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
#: Days in the chart of completed tasks, and the maximum number of projects in the chart of projects.
_DAYS: Final = 30
_MAX_BARS: Final = 15
_QUARTER_SECONDS: Final = 900
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
        "columns": board.columns,
        "total": sum(column.total for column in board.columns),
        "title": partial(column_title, by),
        "due_of": partial(due_of, now=now),
        "column_link": lambda key: request.with_query(
            view="list", notice=None, first=None, by=None, **{by: key or NO_PROJECT}
        ),
        "earlier": first and request.with_query(first=max(first - _MAX_COLUMNS, 0) or None, notice=None),
        "later": first + _MAX_COLUMNS < board.count
        and request.with_query(first=first + _MAX_COLUMNS, notice=None),
        "hidden_columns": board.count - len(board.columns),
    }


async def _list_values(request: WebRequest) -> dict[str, Any]:
    now = local_now()
    found = await request.workspace.tasks.listing(
        request.caller,
        to_task_filter(read_filters(request), now, completed=_is_done(request)),
        order=_sort_order(request),
        limit=PER_PAGE,
        offset=request.offset,
    )
    return {
        "tasks": found.tasks,
        "due_of": partial(due_of, now=now),
        "total": found.total,
        "pages": request.pages(found.total),
    }


async def _stats_values(request: WebRequest) -> dict[str, Any]:
    tasks = request.workspace.tasks
    first_day = local_now().date() - timedelta(_DAYS - 1)
    since = int(datetime.combine(first_day, datetime.min.time()).astimezone().timestamp()) * 1_000_000
    done = dict.fromkeys((first_day + timedelta(day) for day in range(_DAYS)), 0)
    for quarter, count in (await tasks.completion_counts(request.caller, since)).items():
        day = datetime.fromtimestamp(quarter * _QUARTER_SECONDS).date()  # noqa: DTZ006  # the day here
        if day in done:
            done[day] += count

    def link(**filters: Any) -> str:
        return f"{request.path}?{urlencode({'view': 'list', **filters})}"

    return {
        "counts": count_tasks(await tasks.groups(request.caller)),
        "days": [(f"{day:%d %b}: {count} done", 0, count) for day, count in done.items()],
        "done_recently": sum(done.values()),
        "most_in_a_day": max(done.values()),
        "max_projects": _MAX_BARS,
        "list_link": link,
        "priority_title": partial(column_title, "priority"),
        "priority_link": lambda key: link(priority=key),
        "project_title": partial(column_title, "project"),
        "project_link": lambda key: link(project=key or NO_PROJECT),
    }


async def _find_notice(request: WebRequest) -> Change | None:
    """Return the change in the query, to offer undo, if it is still the latest change of its task."""
    task, _, seq = request.query.get("notice", "").partition(".")
    if (number := parse_number(task)) is None:
        return None
    try:
        change = await request.workspace.tasks.latest_change(request.caller, number)
    except NotFound:
        return None
    return change if str(change.seq) == seq else None


async def suggest_projects(request: WebRequest) -> WebResponse:
    """Return the projects of tasks as options, those with the most tasks first."""
    counts = count_tasks(await request.workspace.tasks.groups(request.caller)).by_project
    names = [count.key for count in counts if count.key][:_MAX_SUGGESTED]
    return render_page(request, "tasks/project_options.html", names=names)
