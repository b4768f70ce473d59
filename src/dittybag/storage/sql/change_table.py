"""The change log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import BatchCount, Change, ChangeNotification, SeenActor
from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.ports import PurgedStates
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.text import fold
from dittybag.storage.sql.native_queries import NativeQueries
from dittybag.storage.sql.row_mapping import change_from_row, notification_from_row, state_to_json
from dittybag.storage.sql.sql_driver import MAX_INTEGER, Bindings, Row, SqlDriver, is_number

#: The first change of a batch has no number of a batch in older files of SQLite.
_BATCH: Final = "coalesce(batch, seq)"
_COLUMNS: Final = f"seq, {_BATCH}, at, actor, action, kind, entity, project, before, after, interface"

#: The changes of a batch follow each other without others in between. There may be gaps: an import keeps the
#: `seq` of changes from elsewhere.
_IN_BATCH: Final = f"""seq >= $1 AND seq < coalesce(
    (SELECT seq FROM changes WHERE seq >= $1 AND {_BATCH} <> $1 ORDER BY seq LIMIT 1), {MAX_INTEGER})"""

#: The size of a change. The databases do not read the texts for it.
_BYTES: Final = "coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0)"

#: The column with the address of an entity: an id, a URI or the name of a project.
_ADDRESSES: Final[dict[Kind, str]] = {"project": "name", "prompt": "id", "resource": "uri", "task": "id"}


class _Names(Struct):
    """The fields of a state that identify the entity for people."""

    name: str | None = None
    title: str | None = None
    uri: str | None = None

    @property
    def given(self) -> list[str]:
        return [name for name in (self.name, self.title, self.uri) if name]


_decode_names: Final = msgspec.json.Decoder(_Names).decode


class ChangeTable:
    """The change log."""

    def __init__(self, driver: SqlDriver, native: NativeQueries) -> None:
        self._driver = driver
        self._native = native

    async def get(self, seq: int) -> Change | None:
        found = await self._select("WHERE seq = $1", seq) if is_number(seq) else []
        return found[0] if found else None

    async def _select(self, clauses: str, *values: Any) -> list[Change]:
        rows = await self._driver.rows(f"SELECT {_COLUMNS} FROM changes {clauses}", *values)
        return [change_from_row(row) for row in rows]

    async def batch(self, batch: int, limit: int | None = None) -> list[Change]:
        """Return the changes of a batch in order; with `limit`, the first of them."""
        most = MAX_INTEGER if limit is None else limit
        return await self._select(f"WHERE {_IN_BATCH} ORDER BY seq LIMIT $2", batch, most)

    async def batch_size(self, batch: int) -> int:
        """Count the changes of a batch, including those that are hidden from the viewer."""
        sql = f"SELECT count(*) FROM changes WHERE {_IN_BATCH}"
        async with self._native.as_operator():
            return int(await self._driver.value(sql, batch))

    async def page(self, query: ChangeQuery) -> list[Change]:
        return [change_from_row(row) for row in await self._find(_COLUMNS, query)]

    async def find_seqs(self, query: ChangeQuery) -> list[tuple[int, int]]:
        """Return the `seq` and the size in bytes of the matching changes."""
        return [(row[0], row[1]) for row in await self._find(f"seq, {_BYTES}", query)]

    async def find_in_batches(self, query: ChangeQuery) -> list[tuple[int, int, int]]:
        """Return the `seq`, the batch and the size in bytes of the matching changes."""
        return [(row[0], row[1], row[2]) for row in await self._find(f"seq, {_BATCH}, {_BYTES}", query)]

    async def batch_counts(self, batches: Sequence[int], query: ChangeQuery) -> list[BatchCount]:
        """Count the changes of batches by kind and action. Of the query, only its project and user matter."""
        bindings = Bindings(self._driver.list_value(batches))
        visible = "".join(f" AND {condition}" for condition in self._visibility(query, bindings))
        groups = "batch, kind, action"
        # The index has all changes but the first of each batch.
        sql = f"""SELECT {groups}, sum(count), max(last) FROM (
                      SELECT {groups}, count(*) AS count, max(seq) AS last FROM changes
                      WHERE {self._driver.any_of("batch", "$1")} AND batch <> seq{visible} GROUP BY {groups}
                      UNION ALL
                      SELECT seq, kind, action, 1, seq FROM changes
                      WHERE {self._driver.any_of("seq", "$1")} AND {_BATCH} = seq{visible}) AS counted
                  GROUP BY {groups}"""
        rows = await self._driver.rows(sql, *bindings.values)
        return [
            BatchCount(batch, kind, action, int(count), last) for batch, kind, action, count, last in rows
        ]

    async def seen_actors(self, query: ChangeQuery) -> list[SeenActor]:
        """Return who made the matching changes, and by which interface, the latest first."""
        sql, bindings = await self._matching("seq, actor, interface, at", query)
        groups = "actor, interface"
        sql = f"SELECT {groups}, max(seq), max(at) FROM ({sql}) AS matching GROUP BY {groups} ORDER BY 3 DESC"
        return [SeenActor(*row) for row in await self._driver.rows(sql, *bindings.values)]

    async def actors(self, query: ChangeQuery) -> list[str]:
        """Return the actors of the matching changes in alphabetical order, at most `query.limit` of them."""
        found = {row[1] for row in await self._find("seq, actor", replace(query, limit=None))}
        return sorted(found)[: query.limit]

    async def _find(self, columns: str, query: ChangeQuery) -> Sequence[Row]:
        """Return columns of the matching changes. The first of them is `seq`."""
        sql, bindings = await self._matching(columns, query)
        return await self._driver.rows(sql, *bindings.values)

    async def _matching(self, columns: str, query: ChangeQuery) -> tuple[str, Bindings]:
        order = f"ORDER BY seq {'' if query.oldest_first else 'DESC'}"
        select = f"SELECT {columns} FROM changes WHERE"
        if query.text is not None:
            seqs = await self._seqs_with_text(query, query.text)
            bindings = Bindings(self._driver.list_value(seqs))
            return f"{select} {self._driver.any_of('seq', '$1')} {order}", bindings
        bindings = Bindings()
        select = f"{select} {' AND '.join(self._conditions(query, bindings))}"
        selects = [f"{select} AND {condition}" for condition in self._entity_conditions(query, bindings)]
        return f"{' UNION ALL '.join(selects) or select} {order} {bindings.page(query.limit)}", bindings

    async def _seqs_with_text(self, query: ChangeQuery, text: str) -> list[int]:
        term = fold(text)
        # Decoding here is faster than in the database.
        rows = await self._find("seq, before, after", replace(query, text=None, limit=None))
        found = [
            seq
            for seq, *states in rows
            if any(term in fold(name) for state in states if state for name in _decode_names(state).given)
        ]
        return found[: query.limit]

    def _conditions(self, query: ChangeQuery, bindings: Bindings) -> list[str]:
        """Return the conditions of a query, except that on the entity."""
        before = MAX_INTEGER if query.before is None else query.before
        low, high = (bindings.add(max(0, min(seq, MAX_INTEGER))) for seq in (query.after, before))
        conditions = [f"seq > {low} AND seq < {high}"]
        conditions += self._visibility(query, bindings)
        if query.kind is not None:
            # Without the index: the newest changes are at the end of the log.
            conditions.append(f"{self._driver.unindexed('kind')} = {bindings.add(query.kind)}")
        if query.except_kind is not None:
            conditions.append(f"kind <> {bindings.add(query.except_kind)}")
        if query.name is not None:
            names = ", ".join(
                self._driver.json_field(state, field)
                for state in ("before", "after")
                for field in _Names.__struct_fields__
            )
            named = f"SELECT kind, entity FROM changes WHERE {bindings.add(query.name)} IN ({names})"
            conditions.append(f"(kind, entity) IN ({named})")
        if query.actor is not None:
            conditions.append(f"actor = {bindings.add(query.actor)}")
        if query.except_actor is not None:
            conditions.append(f"actor <> {bindings.add(query.except_actor)}")
        if query.since is not None:
            conditions.append(f"at >= {bindings.add(query.since)}")
        return conditions

    def _visibility(self, query: ChangeQuery, bindings: Bindings) -> list[str]:
        """Return the conditions on the project and the user of a query."""
        conditions = []
        if query.project is not None:
            conditions.append(f"(project = {bindings.add(query.project)} OR project IS NULL)")
        if query.user is not None:
            whose = self._driver.json_field("coalesce(after, before)", "user")
            is_shared = "kind <> 'task' OR project IS NOT NULL"
            conditions.append(f"({is_shared} OR {whose} = {bindings.add(query.user)})")
        return conditions

    def _entity_conditions(self, query: ChangeQuery, bindings: Bindings) -> list[str]:
        if query.entity is None:
            return []
        entity = bindings.add(query.entity)
        kinds = ENTITY_TYPES if query.kind is None else (query.kind,)
        return [sql for kind in kinds for sql in self._native.entity_conditions(kind, entity)]

    async def latest(self, kind: Kind, entity: str) -> Change | None:
        found = await self.page(ChangeQuery(kind=kind, entity=entity, limit=1))
        return found[0] if found else None

    async def last_actors(self, kind: Kind, entities: Sequence[str]) -> dict[str, str]:
        """Return the actor of the newest change of each of these entities that exists."""
        if not entities:
            return {}
        described = ENTITY_TYPES[kind]
        is_number = described.key == "id"
        # The log stores numeric ids as text.
        entity = "CAST(listed.id AS text)" if is_number else "listed.id"
        ids = list(map(int, entities)) if is_number else entities
        changes = " UNION ALL ".join(
            f"SELECT seq, actor FROM changes WHERE {condition}"
            for condition in self._native.entity_conditions(kind, entity)
        )
        sql = f"""SELECT {entity}, (SELECT actor FROM ({changes}) AS found ORDER BY seq DESC LIMIT 1)
                  FROM {described.table} AS listed WHERE {self._driver.any_of("listed.id", "$1")}"""
        rows = await self._driver.rows(sql, self._driver.list_value(ids))
        return {row[0]: row[1] for row in rows if row[1] is not None}

    async def newest_seq(self) -> int:
        """Return the `seq` of the newest change."""
        return await self._driver.value("SELECT max(seq) FROM changes") or 0

    async def by_seqs(self, seqs: Sequence[int]) -> list[Change]:
        """Return the changes with these sequence numbers, newest first."""
        clauses = f"WHERE {self._driver.any_of('seq', '$1')} ORDER BY seq DESC"
        return await self._select(clauses, self._driver.list_value(seqs)) if seqs else []

    async def window_start(self, before: int, count: int, size: int) -> int:
        """Return the first `seq` of the last `count` changes before `before` that fit into `size` bytes."""
        sql = f"""SELECT min(seq) FROM (
                     SELECT seq, sum({_BYTES}) OVER (ORDER BY seq DESC) AS bytes
                     FROM changes WHERE seq >= $1 AND seq < $2) AS counted
                 WHERE bytes <= $3 OR seq = $4"""
        before = max(min(before, MAX_INTEGER), 1)
        found = await self._driver.value(sql, before - count, before, size, before - 1)
        return before if found is None else int(found)

    async def addresses(self, kind: Kind, ids: Sequence[str]) -> dict[str, str]:
        """Return the addresses of those entities that exist: an id, a URI or the name of a project."""
        described = ENTITY_TYPES[kind]
        # The log stores numeric ids as text.
        values: list[Any] = [int(text) for text in ids] if described.key == "id" else list(ids)
        bindings = Bindings()
        listed = ", ".join(map(bindings.add, values))
        sql = f"SELECT id, {_ADDRESSES[kind]} FROM {described.table} WHERE id IN ({listed})"
        return {str(row[0]): str(row[1]) for row in await self._driver.rows(sql, *bindings.values)}

    async def notifications_since(self, seq: int, limit: int) -> list[tuple[int, ChangeNotification]]:
        """Return the notifications of up to `limit` changes after `seq`, each with its `seq`."""
        sql = """SELECT seq, kind, project, CASE kind WHEN 'resource' THEN before END,
                        CASE kind WHEN 'resource' THEN after END
                 FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2"""
        return [(row[0], notification_from_row(row)) for row in await self._driver.rows(sql, seq, limit)]

    async def notifications_of_everything(self) -> list[ChangeNotification]:
        """Return the notifications of a log that has been replaced by another one."""
        rows = await self._driver.rows("SELECT id FROM projects ORDER BY id")
        kinds: tuple[Kind, ...] = ("prompt", "resource")
        return [ChangeNotification(kind, row[0]) for row in rows for kind in kinds]

    async def append(self, change: Change) -> None:
        """Append a change to the log."""
        await self._driver.run(
            """INSERT INTO changes
               (seq, batch, at, actor, action, kind, entity, project, before, after, interface)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)""",
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
            change.interface,
        )

    async def purge_states(self, states: Sequence[PurgedStates]) -> None:
        """Replace states of changes by what the log keeps of them."""
        await self._driver.run_each(
            "UPDATE changes SET before = coalesce($1, before), after = coalesce($2, after) WHERE seq = $3",
            [(state_to_json(item.before), state_to_json(item.after), item.seq) for item in states],
        )
