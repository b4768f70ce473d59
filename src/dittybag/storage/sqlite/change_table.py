"""The change log in SQLite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import apsw
import msgspec
from msgspec.structs import replace

from dittybag.domain.changes import Change, ChangeNotification
from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.ports import PurgedStates
from dittybag.domain.queries import ChangeQuery
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

_NAME_COUNT: Final = 6
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

    async def page(self, query: ChangeQuery) -> list[Change]:
        if query.text is not None:
            found = await self.by_seqs([seq for seq, _ in await self.find_seqs(query)])
            return found[::-1] if query.oldest_first else found
        return [change_from_row(row) for row in self._find(_COLUMNS, query)]

    def _find(self, columns: str, query: ChangeQuery) -> Iterator[Row]:
        """Yield columns of the matching changes, whatever their text. `seq` is the first of the columns."""
        conditions, bindings = _conditions(query)
        matching = f"SELECT {columns} FROM changes WHERE {' AND '.join(conditions)}"
        # Each of them can be read in the order of its index.
        selects = [f"{matching} AND {source}" for source in _entity_sources(query)] or [matching]
        order = f"ORDER BY seq {'' if query.oldest_first else 'DESC'} LIMIT :limit"
        yield from self._connection.execute(f"{' UNION ALL '.join(selects)} {order}", bindings)

    async def latest(self, kind: Kind, entity: str) -> Change | None:
        found = await self.page(ChangeQuery(kind=kind, entity=entity, limit=1))
        return found[0] if found else None

    async def newest_seq(self) -> int:
        return newest_seq(self._connection)

    async def find_seqs(self, query: ChangeQuery) -> list[tuple[int, int]]:
        rows = self._find_text(f"seq, {_BYTES}", query)
        return [(row[0], row[1]) for row in rows]

    def _find_text(self, columns: str, query: ChangeQuery) -> Iterator[Row]:
        """Yield columns of the matching changes."""
        if query.text is None:
            return self._find(columns, query)
        term = fold(query.text)
        named = self._find(f"{columns}, {_ALL_NAMES}", replace(query, text=None, limit=None))
        found = (row for row in named if any(name and term in fold(name) for name in row[-_NAME_COUNT:]))
        return islice(found, query.limit)

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

    async def actors(self, query: ChangeQuery) -> list[str]:
        found = {row[1] for row in self._find_text("seq, actor", replace(query, limit=None))}
        return sorted(found)[: query.limit]

    async def count_per_day(self, query: ChangeQuery) -> list[tuple[int, str, int]]:
        counts = Counter((row[1], row[2]) for row in self._find_text(f"seq, at / {_DAY}, actor", query))
        return [(day, actor, count) for (day, actor), count in counts.items()]

    async def addresses(self, kind: Kind, ids: Sequence[str]) -> dict[str, str]:
        sql = f"SELECT {_ADDRESSES[kind]} IN (SELECT value FROM json_each(:ids))"
        # The log stores numeric ids as text.
        values: Sequence[Any] = ids if kind in _NUMBERED else [int(text) for text in ids]
        rows = all_rows(self._connection, sql, {"ids": msgspec.json.encode(values).decode()})
        return {str(row[0]): str(row[1]) for row in rows}


def _conditions(query: ChangeQuery) -> tuple[list[str], dict[str, Any]]:
    """Return the SQL conditions of a query on the columns of a change, and their bindings."""
    before = _MAX_SEQ if query.before is None else query.before
    bindings: dict[str, Any] = {
        "after": max(0, min(query.after, _MAX_SEQ)),
        "before": max(0, min(before, _MAX_SEQ)),
        "limit": -1 if query.limit is None else query.limit,
        **{
            name: getattr(query, name)
            for name in ("project", "kind", "entity", "name", "actor", "since", "user")
        },
    }
    given = {
        "project": "(project = :project OR project IS NULL)",
        # Without the index: the newest changes are at the end of the log.
        "kind": "+kind = :kind",
        "name": f"(kind, entity) IN (SELECT kind, entity FROM changes WHERE {_NAMED})",
        "actor": "actor = :actor",
        "since": "at >= :since",
        "user": "(kind <> 'task' OR coalesce(after, before) ->> 'user' = :user)",
    }
    narrowing = [sql for name, sql in given.items() if bindings[name] is not None]
    return ["seq > :after AND seq < :before", *narrowing], bindings


def _entity_sources(query: ChangeQuery) -> Iterator[str]:
    """Yield SQL conditions, at most one of which is true for each change of an entity. Bind :entity."""
    if query.entity is None:
        return
    for kind in ENTITY_TYPES if query.kind is None else (query.kind,):
        indexed = f"kind = '{kind}' AND entity = :entity AND {_INDEXED}"
        yield indexed
        if kind in _NUMBERED:
            # The index does not have the change that created it, whose `seq` is its number. That of a deleted
            # entity is in the change that deleted it.
            yield f"""entity = :entity AND NOT {_INDEXED} AND seq = coalesce(
                (SELECT number FROM {_NUMBERED[kind]} WHERE id = :entity),
                (SELECT coalesce(after, before) ->> 'number' FROM changes WHERE {indexed} LIMIT 1))"""


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
