"""A transaction on a SQLite connection. All writes go through the change log."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from types import ModuleType
from typing import Any, Final, TypeVar

import apsw
from msgspec.structs import replace

from dittybag.domain.changes import Action, Change
from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind, key_of, kind_of, label_of, project_of
from dittybag.domain.errors import Invalid, Outdated, Problem
from dittybag.domain.ports import PurgedStates, Write
from dittybag.domain.queries import ChangeQuery
from dittybag.storage.row_mapping import number_of, stand_in
from dittybag.storage.sqlite import (
    change_table,
    idempotency_table,
    project_table,
    prompt_table,
    resource_table,
    row_writes,
    session_table,
    task_table,
)
from dittybag.storage.sqlite.account_tables import AccountTables
from dittybag.storage.sqlite.change_table import ChangeTable
from dittybag.storage.sqlite.idempotency_table import IdempotencyTable
from dittybag.storage.sqlite.project_table import ProjectTable
from dittybag.storage.sqlite.prompt_table import PromptTable
from dittybag.storage.sqlite.resource_table import ResourceTable
from dittybag.storage.sqlite.rows import value
from dittybag.storage.sqlite.session_table import SessionTable
from dittybag.storage.sqlite.task_table import TaskTable
from dittybag.storage.sqlite.text_search import IndexEntry, PendingIndex
from dittybag.storage.uuid7 import uuid7

E = TypeVar("E", bound=Entity)

#: Each module has a `TABLE`, `row_values` for its columns and `select` for reading. All but projects also
#: have an `INDEX` and `index_text`.
_TABLE_MODULES: Final[dict[Kind, ModuleType]] = {
    "project": project_table,
    "prompt": prompt_table,
    "resource": resource_table,
    "task": task_table,
}

#: In characters. Pending index updates are written when there are more.
_MAX_UNINDEXED: Final = 16 * 1024 * 1024

#: Entities read at a time.
_PAGE_SIZE: Final = 100


def _table_module(kind: Kind) -> Any:
    return _TABLE_MODULES[kind]


class ConnectedTables:
    """A connection with its tables and pending index updates."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.pending = PendingIndex(connection)
        self.projects = ProjectTable(connection)
        self.prompts = PromptTable(connection, self.pending)
        self.resources = ResourceTable(connection, self.pending)
        self.tasks = TaskTable(connection, self.pending)
        self.changes = ChangeTable(connection)
        self.sessions = SessionTable(connection)
        self.idempotency = IdempotencyTable(connection)


