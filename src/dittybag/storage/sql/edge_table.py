"""Which task waits for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dittybag.domain.task_graph import GraphQuery, GraphTask
from dittybag.storage.sql.entity_rows import json_reader
from dittybag.storage.sql.row_mapping import row_reader
from dittybag.storage.sql.sql_driver import Bindings, SqlDriver
from dittybag.storage.sql.task_visibility import visible_tasks

_GRAPH_COLUMNS: Final = (
    "tasks.id, title, tasks.status, tasks.priority, tasks.project, due_date, tasks.assignee, blocked_by, "
    "parent, coalesce(waits_for, 0), holder, until"
)
_read_graph_task: Final = row_reader(GraphTask, blocked_by=json_reader(tuple[int, ...]))


class EdgeTable:
    """Which task waits for which: those that block it, and its parts."""

    def __init__(self, driver: SqlDriver) -> None:
        self._driver = driver

    async def blockers(self, tasks: Sequence[int], limit: int | None = None) -> list[tuple[int, int]]:
        """Return a task and one that it waits for, ended or not, for each edge of these tasks."""
        return await self._edges("task, blocker", "task", tasks, limit)

    async def blocked(self, tasks: Sequence[int]) -> list[tuple[int, int]]:
        """Return a task and one that waits for it, for each edge to one of these tasks."""
        return await self._edges("blocker, task", "blocker", tasks)

    async def _edges(
        self, columns: str, key: str, tasks: Sequence[int], limit: int | None = None
    ) -> list[tuple[int, int]]:
        bindings = Bindings(self._driver.list_value(tasks))
        sql = f"""SELECT DISTINCT {columns} FROM task_edges WHERE {self._driver.any_of(key, "$1")}
                  ORDER BY {columns} {bindings.page(limit, 0)}"""
        return [(row[0], row[1]) for row in await self._driver.rows(sql, *bindings.values)]

    async def leads_to(self, tasks: Sequence[int], goal: int) -> bool:
        """Whether one of these tasks waits for another one, directly or not."""
        waits = "SELECT EXISTS (SELECT 1 FROM task_edges WHERE blocker = $1)"
        # Mostly nothing waits for the task, so that the others need not be followed.
        if not await self._driver.value(waits, goal):
            return False
        sql = f"WITH RECURSIVE {self._reached()} SELECT EXISTS (SELECT 1 FROM reached WHERE blocker = $2)"
        return bool(await self._driver.value(sql, self._driver.list_value(tasks), goal))

    async def all_blockers(self, tasks: Sequence[int]) -> list[tuple[int, int]]:
        """Like `blockers`, but also for all that these tasks wait for, directly or not."""
        sql = f"WITH RECURSIVE {self._reached()} SELECT task, blocker FROM reached ORDER BY task, blocker"
        return [(row[0], row[1]) for row in await self._driver.rows(sql, self._driver.list_value(tasks))]

    def _reached(self) -> str:
        """SQL for the edges by which the tasks of a placeholder wait for others, directly or not."""
        # BETWEEN, because PostgreSQL without statistics would read the whole table for every step.
        return f"""reached (task, blocker) AS (
            SELECT task, blocker FROM task_edges WHERE {self._driver.any_of("task", "$1")}
            UNION SELECT task_edges.task, task_edges.blocker FROM reached
            JOIN task_edges ON task_edges.task BETWEEN reached.blocker AND reached.blocker)"""

    async def open_blockers(self, task: int, limit: int) -> list[int]:
        """Return tasks that a task waits for."""
        sql = """SELECT DISTINCT blocker FROM task_edges JOIN open_tasks ON open_tasks.task = blocker
                 WHERE task_edges.task = $1 ORDER BY blocker LIMIT $2"""
        return [row[0] for row in await self._driver.rows(sql, task, limit)]

    async def parts(self, task: int) -> tuple[int, int]:
        """Count the parts of a task, and how many of them are done or dropped."""
        sql = """SELECT count(*), count(*) - count(open_tasks.task) FROM task_edges
                 LEFT JOIN open_tasks ON open_tasks.task = blocker WHERE task_edges.task = $1 AND part = 1"""
        row = await self._driver.row(sql, task)
        return (0, 0) if row is None else (row[0], row[1])

    async def waiting(self, tasks: Sequence[int]) -> dict[int, int]:
        """Return how many tasks each of those that are open waits for."""
        sql = f"SELECT task, waits_for FROM open_tasks WHERE {self._driver.any_of('task', '$1')}"
        return {row[0]: row[1] for row in await self._driver.rows(sql, self._driver.list_value(tasks))}

    async def graph(self, query: GraphQuery) -> tuple[int, list[GraphTask]]:
        """Count the matching tasks; return the first of them."""
        bindings = Bindings(query.user)
        conditions = [visible_tasks(self._driver, query.view, bindings, "$1", table="tasks.")]
        if query.project is not None:
            is_project = f"= {bindings.add(query.project)}" if query.project else "IS NULL"
            conditions.append(f"tasks.project {is_project}")
        if not query.ended:
            conditions.append("tasks.completed_at IS NULL AND tasks.status <> 'dropped'")
        if query.waiting:
            conditions.append("tasks.id IN (SELECT task FROM open_tasks WHERE waits_for > 0)")
        if query.ids is not None:
            ids = bindings.add(self._driver.list_value(query.ids))
            conditions.append(self._driver.any_of("tasks.id", ids))
        source = f"tasks WHERE {' AND '.join(conditions)}"
        filters = list(bindings.values)
        # An index finds the first tasks, so only their rows are read.
        order = "ORDER BY tasks.priority DESC, tasks.id"
        rows = await self._driver.rows(
            f"""WITH picked AS (SELECT tasks.id FROM {source} {order} LIMIT {bindings.add(query.limit)})
                SELECT {_GRAPH_COLUMNS} FROM picked JOIN tasks ON tasks.id = picked.id
                LEFT JOIN open_tasks ON open_tasks.task = tasks.id
                LEFT JOIN claims ON claims.task = tasks.id {order}""",
            *bindings.values,
        )
        total = len(rows)
        if total == query.limit:
            total = await self._driver.value(f"SELECT count(*) FROM {source}", *filters)
        return total, [_read_graph_task(row) for row in rows]
