"""The change log in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import apsw
import msgspec

from dittybag.domain.changes import Change, ChangeNotification
from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.ports import PurgedStates
from dittybag.domain.text import fold
from dittybag.storage.row_mapping import change_from_row, notification_from_row, state_to_json
from dittybag.storage.sqlite.rows import Row, all_rows, first_row, value

#: The largest possible `seq`.
_MAX_SEQ: Final = (1 << 63) - 1

#: The condition of the partial index on entities; a query must repeat it to use the index.
_INDEXED: Final = "(action <> 'create' OR kind IN ('project', 'task'))"

#: The tables whose numbers are those of the changes that created the rows.
_NUMBERED: Final[dict[Kind, str]] = {"prompt": "prompts", "resource": "resources"}

#: Whether the entity had this name, title or URI before or after a change.
_NAMED: Final = "({})".format(
    " OR ".join(
        f"{state} ->> '{field}' = :name"
        for state in ("before", "after")
        for field in ("name", "title", "uri")
    )
)

_COLUMNS: Final = "seq, coalesce(batch, seq), at, actor, action, kind, entity, project, before, after"

#: The size of a change. SQLite does not read the texts for it.
_BYTES: Final = "coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0)"

_ALL_NAMES: Final = ", ".join(
    f"{state} ->> '{field}'" for state in ("before", "after") for field in ("name", "title", "uri")
)

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

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def get(self, seq: int) -> Change | None:
        if not 0 < seq < 1 << 63:
            return None
        row = first_row(self._connection, f"SELECT {_COLUMNS} FROM changes WHERE seq = ?", (seq,))
        return None if row is None else change_from_row(row)

    async def batch(self, batch: int, limit: int | None = None) -> list[Change]:
        # The changes of a batch follow each other without others in between.
        found: list[Change] = []
        for row in self._connection.execute(
            f"SELECT {_COLUMNS} FROM changes WHERE seq >= ? ORDER BY seq", (batch,)
        ):
            if row[1] != batch or len(found) == limit:
                break
            found.append(change_from_row(row))
        return found

    async def batch_size(self, batch: int) -> int:
        # Only the second and later changes of a batch have its number; the next change without it ends the
        # batch. There may be gaps: an import keeps the `seq` of changes from elsewhere.
        sql = """SELECT count(*) FROM changes
                 WHERE seq >= :batch AND coalesce(batch, seq) = :batch AND seq < coalesce(
                     (SELECT seq FROM changes WHERE seq > :batch AND batch IS NOT :batch
                      ORDER BY seq LIMIT 1), 9223372036854775807)"""
        return int(value(self._connection, sql, {"batch": batch}))

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
        before = _MAX_SEQ if before is None else max(0, min(before, _MAX_SEQ))
        if entity is not None:
            kinds = ENTITY_TYPES if kind is None else (kind,)
            found = [change for name in kinds for change in self._entity_changes(name, entity, before, limit)]
            found.sort(key=lambda change: change.seq, reverse=True)
            return [
                change
                for change in found
                if (project is None or change.project in (None, project)) and _is_visible_to(user, change)
            ][:limit]
        conditions = ["seq < :before"]
        conditions += _visibility_conditions(project, user)
        if kind is not None:
            # Without the index: the newest changes are at the end of the log.
            conditions.append("+kind = :kind")
        if actor is not None:
            conditions.append("actor = :actor")
        if since is not None:
            conditions.append("at >= :since")
        if name is not None:
            conditions.append(f"(kind, entity) IN (SELECT kind, entity FROM changes WHERE {_NAMED})")
        rows = all_rows(
            self._connection,
            f"SELECT {_COLUMNS} FROM changes WHERE {' AND '.join(conditions)} ORDER BY seq DESC LIMIT :limit",
            {
                "before": before,
                "project": project,
                "kind": kind,
                "actor": actor,
                "since": since,
                "name": name,
                "user": user,
                "limit": limit,
            },
        )
        return [change_from_row(row) for row in rows]

    async def since(self, seq: int, limit: int, *, kind: Kind | None = None) -> list[Change]:
        narrowed = "" if kind is None else "AND kind = :kind"
        rows = all_rows(
            self._connection,
            f"SELECT {_COLUMNS} FROM changes WHERE seq > :seq {narrowed} ORDER BY seq LIMIT :limit",
            {"seq": seq, "kind": kind, "limit": limit},
        )
        return [change_from_row(row) for row in rows]

    async def latest(self, kind: Kind, entity: str) -> Change | None:
        found = self._entity_changes(kind, entity, _MAX_SEQ, 1)
        return found[0] if found else None

    async def newest_seq(self) -> int:
        return newest_seq(self._connection)

    async def find_seqs(
        self,
        project: int | None,
        *,
        after: int,
        before: int,
        limit: int,
        oldest_first: bool = False,
        kind: Kind | None = None,
        actor: str | None = None,
        text: str | None = None,
        user: str | None = None,
    ) -> list[tuple[int, int]]:
        conditions = [*_visibility_conditions(project, user), "seq > :after AND seq < :before"]
        if kind is not None:
            conditions.append("+kind = :kind")
        if actor is not None:
            conditions.append("actor = :actor")
        rest = f"FROM changes WHERE {' AND '.join(conditions)} ORDER BY seq {'' if oldest_first else 'DESC'}"
        bindings = {
            "project": project,
            "user": user,
            "after": max(min(after, _MAX_SEQ), 0),
            "before": max(min(before, _MAX_SEQ), 0),
            "kind": kind,
            "actor": actor,
            "limit": limit,
        }
        if text is None:
            rows = all_rows(self._connection, f"SELECT seq, {_BYTES} {rest} LIMIT :limit", bindings)
            return [(row[0], row[1]) for row in rows]
        term = fold(text)
        named = self._connection.execute(f"SELECT seq, {_BYTES}, {_ALL_NAMES} {rest}", bindings)
        found = (
            (seq, size) for seq, size, *names in named if any(name and term in fold(name) for name in names)
        )
        return list(islice(found, limit))

    async def by_seqs(self, seqs: Sequence[int]) -> list[Change]:
        sql = (
            f"SELECT {_COLUMNS} FROM changes WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq DESC"
        )
        rows = all_rows(self._connection, sql, (msgspec.json.encode(seqs).decode(),))
        return [change_from_row(row) for row in rows]

    async def window_start(self, before: int, count: int, size: int) -> int:
        sql = f"""SELECT min(seq) FROM (
                     SELECT seq, sum({_BYTES}) OVER (ORDER BY seq DESC) AS bytes
                     FROM changes WHERE seq >= :from AND seq < :before)
                 WHERE bytes <= :size OR seq = :last"""
        before = max(min(before, _MAX_SEQ), 1)
        bindings = {"from": before - count, "before": before, "size": size, "last": before - 1}
        found = value(self._connection, sql, bindings)
        return before if found is None else int(found)

    async def actors(self, project: int | None, *, after: int, limit: int, user: str | None) -> list[str]:
        conditions = " AND ".join([*_visibility_conditions(project, user), "seq > :after"])
        sql = f"SELECT DISTINCT actor FROM changes WHERE {conditions} ORDER BY actor LIMIT :limit"
        bindings = {"project": project, "user": user, "after": after, "limit": limit}
        return [row[0] for row in all_rows(self._connection, sql, bindings)]

    async def count_per_day(
        self, project: int, *, after: int, before: int, user: str | None
    ) -> list[tuple[int, str, int]]:
        conditions = " AND ".join([*_visibility_conditions(project, user), "seq > :after AND seq < :before"])
        sql = (
            f"SELECT at / {_DAY} AS day, actor, count(*) FROM changes WHERE {conditions} GROUP BY day, actor"
        )
        rows = all_rows(
            self._connection, sql, {"project": project, "user": user, "after": after, "before": before}
        )
        return [(row[0], row[1], row[2]) for row in rows]

    async def addresses(self, kind: Kind, ids: Sequence[str]) -> dict[str, str]:
        sql = f"SELECT {_ADDRESSES[kind]} IN (SELECT value FROM json_each(:ids))"
        # The log stores numeric ids as text.
        values: Sequence[Any] = ids if kind in _NUMBERED else [int(text) for text in ids]
        rows = all_rows(self._connection, sql, {"ids": msgspec.json.encode(values).decode()})
        return {str(row[0]): str(row[1]) for row in rows}

    def _entity_changes(self, kind: Kind, entity: str, before: int, limit: int) -> list[Change]:
        """Return the changes of one entity, newest first."""
        rows = all_rows(
            self._connection,
            f"""SELECT {_COLUMNS} FROM changes WHERE kind = ? AND entity = ? AND seq < ? AND {_INDEXED}
                ORDER BY seq DESC LIMIT ?""",
            (kind, entity, before, limit),
        )
        if kind in _NUMBERED and len(rows) < limit:
            rows += self._creating_change(_NUMBERED[kind], entity, before)
        return [change_from_row(row) for row in rows]

    def _creating_change(self, table: str, entity: str, before: int) -> list[Row]:
        """Return the change that created an entity. Its `seq` is the number of the entity."""
        number = value(self._connection, f"SELECT number FROM {table} WHERE id = ?", (entity,))
        if number is None:
            # The entity is deleted. The change that deleted it contains its number.
            number = value(
                self._connection,
                f"""SELECT coalesce(after, before) ->> 'number' FROM changes
                    WHERE kind = ? AND entity = ? AND {_INDEXED} LIMIT 1""",
                (table.removesuffix("s"), entity),
            )
        sql = f"SELECT {_COLUMNS} FROM changes WHERE seq = ? AND entity = ? AND seq < ?"
        return all_rows(self._connection, sql, (number, entity, before))


def _visibility_conditions(project: int | None, user: str | None) -> list[str]:
    """SQL conditions for changes of a project, or of all, that a user can see. Bind :project and :user."""
    conditions = [] if project is None else ["(project = :project OR project IS NULL)"]
    if user is not None:
        conditions.append("(kind <> 'task' OR coalesce(after, before) ->> 'user' = :user)")
    return conditions


def _is_visible_to(user: str | None, change: Change) -> bool:
    """Whether a user can see a change: of tasks, only their own."""
    state = change.state
    return user is None or change.kind != "task" or getattr(state, "user", "") == user


def append(connection: apsw.Connection, change: Change) -> None:
    """Append a change to the log."""
    connection.execute(
        """INSERT INTO changes (seq, batch, at, actor, action, kind, entity, project, before, after)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            change.seq,
            None if change.batch == change.seq else change.batch,
            change.at,
            change.actor,
            change.action,
            change.kind,
            change.entity,
            change.project,
            state_to_json(change.before),
            state_to_json(change.after),
        ),
    )


def purge_states(connection: apsw.Connection, states: Sequence[PurgedStates]) -> None:
    """Replace states of changes by what the log keeps of them."""
    connection.executemany(
        "UPDATE changes SET before = coalesce(?, before), after = coalesce(?, after) WHERE seq = ?",
        ((state_to_json(item.before), state_to_json(item.after), item.seq) for item in states),
    )


def newest_seq(connection: apsw.Connection) -> int:
    """Return the `seq` of the last change; 0 if there is none."""
    row = first_row(connection, "SELECT max(seq) FROM changes")
    return (row[0] if row else None) or 0


def notifications_since(
    connection: apsw.Connection, seq: int, limit: int
) -> list[tuple[int, ChangeNotification]]:
    """Return the notifications of up to `limit` changes after `seq`, each with its `seq`."""
    rows = all_rows(
        connection,
        """SELECT seq, kind, project,
                  iif(kind = 'resource', before, NULL), iif(kind = 'resource', after, NULL)
           FROM changes WHERE seq > ? ORDER BY seq LIMIT ?""",
        (seq, limit),
    )
    return [(row[0], notification_from_row(row)) for row in rows]
