"""Fills the search indexes and the tables that follow from prompts and tasks again."""

from __future__ import annotations

from typing import Final

from dittybag.domain.entities import ENTITY_TYPES
from dittybag.storage.sqlite.sqlite_connections import OpenFiles, connect, translate_errors
from dittybag.storage.sqlite.sqlite_driver import run_synchronously
from dittybag.storage.sqlite.sqlite_queries import SqliteTables
from dittybag.storage.sqlite.sqlite_text_search import FULL_TEXT_INDEXES, INDEXES

#: The number of entities that are read at a time: each may have a mebibyte of text.
_BATCH: Final = 50

_EDGES: Final = """SELECT tasks.id AS task, value AS blocker, 0 AS part FROM tasks, json_each(blocked_by)
                   UNION SELECT parent, id, 1 FROM tasks WHERE parent IS NOT NULL"""
_ENDED: Final = "('done', 'dropped')"

#: What each table that triggers maintain contains.
_DERIVED: Final = {
    "prompt_tags": "SELECT project, value, updated_at, number FROM prompts, json_each(prompts.tags)",
    "prompt_counts": "SELECT project, count(*) FROM prompts GROUP BY project",
    "tag_counts": """SELECT project, value, count(*) FROM prompts, json_each(prompts.tags)
                     GROUP BY project, value""",
    "task_edges": _EDGES,
    "open_tasks": f"""
        WITH edges AS MATERIALIZED ({_EDGES}),
             waits AS MATERIALIZED (
                 SELECT edges.task, count(*) AS number FROM edges JOIN tasks ON tasks.id = blocker
                 WHERE tasks.status NOT IN {_ENDED} GROUP BY edges.task)
        SELECT id, status, user, project_id, coalesce(project, ''), assignee, priority,
               coalesce(due_date, '~'), coalesce(number, 0)
        FROM tasks LEFT JOIN waits ON waits.task = tasks.id WHERE status NOT IN {_ENDED}""",
    "open_labels": f"""SELECT DISTINCT value, tasks.id FROM tasks, json_each(labels)
                       WHERE status NOT IN {_ENDED}""",
}


def rebuild_indexes(path: str) -> None:
    """Rebuild the search indexes and the tables that triggers maintain.

    Readers see the old ones until the commit.
    """
    connection = connect(path, writable=True)
    try:
        with translate_errors(path):
            connection.execute("BEGIN IMMEDIATE")
            files = OpenFiles(path)
            for index in FULL_TEXT_INDEXES:
                connection.execute(f"INSERT INTO {index} ({index}) VALUES ('delete-all')")
            run_synchronously(_index_entities(SqliteTables(connection)))
            for table, expected in _DERIVED.items():
                connection.execute(f"DELETE FROM {table}")
                connection.execute(f"INSERT INTO {table} {expected}")
            # A task that nobody works on has no claim.
            connection.execute(
                "DELETE FROM claims WHERE task NOT IN (SELECT id FROM tasks WHERE status = 'doing')"
            )
            files.require_in_place()
            connection.execute("COMMIT")
    finally:
        # Closing rolls back an uncommitted transaction.
        connection.close()


async def _index_entities(tables: SqliteTables) -> None:
    for kind in INDEXES:
        key, last = ENTITY_TYPES[kind].key, 0
        clauses = f"WHERE {key} > $1 ORDER BY {key} LIMIT {_BATCH}"
        while entities := await tables.rows[kind].select(clauses, last):
            for entity in entities:
                last = getattr(entity, key)
                await tables.queries.index(kind, None, entity, tables.contents.read)
    tables.queries.pending.write()
