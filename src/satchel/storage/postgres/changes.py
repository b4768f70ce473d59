"""The change log in PostgreSQL."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from satchel.domain.changes import KINDS, Change, ChangeNews, Kind
from satchel.storage.postgres.connections import Connection
from satchel.storage.postgres.rows import Bindings, all_rows, first_row, value
from satchel.storage.readings import change_of, news_of

#: Beyond every sequence number.
_FAR: Final = (1 << 63) - 1

#: What a thing was called before and after a change: its name, its title and its URI.
_NAMES: Final = ", ".join(
    f"{state}::json ->> '{field}'" for state in ("before", "after") for field in ("name", "title", "uri")
)

_COLUMNS: Final = "seq, batch, at, actor, action, kind, entity, project, before, after"


class ChangeTable:
    """Reading the log."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def _some(self, rest: str, *values: Any) -> list[Change]:
        rows = await all_rows(self._connection, f"SELECT {_COLUMNS} FROM changes {rest}", *values)
        return [change_of(row) for row in rows]

    async def get(self, seq: int) -> Change | None:
        if not 0 < seq <= _FAR:
            return None
        row = await first_row(self._connection, f"SELECT {_COLUMNS} FROM changes WHERE seq = $1", seq)
        return None if row is None else change_of(row)

    async def batch(self, batch: int) -> list[Change]:
        # What was done together has no gap in it.
        return await self._some(
            """WHERE seq >= $1 AND seq < coalesce(
                   (SELECT seq FROM changes WHERE seq >= $1 AND batch <> $1 ORDER BY seq LIMIT 1), $2)
               ORDER BY seq""",
            batch,
            _FAR,
        )

    async def page(
        self,
        project: int | None,
        *,
        kind: Kind | None,
        entity: str | None,
        before: int | None,
        limit: int,
        name: str | None = None,
        actor: str | None = None,
        since: int | None = None,
        user: str | None = None,
    ) -> list[Change]:
        before = _FAR if before is None else max(0, min(before, _FAR))
        bindings = Bindings(before, limit)
        conditions = ["seq < $1"]
        if project is not None:
            conditions.append(f"(project = {bindings.add(project)} OR project IS NULL)")
        if user is not None:
            whose = f"coalesce(after, before)::json ->> 'user' = {bindings.add(user)}"
            conditions.append(f"(kind <> 'task' OR {whose})")
        if entity is not None:
            kinds = list(KINDS) if kind is None else [kind]
            conditions.append(f"kind = ANY({bindings.add(kinds)}) AND entity = {bindings.add(entity)}")
        else:
            if kind is not None:
                conditions.append(f"kind = {bindings.add(kind)}")
            if actor is not None:
                conditions.append(f"actor = {bindings.add(actor)}")
            if since is not None:
                conditions.append(f"at >= {bindings.add(since)}")
            if name is not None:
                named = f"SELECT kind, entity FROM changes WHERE {bindings.add(name)} IN ({_NAMES})"
                conditions.append(f"(kind, entity) IN ({named})")
        rest = f"WHERE {' AND '.join(conditions)} ORDER BY seq DESC LIMIT $2"
        return await self._some(rest, *bindings.values)

    async def since(self, seq: int, limit: int, *, kind: Kind | None = None) -> list[Change]:
        bindings = Bindings(seq, limit)
        narrowed = "" if kind is None else f"AND kind = {bindings.add(kind)}"
        return await self._some(f"WHERE seq > $1 {narrowed} ORDER BY seq LIMIT $2", *bindings.values)

    async def latest(self, kind: Kind, entity: str) -> Change | None:
        rest = "WHERE kind = $1 AND entity = $2 ORDER BY seq DESC LIMIT 1"
        found = await self._some(rest, kind, entity)
        return found[0] if found else None


async def append(connection: Connection, change: Change) -> None:
    """Log a change."""
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
        None if change.before is None else msgspec.json.encode(change.before).decode(),
        None if change.after is None else msgspec.json.encode(change.after).decode(),
    )


async def newest(connection: Connection) -> int:
    """The sequence number of the last change."""
    return int(await value(connection, "SELECT coalesce(max(seq), 0) FROM changes"))


async def news_since(connection: Connection, seq: int, limit: int) -> list[tuple[int, ChangeNews]]:
    """What has changed after `seq`, up to `limit` changes."""
    rows = await all_rows(
        connection,
        """SELECT seq, kind, project,
                  CASE kind WHEN 'resource' THEN before END, CASE kind WHEN 'resource' THEN after END
           FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2""",
        seq,
        limit,
    )
    return [(row[0], news_of(row)) for row in rows]
