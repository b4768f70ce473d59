"""Which task waits for which."""

from __future__ import annotations

from collections.abc import Sequence

from dittybag.storage.sql.sql_driver import SqlDriver


class EdgeTable:
    """See `dittybag.domain.ports.EdgeRepository`."""

    def __init__(self, driver: SqlDriver) -> None:
        self._driver = driver

    async def blockers(self, tasks: Sequence[int]) -> list[tuple[int, int]]:
        return await self._edges("task, blocker", "task", tasks)

    async def blocked(self, tasks: Sequence[int]) -> list[tuple[int, int]]:
        return await self._edges("blocker, task", "blocker", tasks)

    async def _edges(self, columns: str, key: str, tasks: Sequence[int]) -> list[tuple[int, int]]:
        sql = f"""SELECT DISTINCT {columns} FROM task_edges WHERE {self._driver.any_of(key, "$1")}
                  ORDER BY {columns}"""
        return [(row[0], row[1]) for row in await self._driver.rows(sql, self._driver.list_value(tasks))]

    async def open_blockers(self, task: int, limit: int) -> list[int]:
        sql = """SELECT DISTINCT blocker FROM task_edges JOIN open_tasks ON open_tasks.task = blocker
                 WHERE task_edges.task = $1 ORDER BY blocker LIMIT $2"""
        return [row[0] for row in await self._driver.rows(sql, task, limit)]

    async def parts(self, task: int) -> tuple[int, int]:
        sql = """SELECT count(*), count(*) - count(open_tasks.task) FROM task_edges
                 LEFT JOIN open_tasks ON open_tasks.task = blocker WHERE task_edges.task = $1 AND part = 1"""
        row = await self._driver.row(sql, task)
        return (0, 0) if row is None else (row[0], row[1])

    async def waiting(self, tasks: Sequence[int]) -> dict[int, int]:
        sql = f"SELECT task, waits_for FROM open_tasks WHERE {self._driver.any_of('task', '$1')}"
        return {row[0]: row[1] for row in await self._driver.rows(sql, self._driver.list_value(tasks))}
