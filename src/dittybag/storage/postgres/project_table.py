"""Projects in PostgreSQL."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dittybag.domain.entities import Kind
from dittybag.domain.projects import Project, ProjectSize
from dittybag.domain.text import fold
from dittybag.storage.postgres.connections import PostgresConnection
from dittybag.storage.postgres.quick_search import quick_search
from dittybag.storage.postgres.row_writes import ContentReader, KeyedTable
from dittybag.storage.postgres.rows import all_rows, first_row
from dittybag.storage.row_mapping import project_from_row

TABLE: Final = KeyedTable("projects", "id")

_COLUMNS = "id, name, created_at, updated_at, version"


class ProjectTable:
    """See `dittybag.domain.ports.ProjectRepository`."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    async def get(self, id: int) -> Project | None:
        row = await first_row(self._connection, f"SELECT {_COLUMNS} FROM projects WHERE id = $1", id)
        return None if row is None else project_from_row(row)

    async def by_name(self, name: str) -> Project | None:
        row = await first_row(self._connection, f"SELECT {_COLUMNS} FROM projects WHERE name = $1", name)
        return None if row is None else project_from_row(row)

    async def all(self) -> list[ProjectSize]:
        rows = await all_rows(
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
        names = (
            row[0] for row in await all_rows(self._connection, "SELECT name FROM projects ORDER BY name")
        )
        return [name for name in names if fold(name).startswith(fold(prefix))][:limit]

    async def count_contents(self, id: int, user: str) -> tuple[int, int, int]:
        sql = """SELECT (SELECT count(*) FROM prompts WHERE project = $1),
                        (SELECT count(*) FROM resources WHERE project = $1),
                        (SELECT count(*) FROM tasks WHERE "user" = $2 AND completed_at IS NULL)"""
        row = await first_row(self._connection, sql, id, user)
        return (0, 0, 0) if row is None else (row[0], row[1], row[2])

    async def quick_search(
        self, kind: Kind, project: int, user: str, query: str, limit: int
    ) -> list[tuple[str | int, str, str]]:
        return await quick_search(self._connection, kind, user if kind == "task" else project, query, limit)


async def select(connection: PostgresConnection, clauses: str, *values: Any) -> list[Project]:
    """Return the projects that a query with these clauses finds."""
    return [
        project_from_row(row)
        for row in await all_rows(connection, f"SELECT {_COLUMNS} FROM projects {clauses}", *values)
    ]


async def row_values(content: ContentReader, project: Project) -> dict[str, Any]:
    return msgspec.structs.asdict(project)
