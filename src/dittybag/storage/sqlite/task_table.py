"""Tasks in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw
from msgspec.structs import asdict

from dittybag.domain.queries import TaskQuery
from dittybag.domain.tasks import Task, TaskColumn, TaskFilter, TaskGroup, TaskGrouping, TaskOrder
from dittybag.domain.text import fold_accents, search_words
from dittybag.storage.row_mapping import task_from_row
from dittybag.storage.sqlite.row_writes import KeyedTable
from dittybag.storage.sqlite.rows import Bindings, all_rows, first_row, value
from dittybag.storage.sqlite.text_search import PendingIndex, SearchWords, folded_or_none
from dittybag.storage.task_queries import (
    QUARTER_HOUR,
    BoardQuery,
    empty_columns,
    fill_columns,
    matching_tasks_sql,
    project_condition,
)

TABLE: Final = KeyedTable("tasks", "id")
INDEX: Final = "task_index"

_COLUMNS: Final = (
    "id, user, title, project, priority, energy, time_estimate, notes, due_date, completed_at, "
    "created_at, updated_at, version"
)
#: With more candidates than this, scanning all tasks is faster.
_MAX_CANDIDATES: Final = 5000
#: This many characters of a text leave few candidates.
_LEAD_LENGTH: Final = 8
#: The number of tasks that are folded at a time.
_BATCH: Final = 500


class TaskTable:
    """See `dittybag.domain.ports.TaskRepository`."""

    def __init__(self, connection: apsw.Connection, pending: PendingIndex) -> None:
        self._connection = connection
        self._pending = pending

    async def get(self, user: str, id: int) -> Task | None:
        if not 0 < id < 1 << 63:
            return None
        sql = f"SELECT {_COLUMNS} FROM tasks WHERE id = ? AND user = ?"
        row = first_row(self._connection, sql, (id, user))
        return None if row is None else task_from_row(row)

    async def page(self, query: TaskQuery) -> list[Task]:
        where, bindings = self._matching(query)
        # The index finds the page, so only its rows are read.
        clauses = f"""WHERE id IN (
                          SELECT id FROM tasks WHERE {where}
                          ORDER BY priority DESC, id LIMIT :limit OFFSET :offset)
                      ORDER BY priority DESC, id"""
        return select(self._connection, clauses, bindings)

    async def search(self, query: TaskQuery) -> tuple[int, list[Task]]:
        where, bindings = self._matching(query)
        size = "" if query.max_bytes is None else ":max_bytes"
        sql = matching_tasks_sql(_COLUMNS, where, size, ":limit OFFSET :offset")
        rows = all_rows(self._connection, sql, bindings)
        return (rows[0][-1] if rows else 0), [task_from_row(row) for row in rows]

    def _matching(self, query: TaskQuery) -> tuple[str, dict[str, Any]]:
        """Return the SQL condition of a query, and its bindings."""
        bindings = asdict(query) | {"limit": -1 if query.limit is None else query.limit}
        conditions = []
        if query.project is not None:
            conditions.append(project_condition(query.project, ":project"))
        if query.priority is not None:
            conditions.append("priority = :priority")
        if query.completed is not None:
            conditions.append(f"completed_at IS {'NOT ' if query.completed else ''}NULL")
        if query.due_by is not None:
            # A due date may include a time.
            conditions.append("substr(due_date, 1, 10) <= :due_by")
        if not query.text:
            return " AND ".join(["user = :user", *conditions]), bindings
        self._pending.write()
        words = SearchWords(search_words(query.text))
        candidates = words.candidates(INDEX, TABLE.key).removeprefix("AND ") or "true"
        matches = words.contained_in(*["title"] * query.in_title, *["notes"] * query.in_notes)
        return (
            " AND ".join(["+user = :user", candidates, *conditions, matches]),
            bindings | words.bindings(),
        )

    async def count_all(self) -> int:
        return int(value(self._connection, "SELECT count(*) FROM tasks"))

    async def groups(self, user: str) -> list[TaskGroup]:
        sql = """SELECT project, priority, count(*), count(completed_at) FROM tasks WHERE user = ?
                 GROUP BY project, priority"""
        return [TaskGroup(*row) for row in all_rows(self._connection, sql, (user,))]

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
        query, bindings = self._query(user, filter)
        sizes = all_rows(self._connection, query.sizes_sql(by), _numbered_bindings(query) | bindings)
        count, columns = empty_columns(sizes, keys, span)
        if any(column.total for column in columns):
            sql = query.tasks_sql(by, columns, order, limit, offset)
            fill_columns(
                columns, all_rows(self._connection, sql, _numbered_bindings(query) | bindings), order
            )
        return count, columns

    def _query(self, user: str, filter: TaskFilter) -> tuple[BoardQuery, dict[str, Any]]:
        query = BoardQuery(user, filter, unindexed_user='+"user"')
        if not filter.text:
            return query, {}
        self._pending.write()
        words = SearchWords(search_words(filter.text))
        # Only the beginning of the longest word is matched in the index: more trigrams take longer.
        lead = SearchWords([max(words.words, key=len, default="")[:_LEAD_LENGTH]])
        candidates = lead.candidates(INDEX, TABLE.key) if self._is_rare(lead) else ""
        query.require_text(f"{words.contained_in('title', 'notes')} {candidates}")
        return query, words.bindings() | {"match": lead.match}

    def _is_rare(self, term: SearchWords) -> bool:
        """Whether the index finds few candidates."""
        if term.match is None:
            return False
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {INDEX} WHERE {INDEX} MATCH ? LIMIT ?)"
        found: int = value(self._connection, sql, (term.match, _MAX_CANDIDATES + 1))
        return found <= _MAX_CANDIDATES

    async def completion_counts(self, user: str, since: int) -> dict[int, int]:
        sql = f"""SELECT completed_at / {QUARTER_HOUR}, count(*) FROM tasks
                  WHERE user = ? AND completed_at >= ? GROUP BY 1"""
        return dict(all_rows(self._connection, sql, (user, since)))


def _numbered_bindings(query: BoardQuery) -> dict[str, Any]:
    return {str(number): value for number, value in enumerate(query.values, 1)}


def select(connection: apsw.Connection, clauses: str, bindings: Bindings) -> list[Task]:
    """Return the tasks of any user that a query with these clauses finds."""
    return [
        task_from_row(row)
        for row in all_rows(connection, f"SELECT {_COLUMNS} FROM tasks {clauses}", bindings)
    ]


def row_values(connection: apsw.Connection, task: Task) -> dict[str, Any]:
    return {
        **asdict(task),
        "folded_title": folded_or_none(task.title, fold_accents),
        "folded_notes": folded_or_none(task.notes, fold_accents),
    }


def index_text(connection: apsw.Connection, task: Task) -> str:
    return _index_text(task.title, task.notes)


def _index_text(title: str, notes: str | None) -> str:
    return fold_accents(f"{title}\n{notes or ''}")


def refold(connection: apsw.Connection) -> None:
    """Fold the texts of all tasks again, for databases from before accents were ignored."""
    sql = f"SELECT id, title, notes FROM tasks WHERE id > ? ORDER BY id LIMIT {_BATCH}"
    update = "UPDATE tasks SET folded_title = ?, folded_notes = ? WHERE id = ?"
    last = 0
    while rows := all_rows(connection, sql, (last,)):
        for last, title, notes in rows:
            if title.isascii() and (notes or "").isascii():
                continue
            folded = (folded_or_none(title, fold_accents), folded_or_none(notes, fold_accents))
            connection.execute(update, (*folded, last))
            connection.execute(f"DELETE FROM {INDEX} WHERE rowid = ?", (last,))
            insert = f"INSERT INTO {INDEX} (rowid, text) VALUES (?, ?)"
            connection.execute(insert, (last, _index_text(title, notes)))
