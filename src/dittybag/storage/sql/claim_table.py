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


class ClaimTable:
    """See `dittybag.domain.ports.ClaimRepository`."""

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
        await self._driver.run(_PUT, *(getattr(claim, name) for name in _NAMES))

    async def renew(self, connection: str, now: int) -> int:
        sql = "UPDATE claims SET until = CAST($2 AS bigint) + lease WHERE connection = $1 AND until > $2"
        return await self._driver.run(sql, connection, now)

    async def ready(self, query: ReadyQuery) -> list[int]:
        sql, bindings = self._ready_sql(query)
        return [row[0] for row in await self._driver.rows(sql, *bindings.values)]

    async def count_ready(self, query: ReadyQuery) -> int:
        sql, bindings = self._ready_sql(query)
        return int(await self._driver.value(f"SELECT count(*) FROM ({sql}) AS found", *bindings.values))

    def _ready_sql(self, query: ReadyQuery) -> tuple[str, Bindings]:
        bindings = Bindings(query.user)
        conditions = [visible_tasks(self._driver, query.view, bindings, "$1", table="open_tasks.")]
        if query.project is not None:
            conditions.append(f"project = {bindings.add(query.project)}")
        for label in query.labels:
            has_label = self._driver.has_item("labels", bindings.add(label))
            conditions.append(
                f"EXISTS (SELECT 1 FROM tasks WHERE tasks.id = open_tasks.task AND {has_label})"
            )
        names = ", ".join(map(bindings.add, query.names)) or "NULL"
        conditions.append("waits_for = 0")
        wanted = " AND ".join(conditions)
        now, limit = bindings.add(query.now), bindings.add(query.limit)
        columns = "open_tasks.task AS task, priority, due"
        # Two queries, each with its own index.
        todo = f"""SELECT {columns} FROM open_tasks
                   WHERE status = 'todo' AND {wanted} AND (assignee IS NULL OR assignee IN ({names}))
                   {_ORDER} LIMIT {limit}"""
        lapsed = f"""SELECT {columns} FROM claims JOIN open_tasks ON open_tasks.task = claims.task
                     WHERE until <= {now} AND status = 'doing' AND {wanted} {_ORDER} LIMIT {limit}"""
        found = f"SELECT * FROM ({todo}) AS todo UNION ALL SELECT * FROM ({lapsed}) AS lapsed"
        return f"SELECT task FROM ({found}) AS found {_ORDER} LIMIT {limit}", bindings

    async def next_lapse(self, now: int) -> int | None:
        found = await self._driver.value("SELECT min(until) FROM claims WHERE until > $1", now)
        return None if found is None else int(found)
