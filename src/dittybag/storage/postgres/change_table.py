"""The change log in PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from dittybag.domain.changes import Change, ChangeNotification
from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.ports import PurgedStates
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.text import fold
from dittybag.storage.postgres.connections import PostgresConnection
from dittybag.storage.postgres.row_security import RowSecurity
from dittybag.storage.postgres.rows import Bindings, Row, all_rows, first_row, value
from dittybag.storage.row_mapping import change_from_row, notification_from_row, state_to_json

#: The largest possible `seq`.
_MAX_SEQ: Final = (1 << 63) - 1

#: The names, titles and URIs of the entity before and after a change.
_NAMES: Final = ", ".join(
    f"{state}::json ->> '{field}'" for state in ("before", "after") for field in ("name", "title", "uri")
)

_NAME_COUNT: Final = 6

#: The same, but each state is parsed once.
_ALL_NAMES: Final = " ".join(
    f"LEFT JOIN LATERAL json_to_record({state}::json) AS {name}(name text, title text, uri text) ON true"
    for state, name in (("before", "was"), ("after", "becomes"))
)

#: The size of a change. PostgreSQL does not read the texts for it.
_BYTES: Final = "coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0)"

#: The changes of a batch follow each other without others in between.
_IN_BATCH: Final = """seq >= $1 AND seq < coalesce(
    (SELECT seq FROM changes WHERE seq >= $1 AND batch <> $1 ORDER BY seq LIMIT 1), $2)"""

_COLUMNS: Final = "seq, batch, at, actor, action, kind, entity, project, before, after"

#: SQL for the id and the address of entities, up to the condition on their ids.
_ADDRESSES: Final[dict[Kind, str]] = {
    "project": "id, name FROM projects WHERE id",
    "prompt": "id, id FROM prompts WHERE id",
    "resource": "id, uri FROM resources WHERE id",
    "task": "id, id FROM tasks WHERE id",
}

#: In microseconds.
_DAY: Final = 86_400_000_000


class ChangeTable:
    """See `dittybag.domain.ports.ChangeRepository`."""

    def __init__(self, connection: PostgresConnection, row_security: RowSecurity) -> None:
        self._connection = connection
        self._row_security = row_security

    async def _select(self, rest: str, *values: Any) -> list[Change]:
        rows = await all_rows(self._connection, f"SELECT {_COLUMNS} FROM changes {rest}", *values)
        return [change_from_row(row) for row in rows]

    async def get(self, seq: int) -> Change | None:
        if not 0 < seq <= _MAX_SEQ:
            return None
        row = await first_row(self._connection, f"SELECT {_COLUMNS} FROM changes WHERE seq = $1", seq)
        return None if row is None else change_from_row(row)

    async def batch(self, batch: int, limit: int | None = None) -> list[Change]:
        return await self._select(f"WHERE {_IN_BATCH} ORDER BY seq LIMIT $3", batch, _MAX_SEQ, limit)

    async def batch_size(self, batch: int) -> int:
        sql = f"SELECT count(*) FROM changes WHERE {_IN_BATCH}"
        async with self._row_security.as_operator():
            return int(await value(self._connection, sql, batch, _MAX_SEQ))

    async def page(self, query: ChangeQuery) -> list[Change]:
        if query.text is not None:
            found = await self.by_seqs([seq for seq, _ in await self.find_seqs(query)])
            return found[::-1] if query.oldest_first else found
        return [change_from_row(row) for row in await self._find(_COLUMNS, query)]

    async def _find(self, columns: str, query: ChangeQuery) -> list[Row]:
        """Return columns of the matching changes."""
        bindings = Bindings()
        conditions = _conditions(query, bindings)
        rest = f"WHERE {' AND '.join(conditions)} ORDER BY seq {'' if query.oldest_first else 'DESC'}"
        if query.text is None:
            sql = f"SELECT {columns} FROM changes {rest} LIMIT {bindings.add(query.limit)}"
            return await all_rows(self._connection, sql, *bindings.values)
        term = fold(query.text)
        sql = f"SELECT {columns}, was.*, becomes.* FROM changes {_ALL_NAMES} {rest}"
        named = await all_rows(self._connection, sql, *bindings.values)
        found = (
            row for row in named if any(name and term in fold(name) for name in row[len(row) - _NAME_COUNT :])
        )
        return list(islice(found, query.limit))

    async def latest(self, kind: Kind, entity: str) -> Change | None:
        rest = "WHERE kind = $1 AND entity = $2 ORDER BY seq DESC LIMIT 1"
        found = await self._select(rest, kind, entity)
        return found[0] if found else None

    async def newest_seq(self) -> int:
        return await newest_seq(self._connection)

    async def find_seqs(self, query: ChangeQuery) -> list[tuple[int, int]]:
        return [(row[0], row[1]) for row in await self._find(f"seq, {_BYTES}", query)]

    async def by_seqs(self, seqs: Sequence[int]) -> list[Change]:
        return await self._select("WHERE seq = ANY($1) ORDER BY seq DESC", seqs) if seqs else []

    async def window_start(self, before: int, count: int, size: int) -> int:
        sql = f"""SELECT min(seq) FROM (
                     SELECT seq, sum({_BYTES}) OVER (ORDER BY seq DESC) AS bytes
                     FROM changes WHERE seq >= $1 AND seq < $2) AS counted
                 WHERE bytes <= $3 OR seq = $4"""
        before = max(min(before, _MAX_SEQ), 1)
        found = await value(self._connection, sql, before - count, before, size, before - 1)
        return before if found is None else int(found)

    async def actors(self, query: ChangeQuery) -> list[str]:
        found = {row[0] for row in await self._find("actor", replace(query, limit=None))}
        return sorted(found)[: query.limit]

    async def count_per_day(self, query: ChangeQuery) -> list[tuple[int, str, int]]:
        counts = Counter((row[0], row[1]) for row in await self._find(f"at / {_DAY}, actor", query))
        return [(day, actor, count) for (day, actor), count in counts.items()]

    async def addresses(self, kind: Kind, ids: Sequence[str]) -> dict[str, str]:
        # The log stores numeric ids as text.
        values: Sequence[Any] = ids if kind in ("prompt", "resource") else [int(text) for text in ids]
        rows = await all_rows(self._connection, f"SELECT {_ADDRESSES[kind]} = ANY($1)", values)
        return {str(row[0]): str(row[1]) for row in rows}


def _conditions(query: ChangeQuery, bindings: Bindings) -> list[str]:
    """Return the SQL conditions of a query on the columns of a change."""
    before = _MAX_SEQ if query.before is None else query.before
    conditions = [
        f"seq > {bindings.add(max(0, min(query.after, _MAX_SEQ)))}",
        f"seq < {bindings.add(max(0, min(before, _MAX_SEQ)))}",
    ]
    if query.project is not None:
        conditions.append(f"(project = {bindings.add(query.project)} OR project IS NULL)")
    if query.kind is not None or query.entity is not None:
        conditions.append(
            f"kind = ANY({bindings.add(list(ENTITY_TYPES) if query.kind is None else [query.kind])})"
        )
    if query.entity is not None:
        conditions.append(f"entity = {bindings.add(query.entity)}")
    if query.name is not None:
        named = f"SELECT kind, entity FROM changes WHERE {bindings.add(query.name)} IN ({_NAMES})"
        conditions.append(f"(kind, entity) IN ({named})")
    if query.actor is not None:
        conditions.append(f"actor = {bindings.add(query.actor)}")
    if query.since is not None:
        conditions.append(f"at >= {bindings.add(query.since)}")
    if query.user is not None:
        whose = f"coalesce(after, before)::json ->> 'user' = {bindings.add(query.user)}"
        conditions.append(f"(kind <> 'task' OR {whose})")
    return conditions


async def append(connection: PostgresConnection, change: Change) -> None:
    """Append a change to the log."""
    await connection.execute(
        f"INSERT INTO changes ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        change.seq,
        change.batch,
        change.at,
        change.actor,
        change.action,
        change.kind,
        change.entity,
        change.project,
        state_to_json(change.before),
        state_to_json(change.after),
    )


async def purge_states(connection: PostgresConnection, states: Sequence[PurgedStates]) -> None:
    """Replace states of changes by what the log keeps of them."""
    await connection.execute(
        """UPDATE changes SET before = coalesce(purged.before, changes.before),
                              after = coalesce(purged.after, changes.after)
           FROM unnest($1::bigint[], $2::text[], $3::text[]) AS purged (seq, before, after)
           WHERE changes.seq = purged.seq""",
        [item.seq for item in states],
        [state_to_json(item.before) for item in states],
        [state_to_json(item.after) for item in states],
    )


async def newest_seq(connection: PostgresConnection) -> int:
    """Return the `seq` of the last change; 0 if there is none."""
    return int(await value(connection, "SELECT coalesce(max(seq), 0) FROM changes"))


async def newest_seq_then_set_viewer(connection: PostgresConnection, viewer: str) -> int:
    """Return the same, and set the viewer for the rest of the transaction.

    The viewer need not be able to see that change.
    """
    sql = """WITH found AS MATERIALIZED (SELECT coalesce(max(seq), 0) AS seq FROM changes)
             SELECT seq, set_config('dittybag.viewer', $1, true) FROM found"""
    return int((await connection.fetchrow(sql, viewer))[0])


async def notifications_since(
    connection: PostgresConnection, seq: int, limit: int
) -> list[tuple[int, ChangeNotification]]:
    """Return the notifications of up to `limit` changes after `seq`, each with its `seq`."""
    rows = await all_rows(
        connection,
        """SELECT seq, kind, project,
                  CASE kind WHEN 'resource' THEN before END, CASE kind WHEN 'resource' THEN after END
           FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2""",
        seq,
        limit,
    )
    return [(row[0], notification_from_row(row)) for row in rows]
