"""SQL for task boards and lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from dittybag.domain.queries import TaskView
from dittybag.domain.tasks import (
    LISTED_NOTES,
    TaskColumn,
    TaskFilter,
    TaskGrouping,
    TaskListing,
    TaskOrder,
)
from dittybag.storage.sql.sql_driver import Bindings, Row, SqlDriver, is_number
from dittybag.storage.sql.task_visibility import visible_source

COMPLETED: Final = "completed_at IS NOT NULL"
#: A dropped task is neither open nor completed.
OPEN: Final = "completed_at IS NULL AND status <> 'dropped'"

_USER: Final = '"user"'
_LISTED_COLUMNS: Final = (
    "tasks.id, title, tasks.project, tasks.priority, energy, time_estimate, due_date, completed_at, version, "
    f"substr(coalesce(notes, ''), 1, {LISTED_NOTES}), tasks.status, tasks.assignee, labels, parent, "
    "tasks.project_id IS NOT NULL, coalesce(waits_for, 0), holder, until, "
    "(SELECT interface FROM changes WHERE changes.seq = claims.fence), tasks.project_id, "
    "(SELECT count(*) FROM task_edges WHERE task_edges.task = tasks.id AND part = 1), "
    "(SELECT count(*) FROM task_edges JOIN open_tasks AS parts ON parts.task = blocker "
    "WHERE task_edges.task = tasks.id AND part = 1)"
)
#: Where they are from, for the ids of `picked`.
LISTED_SOURCE: Final = (
    "FROM picked JOIN tasks ON tasks.id = picked.id LEFT JOIN open_tasks ON open_tasks.task = tasks.id "
    "LEFT JOIN claims ON claims.task = tasks.id"
)
_LABELS: Final = TaskListing.__struct_fields__.index("labels")
_SHARED: Final = TaskListing.__struct_fields__.index("shared")
ORDERS: Final[dict[TaskOrder, str]] = {
    "priority": "priority DESC, id",
    "due": "due_date IS NULL, due_date, priority DESC, id",
    "newest": "id DESC",
    "done": "completed_at DESC, id DESC",
}
_SORT_KEYS: Final[dict[TaskOrder, Callable[[TaskListing], Any]]] = {
    "priority": lambda task: (-task.priority, task.id),
    "due": lambda task: (task.due_date is None, task.due_date or "", -task.priority, task.id),
    "newest": lambda task: -task.id,
    "done": lambda task: (-(task.completed_at or 0), -task.id),
}
#: The conditions of a filter that no index has.
_UNCOVERED: Final = (
    "energy",
    "due_from",
    "due_by",
    "overdue_at",
    "statuses",
    "assignee",
    "label",
    "parent",
)
#: Scan the table if more than one in this many matching tasks is wanted.
SCAN_FACTOR: Final = 10
#: With fewer matches for a text, one scan serves all columns.
_FEW_MATCHES: Final = 5000
#: The key of the only column of a list.
_SINGLE_COLUMN_KEY: Final = "0"


def team_conditions(
    driver: SqlDriver,
    bindings: Bindings,
    *,
    statuses: Sequence[str],
    assignee: str | None,
    labels: Sequence[str],
    parent: int | None,
) -> list[str]:
    """SQL conditions for one of the statuses, the assignee, each of the labels and the parent of a task."""
    conditions = []
    if statuses:
        conditions.append(f"status IN ({', '.join(map(bindings.add, statuses))})")
    if assignee is not None:
        conditions.append(f"assignee = {bindings.add(assignee)}")
    conditions += [driver.has_item("labels", bindings.add(label)) for label in labels]
    if parent is not None:
        conditions.append(f"parent = {bindings.add(parent)}" if is_number(parent) else "false")
    return conditions


def is_covered(filter: TaskFilter) -> bool:
    """Whether an index has all columns of a filter."""
    return not (filter.text or any(getattr(filter, name) for name in _UNCOVERED)) and filter.waiting is None


class BoardQuery:
    """SQL that counts and selects the tasks of a user that match a filter."""

    def __init__(self, driver: SqlDriver, user: str, filter: TaskFilter, view: TaskView) -> None:
        """The caller adds the condition for the text of the filter with `require_text`."""
        self.bindings = Bindings(user)
        self.listed = f"{_LISTED_COLUMNS}, {driver.json_length('comments')}"
        # Both have the same placeholders, of which a statement must use all.
        self._source, self._visible = visible_source(driver, view, self.bindings, "$1", column=_USER)
        # Where no index covers the query, a full scan takes a quarter of the time.
        self._visible_in_scan = self._visible.replace(_USER, driver.unindexed(_USER))
        self._has_text = False
        self._is_covered = is_covered(filter)
        self._conditions = [] if filter.statuses else [COMPLETED if filter.completed else OPEN]
        self._add_conditions(filter)
        self._add_team_conditions(driver, filter)

    def require_text(self, condition: str) -> None:
        """Also require this text condition."""
        self._has_text, self._is_covered = True, False
        self._conditions.append(f"({condition})")

    def _add_conditions(self, filter: TaskFilter) -> None:
        if filter.project is not None:
            is_project = f"= {self.bindings.add(filter.project)}" if filter.project else "IS NULL"
            self._conditions.append(f"project {is_project}")
        if filter.priority is not None:
            self._conditions.append(f"priority = {self.bindings.add(filter.priority)}")
        if filter.energy is not None:
            self._conditions.append(f"energy = {self.bindings.add(filter.energy)}")
        # A due date may include a time.
        if filter.due_from is not None:
            self._conditions.append(f"substr(due_date, 1, 10) >= {self.bindings.add(filter.due_from)}")
        if filter.due_by is not None:
            self._conditions.append(f"substr(due_date, 1, 10) <= {self.bindings.add(filter.due_by)}")
        if filter.overdue_at is not None:
            local, utc = filter.overdue_at
            # A due time with another UTC offset is compared as local time.
            self._conditions.append(
                f"""CASE WHEN length(due_date) = 10 THEN due_date < {self.bindings.add(local[:10])}
                         WHEN due_date LIKE '%Z' THEN substr(due_date, 1, 16) < {self.bindings.add(utc)}
                         ELSE substr(due_date, 1, 16) < {self.bindings.add(local)} END"""
            )

    def _add_team_conditions(self, driver: SqlDriver, filter: TaskFilter) -> None:
        if filter.waiting is not None:
            waits = "EXISTS (SELECT 1 FROM open_tasks WHERE task = tasks.id AND waits_for > 0)"
            self._conditions.append(waits if filter.waiting else f"NOT {waits}")
        self._conditions += team_conditions(
            driver,
            self.bindings,
            statuses=filter.statuses,
            assignee=filter.assignee,
            labels=() if filter.label is None else (filter.label,),
            parent=filter.parent,
        )

    def from_where(self, *, is_scanned: bool) -> str:
        """SQL for the source and the condition. `is_scanned`: read the table, not an index of users."""
        visible = self._visible_in_scan if is_scanned else self._visible
        return f"FROM {self._source} WHERE {' AND '.join([visible, *self._conditions])}"

    def sizes_sql(self, by: TaskGrouping | None) -> str:
        """SQL for the number of tasks in each column: rows of key and count."""
        is_scanned = not self._is_covered or by == "energy"
        from_where = self.from_where(is_scanned=is_scanned)
        return f"SELECT {by or _SINGLE_COLUMN_KEY} AS key, count(*) {from_where} GROUP BY 1"

    def tasks_sql(
        self,
        by: TaskGrouping | None,
        columns: Sequence[TaskColumn],
        order: TaskOrder,
        limit: int,
        offset: int,
    ) -> str:
        """SQL for the tasks of these columns: rows of column position and task listing."""
        page = self.bindings.page(limit, offset)
        filled = [(position, column) for position, column in enumerate(columns) if column.total]
        # Search for a rare text once, not once per column.
        is_rare = self._has_text and sum(column.total for column in columns) < _FEW_MATCHES
        scanned = {
            position
            for position, column in filled
            if is_rare or self._is_scanned(by, column, order, offset + limit)
        }
        matched, scan = "", self.from_where(is_scanned=True)
        if len(scanned) > 1:
            # One scan serves all of them.
            needed = "id, priority, project, energy, due_date, completed_at"
            matched = f"matched AS MATERIALIZED (SELECT {needed} {scan}), "
            scan = "FROM matched WHERE true"
        picked = " UNION ALL ".join(
            f"""SELECT * FROM (SELECT {position} AS column_position, id
                {scan if position in scanned else self.from_where(is_scanned=False)}
                {self._key_condition(by, column.key)}
                ORDER BY {ORDERS[order]} {page}) AS column_{position}"""
            for position, column in filled
        )
        return f"WITH {matched}picked AS ({picked}) SELECT column_position, {self.listed} {LISTED_SOURCE}"

    def _is_scanned(self, by: TaskGrouping | None, column: TaskColumn, order: TaskOrder, wanted: int) -> bool:
        """Whether a full scan is faster than an index."""
        if by in ("priority", "project") or (self._is_covered and by is None and order != "due"):
            return False
        # An index in the right order yields enough rows quickly, unless matches are rare.
        return order != "priority" or column.total < wanted * SCAN_FACTOR

    def _key_condition(self, by: TaskGrouping | None, key: int | str) -> str:
        if by is None:
            return ""
        return f"AND {by} = {self.bindings.add(key)}" if key else f"AND {by} IS NULL"


def empty_columns(
    sizes: Iterable[Row], keys: Sequence[int | str] | None, span: range
) -> tuple[int, list[TaskColumn]]:
    """Return the number of columns, and the columns of a span without their tasks."""
    totals: dict[int | str, int] = {"" if key is None else key: total for key, total in sizes}
    all_keys = sorted(totals, key=lambda name: (-totals[name], name)) if keys is None else keys
    return len(all_keys), [
        TaskColumn(key, totals.get(key, 0), []) for key in all_keys[span.start : span.stop]
    ]


def fill_columns(
    columns: Sequence[TaskColumn],
    rows: Iterable[Row],
    orders: Sequence[TaskOrder],
    read_list: Callable[[Any], tuple[str, ...]],
) -> None:
    """Add the tasks to their columns, each in its order."""
    for position, *listed in rows:
        listed[_LABELS] = read_list(listed[_LABELS])
        # SQLite has no boolean type.
        listed[_SHARED] = bool(listed[_SHARED])
        columns[position].tasks.append(TaskListing(*listed))
    for column, order in zip(columns, orders, strict=True):
        column.tasks.sort(key=_SORT_KEYS[order])
