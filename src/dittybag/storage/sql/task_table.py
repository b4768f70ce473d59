"""Tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from dittybag.domain.queries import OWN_TASKS, TaskQuery, TaskSort, TaskView
from dittybag.domain.tasks import (
    BOARD_COLUMNS,
    NO_PROJECT,
    Task,
    TaskColumn,
    TaskFilter,
    TaskGroup,
    TaskGrouping,
    TaskOrder,
)
from dittybag.storage.sql.entity_rows import EntityRows, columns_sql
from dittybag.storage.sql.native_queries import NativeQueries
from dittybag.storage.sql.sql_driver import Bindings, Row, SqlDriver, is_number
from dittybag.storage.sql.task_boards import (
    COMPLETED,
    OPEN,
    BoardQuery,
    empty_columns,
    fill_columns,
    is_covered,
    team_conditions,
)
from dittybag.storage.sql.task_visibility import visible_source, visible_tasks

_USER: Final = '"user"'
#: Earliest due date first, or latest; tasks without one last. One term, so that SQLite reads the priorities
#: in the order of an index and sorts only within each.
_EARLIEST: Final = "coalesce(due_date, 'undated')"
_LATEST: Final = "coalesce(due_date, '') DESC"
#: The terms of each order.
_ORDERS: Final[Mapping[TaskSort, Sequence[str]]] = {
    "priority": ("priority DESC", "id"),
    "queue": ("priority DESC", _EARLIEST, "id"),
    "due": (_EARLIEST, "priority DESC", "id"),
    "created": ("created_at DESC", "id DESC"),
    "updated": ("updated_at DESC", "id DESC"),
    "title": ("lower(title)", "id"),
    "shortest": ("length(title)", "id"),
}
#: The size of the texts of a task.
_SIZE: Final = "octet_length(title) + coalesce(octet_length(notes), 0) + 256"


class TaskTable:
    """Tasks."""

    def __init__(self, driver: SqlDriver, rows: EntityRows, native: NativeQueries) -> None:
        self._driver = driver
        self._rows = rows
        self._native = native

    async def get(self, user: str, id: int, view: TaskView = OWN_TASKS) -> Task | None:
        if not is_number(id):
            return None
        bindings = Bindings(id, user)
        condition = f"id = $1 AND {visible_tasks(self._driver, view, bindings, '$2')}"
        found: Task | None = await self._rows.select_one(condition, *bindings.values)
        return found

    async def with_ids(self, ids: Sequence[int]) -> list[Task]:
        """Return the tasks with these ids, whoever can see them, in no particular order."""
        found = f"WHERE {self._driver.any_of('id', '$1')}"
        return await self._rows.select(found, self._driver.list_value(ids))

    async def has_shared_by_others(self, user: str) -> bool:
        """Whether projects have tasks of other users."""
        shared = "EXISTS (SELECT 1 FROM tasks WHERE project_id IS NOT NULL AND"
        sql = f'SELECT {shared} "user" < $1) OR {shared} "user" > $1)'
        return bool(await self._driver.value(sql, user))

    async def page(self, query: TaskQuery) -> list[Task]:
        source, bindings = await self._matching(query)
        # The index finds the page, so only its rows are read.
        order = _order_by(query)
        page = f"{order} {bindings.page(query.limit, query.offset)}"
        clauses = f"WHERE id IN (SELECT id FROM {source} {page}) {order}"
        return await self._rows.select(clauses, *bindings.values)

    async def search(self, query: TaskQuery) -> tuple[int, list[Task]]:
        """Count the matching tasks; return a page of them."""
        source, bindings = await self._matching(query)
        filters = list(bindings.values)
        order, size, fits = _order_by(query), "0", ""
        if query.max_bytes is not None:
            # Of the texts of the tasks up to this one.
            size, fits = f"sum({_SIZE}) OVER ({order})", f"WHERE size <= {bindings.add(query.max_bytes)}"
        rows = await self._driver.rows(
            f"""WITH matched AS (
                    SELECT id AS matched_id, count(*) OVER () AS total, {size} AS size
                    FROM {source}
                )
                SELECT {columns_sql("task")}, total FROM matched JOIN tasks ON id = matched_id {fits}
                {order} {bindings.page(query.limit, query.offset)}""",
            *bindings.values,
        )
        if not rows and query.offset:
            sql = f"SELECT count(*) FROM {source}"
            return await self._driver.value(sql, *filters) or 0, []
        return (rows[0][-1] if rows else 0), [self._rows.from_row(row) for row in rows]

    async def _matching(self, query: TaskQuery) -> tuple[str, Bindings]:
        """Return the SQL for the tasks of a query: a source and a condition."""
        bindings = Bindings(query.user)
        column = self._driver.unindexed(_USER) if query.text else _USER
        source, visible = visible_source(self._driver, query.view, bindings, "$1", column=column)
        conditions = [visible]
        if query.project is not None:
            is_project = f"project = {bindings.add(query.project)}"
            or_none = query.project == NO_PROJECT
            conditions.append(f"({is_project} OR project IS NULL)" if or_none else is_project)
        if query.priorities:
            conditions.append(f"priority IN ({', '.join(map(bindings.add, query.priorities))})")
        if query.completed is not None:
            conditions.append(COMPLETED if query.completed else OPEN)
        if query.due_by is not None:
            # A due date may include a time.
            conditions.append(f"substr(due_date, 1, 10) <= {bindings.add(query.due_by)}")
        conditions += team_conditions(
            self._driver,
            bindings,
            statuses=query.statuses,
            assignee=query.assignee,
            labels=query.labels,
            parent=query.parent,
        )
        if query.text:
            columns = ["title"] * query.in_title + ["notes"] * query.in_notes
            conditions.append(await self._native.word_candidates(query.text, bindings))
            conditions.append(self._native.word_condition(query.text, columns, bindings))
        return f"{source} WHERE {' AND '.join(conditions)}", bindings

    async def groups(self, user: str, view: TaskView = OWN_TASKS) -> list[TaskGroup]:
        bindings = Bindings(user)
        tasks, visible = visible_source(self._driver, view, bindings, "$1")
        sql = f"""SELECT project, priority, count(*), count(completed_at) FROM {tasks} WHERE {visible}
                  GROUP BY project, priority ORDER BY project NULLS FIRST, priority DESC"""
        return [TaskGroup(*row) for row in await self._driver.rows(sql, *bindings.values)]

    async def count_all(self) -> int:
        """Count the tasks of all users."""
        return int(await self._driver.value("SELECT count(*) FROM tasks"))

    async def columns(
        self,
        user: str,
        filter: TaskFilter,
        by: TaskGrouping | None,
        keys: Sequence[int | str] | None,
        *,
        span: range,
        order: TaskOrder,
        limit: int,
        offset: int = 0,
        view: TaskView = OWN_TASKS,
    ) -> tuple[int, list[TaskColumn]]:
        """Count the columns of a board; return those in `span`, each with its total and some of its tasks.

        `keys`: the values of `by` that are columns, an empty string for tasks without a project. If `None`,
        all values that occur, those with the most tasks first. Without `by`, one column with the key 0 holds
        all tasks.
        """
        query = await self._board_query(user, filter, view)
        sizes = await self._driver.rows(query.sizes_sql(by), *query.bindings.values)
        count, columns = empty_columns(sizes, keys, span)
        if any(column.total for column in columns):
            sql = query.tasks_sql(by, columns, order, limit, offset)
            rows = await self._driver.rows(sql, *query.bindings.values)
            fill_columns(columns, rows, [order] * len(columns), self._driver.read_list)
        return count, columns

    async def status_columns(
        self, user: str, filter: TaskFilter, *, order: TaskOrder, limit: int, view: TaskView = OWN_TASKS
    ) -> list[TaskColumn]:
        """Return the columns of `BOARD_COLUMNS`, each with its total and its first tasks.

        Completed tasks are in the order of completion. The statuses of the filter are ignored.
        """
        # Imported here because few processes show this board.
        from dittybag.storage.sql.status_boards import (
            BOARD_STATUSES,
            column_order,
            indexed_tasks_sql,
            read_sizes,
            scanned_tasks_sql,
            sizes_sql,
        )

        open_or_done = replace(filter, statuses=BOARD_STATUSES, waiting=None)
        query = await self._board_query(user, open_or_done, view)
        orders = [column_order(key, order) for key in BOARD_COLUMNS]
        columns = [TaskColumn(key, 0, []) for key in BOARD_COLUMNS]
        rows: Sequence[Row] = ()
        if is_covered(replace(filter, statuses=(), waiting=None)):
            sizes = await self._driver.row(sizes_sql(query), *query.bindings.values)
            columns = read_sizes(sizes or [0] * len(columns))
            if any(column.total for column in columns):
                sql = indexed_tasks_sql(query, columns, order, limit)
                rows = await self._driver.rows(sql, *query.bindings.values)
        else:
            sql = scanned_tasks_sql(query, order, limit)
            found = await self._driver.rows(sql, *query.bindings.values)
            totals = {row[1]: row[0] for row in found}
            columns = [TaskColumn(key, totals.get(at, 0), []) for at, key in enumerate(BOARD_COLUMNS)]
            rows = [row[1:] for row in found]
        fill_columns(columns, rows, orders, self._driver.read_list)
        return columns

    async def _board_query(self, user: str, filter: TaskFilter, view: TaskView) -> BoardQuery:
        query = BoardQuery(self._driver, user, filter, view)
        if filter.text:
            candidates = await self._native.word_candidates(filter.text, query.bindings)
            words = self._native.word_condition(filter.text, ("title", "notes"), query.bindings)
            query.require_text(f"{candidates} AND {words}")
        return query

    async def in_project(self, project: int) -> list[Task]:
        """Return the tasks that belong to a project, in the order of creation."""
        return await self._rows.select("WHERE project_id = $1 ORDER BY id", project)


def _order_by(query: TaskQuery) -> str:
    terms = _ORDERS[query.order]
    return f"ORDER BY {', '.join(map(_reversed, terms) if query.is_reversed else terms)}"


def _reversed(term: str) -> str:
    if term == _EARLIEST:
        return _LATEST
    return term.removesuffix(" DESC") if term.endswith(" DESC") else f"{term} DESC"
