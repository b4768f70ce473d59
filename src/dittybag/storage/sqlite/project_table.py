"""Projects in SQLite."""

from __future__ import annotations

from typing import Any, Final

import apsw
import msgspec

from dittybag.domain.entities import Kind
from dittybag.domain.projects import Project, ProjectSize
from dittybag.domain.text import fold
from dittybag.storage.row_mapping import project_from_row
from dittybag.storage.sqlite.quick_search import quick_search
from dittybag.storage.sqlite.row_writes import KeyedTable
from dittybag.storage.sqlite.rows import Bindings, all_rows, first_row

TABLE: Final = KeyedTable("projects", "id")

_COLUMNS = "id, name, created_at, updated_at, version"


class ProjectTable:
    """See `dittybag.domain.ports.ProjectRepository`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def get(self, id: int) -> Project | None:
        row = first_row(self._connection, f"SELECT {_COLUMNS} FROM projects WHERE id = ?", (id,))
        return None if row is None else project_from_row(row)

    async def by_name(self, name: str) -> Project | None:
        row = first_row(self._connection, f"SELECT {_COLUMNS} FROM projects WHERE name = ?", (name,))
        return None if row is None else project_from_row(row)

    async def all(self) -> list[ProjectSize]:
        rows = all_rows(
            self._connection,
            f"""SELECT {_COLUMNS},
                       (SELECT count(*) FROM prompts WHERE project = projects.id),
                       (SELECT count(*) FROM resources WHERE project = projects.id),
                       coalesce(found, 0)
                FROM projects
                LEFT JOIN (SELECT project, count(*) AS found FROM tasks GROUP BY project) AS counted
                       ON counted.project = projects.name
                ORDER BY id""",
        )
        return [
            ProjectSize(project=project_from_row(row), prompts=row[5], resources=row[6], tasks=row[7])
            for row in rows
        ]

    async def names(self, prefix: str, limit: int) -> list[str]:
        names = (row[0] for row in all_rows(self._connection, "SELECT name FROM projects ORDER BY name"))
        return [name for name in names if fold(name).startswith(fold(prefix))][:limit]

    async def count_contents(self, id: int, user: str) -> tuple[int, int, int]:
        sql = """SELECT (SELECT count(*) FROM prompts WHERE project = :id),
                        (SELECT count(*) FROM resources WHERE project = :id),
                        (SELECT count(*) FROM tasks WHERE user = :user AND completed_at IS NULL)"""
        prompts, resources, tasks = all_rows(self._connection, sql, {"id": id, "user": user})[0]
        return prompts, resources, tasks

    async def quick_search(
        self, kind: Kind, project: int, user: str, query: str, limit: int
    ) -> list[tuple[str | int, str, str]]:
        return quick_search(self._connection, kind, user if kind == "task" else project, query, limit)


def select(connection: apsw.Connection, clauses: str, bindings: Bindings) -> list[Project]:
    """Return the projects that a query with these clauses finds."""
    return [
        project_from_row(row)
        for row in all_rows(connection, f"SELECT {_COLUMNS} FROM projects {clauses}", bindings)
    ]


def row_values(connection: apsw.Connection, project: Project) -> dict[str, Any]:
    return msgspec.structs.asdict(project)
