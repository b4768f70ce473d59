"""The SQL of boards and lists of tasks: both databases understand it, with placeholders $1, $2 and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from dittybag.domain.tasks import LISTED_NOTES, TaskColumn, TaskFilter, TaskGrouping, TaskListing, TaskOrder
from dittybag.storage.row_mapping import Row

#: A quarter of an hour in microseconds: days begin at one everywhere.
QUARTER_HOUR: Final = 900_000_000

_LISTED_COLUMNS: Final = (
    "tasks.id, title, project, priority, energy, time_estimate, due_date, completed_at, "
    f"version, substr(coalesce(notes, ''), 1, {LISTED_NOTES})"
)
_ORDERS: Final[dict[TaskOrder, str]] = {
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
#: Whoever wants one in ten of them, or more, looks at all.
_SCAN_FACTOR: Final = 10
_FEW_MATCHES: Final = 5000
#: The key of a list, which has one column.
_SINGLE_COLUMN_KEY: Final = "0"


class BoardQuery:
    """A choice of a user's tasks as a condition, and what is asked of them."""

    def __init__(self, user: str, choice: TaskFilter, *, unindexed_user: str = '"user"') -> None:
        """Each database has its own condition for the text of a choice, and adds it.

        `unindexed_user`: how to name the column of users so that no index is used for it. Where an index does not
        have all that is asked for, a pass through all rows takes a quarter of the time.
        """
        self.values: list[Any] = [user]
        self._unindexed_user = unindexed_user
        self._has_text = False
        self._is_covered = not (choice.energy or choice.due_from or choice.due_by or choice.overdue_at)
        self._conditions = [f"completed_at IS {'NOT ' if choice.completed else ''}NULL"]
        self._add_conditions(choice)

    def add(self, value: Any) -> str:
        """The placeholder for a value."""
        self.values.append(value)
        return f"${len(self.values)}"

    def require_text(self, condition: str) -> None:
        """Leave only the tasks for which this holds, too."""
        self._has_text, self._is_covered = True, False
        self._conditions.append(f"({condition})")

    def _add_conditions(self, choice: TaskFilter) -> None:
        if choice.project is not None:
            is_project = f"= {self.add(choice.project)}" if choice.project else "IS NULL"
            self._conditions.append(f"project {is_project}")
        if choice.priority is not None:
            self._conditions.append(f"priority = {self.add(choice.priority)}")
        if choice.energy is not None:
            self._conditions.append(f"energy = {self.add(choice.energy)}")
        # A date may go on with a time.
        if choice.due_from is not None:
            self._conditions.append(f"substr(due_date, 1, 10) >= {self.add(choice.due_from)}")
        if choice.due_by is not None:
            self._conditions.append(f"substr(due_date, 1, 10) <= {self.add(choice.due_by)}")
        if choice.overdue_at is not None:
            here, utc = choice.overdue_at
            # A time that names another zone is taken for one of the zone here.
            self._conditions.append(
                f"""CASE WHEN length(due_date) = 10 THEN due_date < {self.add(here[:10])}
                         WHEN due_date LIKE '%Z' THEN substr(due_date, 1, 16) < {self.add(utc)}
                         ELSE substr(due_date, 1, 16) < {self.add(here)} END"""
            )

    def _from_where(self, *, is_scanned: bool) -> str:
        user = self._unindexed_user if is_scanned else '"user"'
        return f"FROM tasks WHERE {' AND '.join([f'{user} = $1', *self._conditions])}"

    def sizes(self, by: TaskGrouping | None) -> str:
        """How many tasks each column has: rows of a key and a number."""
        is_scanned = not self._is_covered or by == "energy"
        return f"SELECT {by or _ALL} AS key, count(*) {self._chosen(is_scanned=is_scanned)} GROUP BY 1"

    def tasks(
        self,
        by: TaskGrouping | None,
        columns: Sequence[TaskColumn],
        order: TaskOrder,
        limit: int,
        offset: int,
    ) -> str:
        """The tasks of these columns: rows of the place of a column and a task as lists show it."""
        most, skipped = self.add(limit), self.add(offset)
        filled = [(place, column) for place, column in enumerate(columns) if column.total]
        # A text that few tasks have in them is not looked for in every column.
        is_rare = self._has_text and sum(column.total for column in columns) < _FEW_MATCHES
        hard = {
            place
            for place, column in filled
            if is_rare or self._is_scanned(by, column, order, offset + limit)
        }
        once, once_found = "", self._from_where(is_scanned=True)
        if len(hard) > 1:
            # One pass through all rows will do for all of them.
            needed = "id, priority, project, energy, due_date, completed_at"
            once = f"matched AS MATERIALIZED (SELECT {needed} {once_found}), "
            once_found = "FROM matched WHERE true"
        picked = " UNION ALL ".join(
            f"""SELECT * FROM (SELECT {place} AS place, id
                {once_found if place in hard else self._chosen(is_scanned=False)}
                {self._is_key(by, column.key)}
                ORDER BY {_ORDERS[order]} LIMIT {most} OFFSET {skipped}) AS column_{place}"""
            for place, column in filled
        )
        return f"""WITH {once}picked AS ({picked})
            SELECT place, {_LISTED} FROM picked JOIN tasks ON tasks.id = picked.id"""

    def _is_scanned(self, by: TaskGrouping | None, column: TaskColumn, order: TaskOrder, wanted: int) -> bool:
        """Whether it is quicker to look at all rows."""
        if by in ("priority", "project") or (self._is_covered and by is None and order != "due"):
            return False
        # The index that has them in order soon leads to enough of them, unless they are rare.
        return order != "priority" or column.total < wanted * _SCAN_FACTOR

    def _key_condition(self, by: TaskGrouping | None, key: int | str) -> str:
        if by is None:
            return ""
        return f"AND {by} = {self.add(key)}" if key else f"AND {by} IS NULL"


def empty_columns(
    sizes: Iterable[Row], keys: Sequence[int | str] | None, span: range
) -> tuple[int, list[TaskColumn]]:
    """How many columns there are, and those of a span, without tasks yet."""
    totals: dict[int | str, int] = {"" if key is None else key: total for key, total in sizes}
    every = sorted(totals, key=lambda name: (-totals[name], name)) if keys is None else keys
    return len(every), [TaskColumn(key, totals.get(key, 0), []) for key in every[span.start : span.stop]]


def fill_columns(columns: Sequence[TaskColumn], rows: Iterable[Row], order: TaskOrder) -> None:
    """Put the tasks into their columns."""
    for place, *listed in rows:
        columns[place].tasks.append(TaskListing(*listed))
    for column in columns:
        column.tasks.sort(key=_SORT_KEYS[order])
