"""Projects."""

from __future__ import annotations

from dittybag.domain.projects import Project, ProjectSize
from dittybag.domain.queries import OWN_TASKS, TaskView
from dittybag.domain.text import fold
from dittybag.storage.sql.entity_rows import EntityRows, columns_sql
from dittybag.storage.sql.native_queries import NativeQueries
from dittybag.storage.sql.prompt_table import PROMPT_COUNT
from dittybag.storage.sql.resource_table import resource_count
from dittybag.storage.sql.sql_driver import Bindings, SqlDriver
from dittybag.storage.sql.task_boards import OPEN
from dittybag.storage.sql.task_visibility import visible_source


class ProjectTable:
    """Projects."""

    def __init__(self, driver: SqlDriver, rows: EntityRows, native: NativeQueries) -> None:
        self._driver = driver
        self._rows = rows
        self._native = native
        # Built once: nearly every use case looks for its project.
        self._by_id, self._by_name = (rows.select_sql("WHERE id = $1"), rows.select_sql("WHERE name = $1"))

    async def get(self, id: int) -> Project | None:
        row = await self._driver.row(self._by_id, id)
        return None if row is None else self._rows.from_row(row)

    async def by_name(self, name: str) -> Project | None:
        row = await self._driver.row(self._by_name, name)
        return None if row is None else self._rows.from_row(row)

    async def all(self) -> list[ProjectSize]:
        rows = await self._driver.rows(
            f"""SELECT {columns_sql("project")},
                       coalesce((SELECT count FROM prompt_counts WHERE project = projects.id), 0),
                       {resource_count(self._native, "counts.project = projects.id")},
                       coalesce(found, 0)
                FROM projects
                LEFT JOIN (SELECT project, count(*) AS found FROM tasks GROUP BY project) AS counted
                       ON counted.project = projects.name
                ORDER BY id"""
        )
        return [
            ProjectSize(project=self._rows.from_row(row), prompts=row[-3], resources=row[-2], tasks=row[-1])
            for row in rows
        ]

    async def names(self, prefix: str, limit: int) -> list[str]:
        """Return names that start with `prefix`, ignoring case."""
        rows = await self._driver.rows("SELECT name FROM projects ORDER BY name")
        return [row[0] for row in rows if fold(row[0]).startswith(fold(prefix))][:limit]

    async def count_contents(self, id: int, user: str, view: TaskView = OWN_TASKS) -> tuple[int, int, int]:
        """Count the prompts and resources of a project and the open tasks of a user."""
        bindings = Bindings(id, user)
        tasks, visible = visible_source(self._driver, view, bindings, "$2")
        sql = f"""SELECT {PROMPT_COUNT},
                         {resource_count(self._native, "project = $1")},
                         (SELECT count(*) FROM {tasks} WHERE {visible} AND {OPEN})"""
        row = await self._driver.row(sql, *bindings.values)
        return (0, 0, 0) if row is None else (row[0], row[1], row[2])