class SqliteTransaction:
    """See `dittybag.domain.ports.Transaction`. The coroutines never suspend."""

    def __init__(self, tables: ConnectedTables, now: int, actor: str = "") -> None:
        self.now = now
        self.projects = tables.projects
        self.prompts = tables.prompts
        self.resources = tables.resources
        self.tasks = tables.tasks
        self.changes = tables.changes
        self.sessions = tables.sessions
        self.idempotency = tables.idempotency
        #: Whether anything was written, so that a failure needs a rollback.
        self.wrote = False
        self._connection = tables.connection
        self._pending = tables.pending
        self._actor = actor
        self._batch = self._last = 0
        self._unindexed = 0

    @property
    def accounts(self) -> AccountTables:
        return AccountTables(self._connection, self)

    def new_id(self) -> str:
        return uuid7(self.now)

    async def store_content(self, content: bytes) -> str:
        self.wrote = True
        return resource_table.store_content(self._connection, content)

    async def content(self, sha256: str) -> bytes:
        return resource_table.read_content(self._connection, sha256)

    async def save_session(self, id: str, owner: str, state: bytes) -> None:
        self.wrote = True
        session_table.save(self._connection, id, owner, state, self.now)

    async def delete_session(self, id: str) -> bool:
        self.wrote = True
        return session_table.delete(self._connection, id)

    async def prune_sessions(self, before: int, owner: str, max_count: int) -> None:
        self.wrote = True
        session_table.prune(self._connection, before, owner, max_count)

    async def record_idempotency_key(self, owner: str, key: str, digest: bytes) -> None:
        self.wrote = True
        seqs = self._batch or None, self._last or None
        idempotency_table.insert(self._connection, owner, key, digest, at=self.now, seqs=seqs)

    async def save_idempotent_result(self, owner: str, key: str, digest: bytes, result: bytes) -> None:
        self.wrote = True
        idempotency_table.save_result(self._connection, owner, key, digest, result)

    async def prune_idempotency_keys(self, before: int, max_count: int) -> None:
        self.wrote = True
        idempotency_table.prune(self._connection, before, max_count)

    async def clear_idempotent_results(self, seqs: Sequence[int]) -> None:
        self.wrote = True
        idempotency_table.clear_results(self._connection, seqs)

    async def delete_sessions_with(self, text: str) -> None:
        self.wrote = True
        session_table.delete_with(self._connection, text.encode())

    async def purge_states(self, states: Sequence[PurgedStates]) -> None:
        self.wrote = True
        change_table.purge_states(self._connection, states)

    async def record_purge(self) -> None:
        self.wrote = True
        self._connection.execute(
            "INSERT INTO pending_purges (at, actor) VALUES (?, ?)", (self.now, self._actor)
        )

    async def pending_purge(self) -> int | None:
        number: int | None = value(self._connection, "SELECT max(number) FROM pending_purges")
        return number

    async def complete_purges(self, number: int) -> None:
        self.wrote = True
        self._connection.execute("DELETE FROM pending_purges WHERE number <= ?", (number,))

    async def delete_unused_contents(self) -> None:
        self.wrote = True
        resource_table.delete_unused_contents(self._connection)

    async def find(self, kind: Kind, **fields: Any) -> Any:
        conditions = " AND ".join(f"{name} = :{name}" for name in fields)
        found = _table_module(kind).select(self._connection, f"WHERE {conditions} LIMIT 1", fields)
        return found[0] if found else None

    async def page_of_kind(self, kind: Kind, after: int, limit: int) -> Any:
        module = _table_module(kind)
        key = module.TABLE.key
        return module.select(self._connection, f"WHERE {key} > ? ORDER BY {key} LIMIT ?", (after, limit))

    async def initial_change(self) -> Change | None:
        log = await self.changes.page(ChangeQuery(limit=2))
        return log[0] if len(log) == 1 and log[0].kind == "project" and log[0].action == "create" else None

    async def replay(self, log: AsyncIterable[Change]) -> None:
        if await self.initial_change() is None:
            raise ValueError("the workspace already contains changes")
        self.wrote = True
        self._connection.execute("DELETE FROM projects")
        self._connection.execute("DELETE FROM changes")
        async for change in log:
            try:
                self._apply(change)
            except apsw.ConstraintError as error:
                problem = "conflicts with the changes before it"
                raise Invalid([Problem(f"change {change.seq}", f"change {change.seq} {problem}")]) from error
        for kind in ENTITY_TYPES:
            await self._index_all(kind)

    async def continue_replay(self, log: Sequence[Change]) -> None:
        self.wrote = True
        for change in log:
            self._apply(change)
            self._index_applied(change)

    def _apply(self, change: Change) -> None:
        """Apply and log a change of another workspace. The caller updates the index."""
        module = _table_module(change.kind)
        if change.purged is not None:
            self._put_or_remove(module, change)
        elif change.before is None:
            row_writes.insert(
                self._connection, module.TABLE, module.row_values(self._connection, change.after)
            )
        else:
            self._replace(module, change.kind, change.before, change.after)
        change_table.append(self._connection, change)

    def _put_or_remove(self, module: Any, change: Change) -> None:
        """Apply a change of which a state was purged, so that it need not fit the row."""
        if (entity := stand_in(change)) is None:
            row_writes.remove(self._connection, module.TABLE, number_of(change))
        else:
            row_writes.put(self._connection, module.TABLE, module.row_values(self._connection, entity))

    def _index_applied(self, change: Change) -> None:
        module = _table_module(change.kind)
        if change.purged is None:
            self._index(module, change.before, change.after)
        elif change.kind != "project":
            entity = stand_in(change)
            text = None if entity is None else module.index_text(self._connection, entity)
            self._pending.add(IndexEntry(module.INDEX, number_of(change), text, in_index=True))

    async def _index_all(self, kind: Kind) -> None:
        module = _table_module(kind)
        number = 0
        while kind != "project" and (some := await self.page_of_kind(kind, number, _PAGE_SIZE)):
            for entity in some:
                self._index(module, None, entity)
            number = getattr(some[-1], module.TABLE.key)

    async def write(self, action: Action, before: Entity | None, after: E | None) -> E | None:
        self.wrote = True
        entity = after if after is not None else before
        assert entity is not None
        kind = kind_of(entity)
        module = _table_module(kind)
        seq = change_table.newest_seq(self._connection) + 1
        if before is None:
            after = self._insert(module, after, seq)
        else:
            self._replace(module, kind, before, after)
        self._index(module, before, after)
        entity = after if after is not None else before
        assert entity is not None
        self._batch = self._batch or seq
        self._last = seq
        change = Change(
            seq=seq,
            batch=self._batch,
            at=self.now,
            actor=self._actor,
            action=action,
            kind=kind,
            entity=key_of(entity),
            project=project_of(entity),
            before=before,
            after=after,
        )
        change_table.append(self._connection, change)
        return after

    async def write_all(self, writes: Sequence[Write]) -> list[Entity | None]:
        return [await self.write(write.action, write.before, write.after) for write in writes]

    def _insert(self, module: Any, entity: Any, seq: int) -> Any:
        """Insert a row, with a new number if it has none. Returns the stored entity."""
        key = module.TABLE.key
        if key == "number" and not entity.number:
            entity = replace(entity, number=seq)
        number = row_writes.insert(
            self._connection, module.TABLE, module.row_values(self._connection, entity)
        )
        return entity if getattr(entity, key) == number else replace(entity, **{key: number})

    def _replace(self, module: Any, kind: Kind, before: Any, after: Any) -> None:
        """Update or delete a row. Raises `Outdated` if its version is not that of `before`."""
        number = getattr(before, module.TABLE.key)
        if after is None:
            done = row_writes.delete(self._connection, module.TABLE, number, before.version)
        else:
            row = module.row_values(self._connection, after)
            done = row_writes.update(self._connection, module.TABLE, number, before.version, row)
        if not done:
            raise Outdated(kind, label_of(before) if kind != "task" else key_of(before))

    def _index(self, module: Any, before: Any, after: Any) -> None:
        if module is project_table:
            return
        old = None if before is None else module.index_text(self._connection, before)
        new = None if after is None else module.index_text(self._connection, after)
        if old != new:
            number = getattr(after if after is not None else before, module.TABLE.key)
            self._pending.add(IndexEntry(module.INDEX, number, new, in_index=old is not None))
            self._unindexed += len(new or "")
            if self._unindexed > _MAX_UNINDEXED:
                self._unindexed = 0
                self._pending.write()
