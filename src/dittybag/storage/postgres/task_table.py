"""Tasks in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from dittybag.domain.queries import TaskQuery
from dittybag.domain.tasks import Task, TaskColumn, TaskFilter, TaskGroup, TaskGrouping, TaskOrder
from dittybag.domain.text import fold_accents, search_words
from dittybag.storage.postgres.connections import PostgresConnection
from dittybag.storage.postgres.row_writes import ContentReader, KeyedTable
from dittybag.storage.postgres.rows import Bindings, all_rows, first_row, value
from dittybag.storage.postgres.text_search import contain_words, folded_or_none
from dittybag.storage.row_mapping import task_from_row
from dittybag.storage.task_queries import (
    QUARTER_HOUR,
    BoardQuery,
    empty_columns,
    fill_columns,
    matching_tasks_sql,
    project_condition,
)

TABLE: Final = KeyedTable("tasks", "id")

_COLUMNS: Final = (
    'id, "user", title, project, priority, energy, time_estimate, notes, due_date, completed_at, '
    "created_at, updated_at, version"
)

#: The number of tasks that are folded at a time.
_BATCH: Final = 500


def _matching(query: TaskQuery) -> tuple[str, Bindings]:
    """Return the SQL condition of a query. $1 is the user."""
    bindings = Bindings(query.user)
    conditions = ['"user" = $1']
    if query.project is not None:
        conditions.append(project_condition(query.project, bindings.add(query.project)))
    if query.priority is not None:
        conditions.append(f"priority = {bindings.add(query.priority)}")
    if query.completed is not None:
        conditions.append(f"completed_at IS {'NOT ' if query.completed else ''}NULL")
    if query.due_by is not None:
        # A due date may include a time.
        conditions.append(f"substr(due_date, 1, 10) <= {bindings.add(query.due_by)}")
    if query.text:
        columns = ["title"] * query.in_title + ["notes"] * query.in_notes
        conditions.append(contain_words(search_words(query.text), columns, bindings.add))
    return " AND ".join(conditions), bindings


class TaskTable:
    """See `dittybag.domain.ports.TaskRepository`."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    async def get(self, user: str, id: int) -> Task | None:
        if not 0 < id < 1 << 63:
            return None
        sql = f'SELECT {_COLUMNS} FROM tasks WHERE id = $1 AND "user" = $2'
        row = await first_row(self._connection, sql, id, user)
        return None if row is None else task_from_row(row)

    async def page(self, query: TaskQuery) -> list[Task]:
        where, bindings = _matching(query)
        page = f"LIMIT {bindings.add(query.limit)} OFFSET {bindings.add(query.offset)}"
        clauses = f"WHERE {where} ORDER BY priority DESC, id {page}"
        return await select(self._connection, clauses, *bindings.values)

    async def search(self, query: TaskQuery) -> tuple[int, list[Task]]:
        where, bindings = _matching(query)
        size = "" if query.max_bytes is None else bindings.add(query.max_bytes)
        page = f"{bindings.add(query.limit)} OFFSET {bindings.add(query.offset)}"
        rows = await all_rows(
            self._connection, matching_tasks_sql(_COLUMNS, where, size, page), *bindings.values
        )
        return (rows[0][-1] if rows else 0), [task_from_row(row) for row in rows]

    async def count_all(self) -> int:
        return int(await value(self._connection, "SELECT count(*) FROM tasks"))

    async def groups(self, user: str) -> list[TaskGroup]:
        sql = """SELECT project, priority, count(*), count(completed_at) FROM tasks WHERE "user" = $1
                 GROUP BY project, priority ORDER BY project NULLS FIRST, priority DESC"""
        return [TaskGroup(*row) for row in await all_rows(self._connection, sql, user)]

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
    ) -> tuple[int, list[TaskColumn]]:
        query = _query(user, filter)
        sizes = await all_rows(self._connection, query.sizes_sql(by), *query.values)
        count, columns = empty_columns(sizes, keys, span)
        if any(column.total for column in columns):
            sql = query.tasks_sql(by, columns, order, limit, offset)
            fill_columns(columns, await all_rows(self._connection, sql, *query.values), order)
        return count, columns

    async def completion_counts(self, user: str, since: int) -> dict[int, int]:
        sql = f"""SELECT completed_at / {QUARTER_HOUR}, count(*) FROM tasks
                  WHERE "user" = $1 AND completed_at >= $2 GROUP BY 1"""
        return {row[0]: row[1] for row in await all_rows(self._connection, sql, user, since)}


def _query(user: str, filter: TaskFilter) -> BoardQuery:
    query = BoardQuery(user, filter)
    if filter.text:
        query.require_text(contain_words(search_words(filter.text), ("title", "notes"), query.add))
    return query


async def select(connection: PostgresConnection, clauses: str, *values: Any) -> list[Task]:
    """Return the tasks of any user that a query with these clauses finds."""
    return [
        task_from_row(row)
        for row in await all_rows(connection, f"SELECT {_COLUMNS} FROM tasks {clauses}", *values)
    ]


async def row_values(content: ContentReader, task: Task) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(task),
        "folded_title": folded_or_none(task.title, fold_accents),
        "folded_notes": folded_or_none(task.notes, fold_accents),
    }


async def refold(connection: PostgresConnection) -> None:
    """Fold the texts of all tasks again, for databases from before accents were ignored."""
    last = 0
    sql = f"SELECT id, title, notes FROM tasks WHERE id > $1 ORDER BY id LIMIT {_BATCH}"
    while rows := await connection.fetch(sql, last):
        last = rows[-1][0]
        other = [row for row in rows if not (row[1].isascii() and (row[2] or "").isascii())]
        await connection.execute(
            """UPDATE tasks SET folded_title = folded.title, folded_notes = folded.notes
               FROM unnest($1::bigint[], $2::text[], $3::text[]) AS folded (task, title, notes)
               WHERE id = folded.task""",
            [row[0] for row in other],
            [folded_or_none(row[1], fold_accents) for row in other],
            [folded_or_none(row[2], fold_accents) for row in other],
        )
