"""SQL for the board by status, which reads the matching tasks once for all columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dittybag.domain.tasks import BOARD_COLUMNS, TaskColumn, TaskOrder
from dittybag.storage.sql.task_boards import LISTED_SOURCE, ORDERS, SCAN_FACTOR, BoardQuery

#: All statuses that have a column.
BOARD_STATUSES: Final = tuple(
    dict.fromkeys(status for names, _ in BOARD_COLUMNS.values() for status in names)
)

#: Whether a task waits for others: for the few tasks of an index, and for many tasks.
_WAITS_ONE: Final = "EXISTS (SELECT 1 FROM open_tasks WHERE task = tasks.id AND waits_for > 0)"
_WAITS_MANY: Final = "id IN (SELECT task FROM open_tasks WHERE waits_for > 0)"


def column_order(key: str, order: TaskOrder) -> TaskOrder:
    """Return the order of a column of a board in this order."""
    return "done" if key == "done" else order


def _has_status(key: str) -> str:
    """SQL for whether a task has a status of a column."""
    names = ", ".join(f"'{status}'" for status in BOARD_COLUMNS[key][0])
    return f"status IN ({names})"


def _is_in(key: str, waits: str) -> str:
    """SQL for whether a task is in a column."""
    waiting = BOARD_COLUMNS[key][1]
    return _has_status(key) + ("" if waiting is None else f" AND {'' if waiting else 'NOT '}{waits}")


def sizes_sql(query: BoardQuery) -> str:
    """SQL for the number of tasks in each column, in one row, if an index has all columns of the filter.

    Those that wait for others are fewer than those that do not, so only they are looked up.
    """
    counts = [
        f"(SELECT count(*) {query.from_where(is_scanned=True)} AND {_is_in(key, _WAITS_MANY)})"
        if waiting
        else f"count(*) FILTER (WHERE {_has_status(key)})"
        for key, (_, waiting) in BOARD_COLUMNS.items()
    ]
    return f"SELECT {', '.join(counts)} {query.from_where(is_scanned=False)}"


def read_sizes(counts: Sequence[int]) -> list[TaskColumn]:
    """Return the columns without their tasks."""
    totals = dict(zip(BOARD_COLUMNS, counts, strict=True))
    totals["ready"] -= totals["blocked"]
    return [TaskColumn(key, total, []) for key, total in totals.items()]


def indexed_tasks_sql(query: BoardQuery, columns: Sequence[TaskColumn], order: TaskOrder, limit: int) -> str:
    """SQL for the tasks of columns whose sizes are known: rows of column position and task listing."""
    page = query.bindings.page(limit, 0)
    selects = []
    for position, column in enumerate(columns):
        if not column.total:
            continue
        key = str(column.key)
        sorting = column_order(key, order)
        # An index in the right order yields enough rows quickly, unless matches are rare.
        is_scanned = sorting != "priority" or column.total < limit * SCAN_FACTOR
        selects.append(
            f"""SELECT * FROM (SELECT {position} AS column_position, id
                {query.from_where(is_scanned=is_scanned)}
                AND {_is_in(key, _WAITS_MANY if is_scanned else _WAITS_ONE)}
                ORDER BY {ORDERS[sorting]} {page}) AS column_{position}"""
        )
    picked = " UNION ALL ".join(selects)
    return f"WITH picked AS ({picked}) SELECT column_position, {query.listed} {LISTED_SOURCE}"


def scanned_tasks_sql(query: BoardQuery, order: TaskOrder, limit: int) -> str:
    """SQL for the tasks of all columns by one scan: rows of size, column position and task listing."""
    page = query.bindings.page(limit, 0)
    picked = " UNION ALL ".join(
        f"""SELECT * FROM (SELECT (SELECT count(*) FROM placed WHERE {_is_in(key, "waits")}) AS size,
                {position} AS column_position, id
            FROM placed WHERE {_is_in(key, "waits")}
            ORDER BY {ORDERS[column_order(key, order)]} {page}) AS column_{position}"""
        for position, key in enumerate(BOARD_COLUMNS)
    )
    return f"""WITH placed AS MATERIALIZED (
            SELECT id, priority, due_date, completed_at, status, {_WAITS_MANY} AS waits
            {query.from_where(is_scanned=True)}
        ), picked AS ({picked})
        SELECT size, column_position, {query.listed} {LISTED_SOURCE}"""
