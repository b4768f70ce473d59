"""Tasks in SQLite."""

from __future__ import annotations

from typing import Any, Final

import apsw
import msgspec

from satchel.domain.tasks import Task, TaskGroup
from satchel.domain.text import folded
from satchel.storage.readings import task_of
from satchel.storage.sqlite.records import Table
from satchel.storage.sqlite.rows import Bindings, all_rows, first_row
from satchel.storage.sqlite.search import Needle, PendingIndex, contains, folded_or_none

TABLE: Final = Table("tasks", "id")
INDEX: Final = "task_index"

_COLUMNS: Final = (
    "id, user, title, project, priority, energy, time_estimate, notes, due_date, completed_at, "
    "created_at, updated_at, version"
)
_TITLE: Final = contains("title", "folded_title")
_NOTES: Final = contains("notes", "folded_notes")


class TaskTable:
    """Reading tasks."""

    def __init__(self, connection: apsw.Connection, pending: PendingIndex) -> None:
        self._connection = connection
        self._pending = pending

    async def get(self, user: str, id: int) -> Task | None:
        if not 0 < id < 1 << 63:
            return None
        sql = f"SELECT {_COLUMNS} FROM tasks WHERE id = ? AND user = ?"
        row = first_row(self._connection, sql, (id, user))
        return None if row is None else task_of(row)

    async def page(
        self,
        user: str,
        *,
        project: str | None,
        priority: int | None,
        completed: bool,
        limit: int,
        offset: int,
    ) -> list[Task]:
        conditions = ["user = :user"]
        if project is not None:
            conditions.append("project = :project")
        if priority is not None:
            conditions.append("priority = :priority")
        if not completed:
            conditions.append("completed_at IS NULL")
        # The index finds the page; only its rows are read.
        rows = all_rows(
            self._connection,
            f"""SELECT {_COLUMNS} FROM tasks WHERE id IN (
                    SELECT id FROM tasks WHERE {" AND ".join(conditions)}
                    ORDER BY priority DESC, id LIMIT :limit OFFSET :offset)
                ORDER BY priority DESC, id""",
            {"user": user, "project": project, "priority": priority, "limit": limit, "offset": offset},
        )
        return [task_of(row) for row in rows]

    async def chosen(
        self,
        user: str,
        *,
        project: str | None,
        priority: int | None,
        completed: bool | None,
        due_by: str | None,
        limit: int | None,
    ) -> list[Task]:
        conditions = ["user = :user"]
        if project is not None:
            conditions.append("project = :project")
        if priority is not None:
            conditions.append("priority = :priority")
        if completed is not None:
            conditions.append(f"completed_at IS {'NOT ' if completed else ''}NULL")
        if due_by is not None:
            # A date may go on with a time.
            conditions.append("substr(due_date, 1, 10) <= :due_by")
        rows = all_rows(
            self._connection,
            f"""SELECT {_COLUMNS} FROM tasks WHERE {" AND ".join(conditions)}
                ORDER BY priority DESC, id LIMIT :limit""",
            {
                "user": user,
                "project": project,
                "priority": priority,
                "due_by": due_by,
                "limit": -1 if limit is None else limit,
            },
        )
        return [task_of(row) for row in rows]

    async def search(
        self, user: str, query: str, *, title: bool, notes: bool, limit: int | None
    ) -> tuple[int, list[Task]]:
        self._pending.write()
        needle = Needle(query)
        matches = " OR ".join([_TITLE] * title + [_NOTES] * notes)
        rows = all_rows(
            self._connection,
            f"""SELECT {_COLUMNS}, count(*) OVER () FROM tasks
                WHERE +user = :user {needle.candidates(INDEX, TABLE.key)} AND ({matches})
                ORDER BY priority DESC, id LIMIT :limit""",
            {**needle.bindings(), "user": user, "limit": -1 if limit is None else limit},
        )
        return (rows[0][-1] if rows else 0), [task_of(row) for row in rows]

    async def groups(self, user: str) -> list[TaskGroup]:
        sql = """SELECT project, priority, count(*), count(completed_at) FROM tasks WHERE user = ?
                 GROUP BY project, priority"""
        return [TaskGroup(*row) for row in all_rows(self._connection, sql, (user,))]


def some(connection: apsw.Connection, rest: str, bindings: Bindings) -> list[Task]:
    """Those of any user for which the rest of a query holds."""
    return [task_of(row) for row in all_rows(connection, f"SELECT {_COLUMNS} FROM tasks {rest}", bindings)]


def values(connection: apsw.Connection, task: Task) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(task),
        "folded_title": folded_or_none(task.title),
        "folded_notes": folded_or_none(task.notes),
    }


def index_text(connection: apsw.Connection, task: Task) -> str:
    return folded(f"{task.title}\n{task.notes or ''}")
