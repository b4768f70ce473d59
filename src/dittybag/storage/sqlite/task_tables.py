"""The tables that follow from tasks: their edges, the open tasks with their labels, and the claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import apsw
from msgspec import Struct

_EDGES: Final = """SELECT tasks.id AS task, value AS blocker, 0 AS part FROM tasks, json_each(blocked_by)
                   UNION SELECT parent, id, 1 FROM tasks WHERE parent IS NOT NULL"""
_ENDED: Final = "('done', 'dropped')"
_OPEN_TASKS: Final = f"""
    WITH edges AS MATERIALIZED ({_EDGES}),
         waits AS MATERIALIZED (
             SELECT edges.task, count(*) AS number FROM edges JOIN tasks ON tasks.id = blocker
             WHERE tasks.status NOT IN {_ENDED} GROUP BY edges.task)
    SELECT id, status, user, project_id, coalesce(project, ''), assignee, priority, coalesce(due_date, '~'),
           coalesce(number, 0)
    FROM tasks LEFT JOIN waits ON waits.task = tasks.id WHERE status NOT IN {_ENDED}"""
_LABELS: Final = f"""SELECT DISTINCT value AS label, tasks.id AS task FROM tasks, json_each(labels)
                     WHERE status NOT IN {_ENDED}"""
#: A task that nobody works on has no claim.
_WRONG_CLAIMS: Final = "FROM claims WHERE task NOT IN (SELECT id FROM tasks WHERE status = 'doing')"


class WrongRows(Struct, frozen=True):
    """Tasks whose rows in a table differ from what follows from the tasks."""

    #: As in `edges`.
    label: str
    tasks: list[int]


def wrong_rows(connection: apsw.Connection) -> Iterator[WrongRows]:
    """Compare the tables with the tasks."""
    for label, expected, table in (
        ("edges", _EDGES, "task_edges"),
        ("open tasks", _OPEN_TASKS, "open_tasks"),
        ("labels", f"SELECT task, label FROM ({_LABELS})", "(SELECT task, label FROM open_labels)"),
    ):
        wanted, found = (set(connection.execute(sql)) for sql in (expected, f"SELECT * FROM {table}"))
        if differing := sorted({row[0] for row in wanted ^ found}):
            yield WrongRows(label, differing)
    claims: list[Any] = connection.execute(f"SELECT task {_WRONG_CLAIMS} ORDER BY task").fetchall()
    if claims:
        yield WrongRows("claims", [task for (task,) in claims])


def rebuild_task_tables(connection: apsw.Connection) -> None:
    """Fill the tables again, and remove claims of tasks that nobody works on."""
    for table, sql in (("task_edges", _EDGES), ("open_tasks", _OPEN_TASKS), ("open_labels", _LABELS)):
        connection.execute(f"DELETE FROM {table}")
        connection.execute(f"INSERT INTO {table} {sql}")
    connection.execute(f"DELETE {_WRONG_CLAIMS}")
