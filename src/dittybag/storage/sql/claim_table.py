"""Claims of tasks, and the tasks that are ready to be claimed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dittybag.domain.claims import Claim, ReadyQuery
from dittybag.storage.sql.row_mapping import row_reader
from dittybag.storage.sql.sql_driver import Bindings, SqlDriver, is_number
from dittybag.storage.sql.task_visibility import visible_tasks

_NAMES: Final = Claim.__struct_fields__
_COLUMNS: Final = ", ".join(_NAMES)
_read_claim: Final = row_reader(Claim)

_PUT: Final = f"""INSERT INTO claims ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (task) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _NAMES[1:])}"""

_ORDER: Final = "ORDER BY priority DESC, due, task"
_FOUND: Final = "open_tasks.task AS task, priority, due"
#: As in the indexes.
_ASSIGNEE: Final = "coalesce(assignee, '')"
_HAS_LABEL: Final = "EXISTS (SELECT 1 FROM open_labels WHERE task = open_tasks.task AND label = {})"
#: SQLite reads the tables of a CROSS JOIN in this order; PostgreSQL knows how many rows there are.
_LAPSED_FIRST: Final = "claims CROSS JOIN open_tasks"
#: At most this many tasks with a label, or with a lapsed claim, are sorted.
_MAX_SORTED: Final = 1_000


class ClaimTable:
    """Who works on which task, and what is ready to be worked on. Claims are not in the change log."""

    def __init__(self, driver: SqlDriver) -> None:
        self._driver = driver

    async def get(self, task: int) -> Claim | None:
        found = await self._select("task = $1", task) if is_number(task) else []
        return found[0] if found else None

    async def _select(self, condition: str, *values: object) -> list[Claim]:
        sql = f"SELECT {_COLUMNS} FROM claims WHERE {condition} ORDER BY task"
        return [_read_claim(row) for row in await self._driver.rows(sql, *values)]

    async def of_connection(self, connection: str) -> list[Claim]:
        return await self._select("connection = $1", connection)

    async def of_tasks(self, tasks: Sequence[int]) -> list[Claim]:
        return await self._select(self._driver.any_of("task", "$1"), self._driver.list_value(tasks))

    async def put(self, claim: Claim) -> None:
        """Claim a task, or update its claim. The status of the task must be `doing`."""
        await self._driver.run(_PUT, *(getattr(claim, name) for name in _NAMES))

    async def renew(self, connection: str, now: int) -> int:
        """Renew the claims of a connection that have not lapsed. Returns their number."""
        sql = "UPDATE claims SET until = CAST($2 AS bigint) + lease WHERE connection = $1 AND until > $2"
        return await self._driver.run(sql, connection, now)

    async def ready(self, query: ReadyQuery) -> list[int]:
        """Return the ids of ready tasks, best first: by priority, due date and age."""
        sql, bindings = await self._ready_sql(query)
        return [row[0] for row in await self._driver.rows(sql, *bindings.values)]

    async def count_ready(self, query: ReadyQuery) -> int:
        """Count the ready tasks, up to the limit of the query."""
        sql, bindings = await self._ready_sql(query)
        return int(await self._driver.value(f"SELECT count(*) FROM ({sql}) AS found", *bindings.values))

    async def _ready_sql(self, query: ReadyQuery) -> tuple[str, Bindings]:
        bindings = Bindings(query.user)
        now, limit = bindings.add(query.now), bindings.add(query.limit)
        labels = [bindings.add(label) for label in query.labels]
        wanted = ["waits_for = 0"]
        if query.project is not None:
            kind = "IS NOT NULL" if query.project else "IS NULL"
            wanted.append(f"project = {bindings.add(query.project)} AND project_id {kind}")
        rarest = await self._rare_label(query.labels)
        wanted += [_HAS_LABEL.format(label) for place, label in enumerate(labels) if place != rarest]
        visible = visible_tasks(self._driver, query.view, bindings, "$1", table="open_tasks.")
        names = [bindings.add(name) for name in ("", *query.names)]
        if rarest is None:
            parts = [
                f"""SELECT {_FOUND} FROM open_tasks WHERE status = 'todo' AND {kind} AND {_ASSIGNEE} = {name}
                    AND {" AND ".join(wanted)} {_ORDER} LIMIT {limit}"""
                for kind in self._kinds(query, visible)
                for name in names
            ]
        else:
            parts = [
                f"""SELECT {_FOUND} FROM open_labels CROSS JOIN open_tasks
                    WHERE label = {labels[rarest]} AND open_tasks.task = open_labels.task AND status = 'todo'
                    AND {visible} AND {_ASSIGNEE} IN ({", ".join(names)}) AND {" AND ".join(wanted)}"""
            ]
            wanted.append(_HAS_LABEL.format(labels[rarest]))
        order = "open_tasks CROSS JOIN claims" if await self._have_many_lapsed(query.now) else _LAPSED_FIRST
        parts.append(
            f"""SELECT {_FOUND} FROM {order} WHERE open_tasks.task = claims.task AND until <= {now}
                AND status = 'doing' AND {visible} AND {" AND ".join(wanted)} {_ORDER} LIMIT {limit}"""
        )
        found = " UNION ALL ".join(f"SELECT * FROM ({part}) AS part{n}" for n, part in enumerate(parts))
        return f"SELECT task FROM ({found}) AS found {_ORDER} LIMIT {limit}", bindings

    async def _have_many_lapsed(self, now: int) -> bool:
        """Whether it is faster to go through the tasks in work by priority than to sort the lapsed claims."""
        sql = "SELECT count(*) FROM (SELECT 1 FROM claims WHERE until <= $1 LIMIT $2) AS found"
        return bool(await self._driver.value(sql, now, _MAX_SORTED) == _MAX_SORTED)

    @staticmethod
    def _kinds(query: ReadyQuery, visible: str) -> list[str]:
        """Return conditions for the tasks that are visible, each of which has an index in order."""
        own, shared = 'project_id IS NULL AND "user" = $1', f"project_id IS NOT NULL AND {visible}"
        if query.project is None:
            return [own, shared]
        return [shared if query.project else own]

    async def _rare_label(self, labels: Sequence[str]) -> int | None:
        """Return the place of the label that the fewest open tasks have; `None` if many have each of them.

        Tasks with a rare label are sorted. For a frequent one, it is faster to go through the ready tasks.
        """
        sql = "SELECT count(*) FROM (SELECT 1 FROM open_labels WHERE label = $1 LIMIT $2) AS found"
        counts = [int(await self._driver.value(sql, label, _MAX_SORTED)) for label in labels]
        fewest = min(counts, default=_MAX_SORTED)
        return counts.index(fewest) if fewest < _MAX_SORTED else None

    async def next_lapse(self, now: int) -> int | None:
        """Return when the next claim lapses."""
        found = await self._driver.value("SELECT min(until) FROM claims WHERE until > $1", now)
        return None if found is None else int(found)
