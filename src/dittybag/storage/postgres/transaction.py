"""A transaction on a PostgreSQL connection. All writes go through the change log."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from types import ModuleType
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from dittybag.domain.changes import Action, Change
from dittybag.domain.entities import Entity, Kind, key_of, kind_of, label_of, project_of
from dittybag.domain.errors import Invalid, NameTaken, Outdated, Problem
from dittybag.domain.ports import PurgedStates, Write
from dittybag.domain.projects import Project
from dittybag.domain.queries import ChangeQuery
from dittybag.storage.postgres import (
    change_table,
    idempotency_table,
    project_table,
    prompt_table,
    resource_table,
    row_writes,
    session_table,
    task_table,
)
from dittybag.storage.postgres.account_tables import AccountTables
from dittybag.storage.postgres.change_table import ChangeTable
from dittybag.storage.postgres.connections import ConstraintError, PostgresConnection, quoted
from dittybag.storage.postgres.idempotency_table import IdempotencyTable
from dittybag.storage.postgres.project_table import ProjectTable
from dittybag.storage.postgres.prompt_table import PromptTable
from dittybag.storage.postgres.resource_table import ResourceTable
from dittybag.storage.postgres.row_security import RowSecurity, viewer_setting
from dittybag.storage.postgres.rows import value
from dittybag.storage.postgres.session_table import SessionTable
from dittybag.storage.postgres.task_table import TaskTable
from dittybag.storage.row_mapping import number_of, stand_in
from dittybag.storage.uuid7 import uuid7

E = TypeVar("E", bound=Entity)

#: Each module has a `TABLE`, `row_values` for its columns and `select` for reading.
_TABLE_MODULES: Final[dict[Kind, ModuleType]] = {
    "project": project_table,
    "prompt": prompt_table,
    "resource": resource_table,
    "task": task_table,
}


def _table_module(kind: Kind) -> Any:
    return _TABLE_MODULES[kind]


class ConnectedTables:
    """A connection with its tables and its viewer."""

    def __init__(self, connection: PostgresConnection) -> None:
        self.connection = connection
        self.row_security = RowSecurity(connection)
        self.projects = ProjectTable(connection)
        self.prompts = PromptTable(connection, self.row_security)
        self.resources = ResourceTable(connection, self.row_security)
        self.tasks = TaskTable(connection)
        self.changes = ChangeTable(connection, self.row_security)
        self.sessions = SessionTable(connection)
        self.idempotency = IdempotencyTable(connection)


class LogEnd:
    """The end of the change log, while the writer holds the lock and no other process can append."""

    def __init__(self, tables: ConnectedTables) -> None:
        self._connection = tables.connection
        self._row_security = tables.row_security
        self._seq: int | None = None
        self._viewer: str | None = None
        #: Whether a change was appended.
        self.has_advanced = False

    async def seq(self) -> int:
        """Return the `seq` of the last change."""
        if self._seq is None:
            self._seq = await change_table.newest_seq(self._connection)
        return self._seq

    async def set_viewer(self, viewer: str | None) -> None:
        """Set the viewer for the rest of the transaction, which begins with the operator."""
        if viewer == self._viewer:
            return
        if self._seq is None:
            # Only the operator can see the end of the log, so it is read first.
            self._seq = await change_table.newest_seq_then_set_viewer(
                self._connection, viewer_setting(viewer)
            )
            self._row_security.assume_for_transaction(viewer)
        else:
            await self._row_security.set_for_transaction(viewer)
        self._viewer = viewer

    def advance(self, seq: int) -> None:
        self._seq = seq
        self.has_advanced = True


class PostgresTransaction:
    """See `dittybag.domain.ports.Transaction`."""

    def __init__(self, tables: ConnectedTables, now: int, actor: str = "", end: LogEnd | None = None) -> None:
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
        self._end = end or LogEnd(tables)
        self._actor = actor
        self._batch = self._last = 0
        #: The SHA-256 and bytes of the content stored last.
        self._last_content: tuple[str, bytes] | None = None

    @property
    def accounts(self) -> AccountTables:
        return AccountTables(self._connection, self)

    def new_id(self) -> str:
        return uuid7(self.now)

    async def store_content(self, content: bytes) -> str:
        self.wrote = True
        digest = await resource_table.store_content(self._connection, content)
        self._last_content = digest, content
        return digest

    async def content(self, sha256: str) -> bytes:
        # New content is not in any project yet, so the policies hide it.
        if self._last_content is not None and self._last_content[0] == sha256:
            return self._last_content[1]
        return await resource_table.read_content(self._connection, sha256)

    async def save_session(self, id: str, owner: str, state: bytes) -> None:
        self.wrote = True
        await session_table.save(self._connection, id, owner, state, self.now)

    async def delete_session(self, id: str) -> bool:
        self.wrote = True
        return await session_table.delete(self._connection, id)

    async def prune_sessions(self, before: int, owner: str, max_count: int) -> None:
        self.wrote = True
        await session_table.prune(self._connection, before, owner, max_count)

    async def record_idempotency_key(self, owner: str, key: str, digest: bytes) -> None:
        self.wrote = True
        seqs = self._batch or None, self._last or None
        await idempotency_table.insert(self._connection, owner, key, digest, at=self.now, seqs=seqs)

    async def save_idempotent_result(self, owner: str, key: str, digest: bytes, result: bytes) -> None:
        self.wrote = True
        await idempotency_table.save_result(self._connection, owner, key, digest, result)

    async def prune_idempotency_keys(self, before: int, max_count: int) -> None:
        self.wrote = True
        await idempotency_table.prune(self._connection, before, max_count)

    async def clear_idempotent_results(self, seqs: Sequence[int]) -> None:
        self.wrote = True
        await idempotency_table.clear_results(self._connection, seqs)

    async def delete_sessions_with(self, text: str) -> None:
        self.wrote = True
        await session_table.delete_with(self._connection, text.encode())

    async def purge_states(self, states: Sequence[PurgedStates]) -> None:
        self.wrote = True
        await change_table.purge_states(self._connection, states)

    async def record_purge(self) -> None:
        self.wrote = True
        await self._connection.execute(
            "INSERT INTO pending_purges (at, actor) VALUES ($1, $2)", self.now, self._actor
        )

    async def pending_purge(self) -> int | None:
        number: int | None = await value(self._connection, "SELECT max(number) FROM pending_purges")
        return number

    async def complete_purges(self, number: int) -> None:
        self.wrote = True
        await self._connection.execute("DELETE FROM pending_purges WHERE number <= $1", number)

    async def delete_unused_contents(self) -> None:
        self.wrote = True
        await resource_table.delete_unused_contents(self._connection)

    async def find(self, kind: Kind, **fields: Any) -> Any:
        conditions = " AND ".join(f"{quoted(name)} = ${number}" for number, name in enumerate(fields, 1))
        found = await _table_module(kind).select(
            self._connection, f"WHERE {conditions} LIMIT 1", *fields.values()
        )
        return found[0] if found else None

    async def page_of_kind(self, kind: Kind, after: int, limit: int) -> Any:
        module = _table_module(kind)
        key = module.TABLE.key
        return await module.select(
            self._connection, f"WHERE {key} > $1 ORDER BY {key} LIMIT $2", after, limit
        )

    async def initial_change(self) -> Change | None:
        log = await self.changes.page(ChangeQuery(limit=2))
        return log[0] if len(log) == 1 and log[0].kind == "project" and log[0].action == "create" else None

    async def replay(self, log: AsyncIterable[Change]) -> None:
        if await self.initial_change() is None:
            raise ValueError("the workspace already contains changes")
        self.wrote = True
        await self._connection.execute("DELETE FROM projects")
        await self._connection.execute("DELETE FROM changes")
        async for change in log:
            try:
                await self._apply(change)
            except ConstraintError as error:
                problem = "conflicts with the changes before it"
                raise Invalid([Problem(f"change {change.seq}", f"change {change.seq} {problem}")]) from error

    async def continue_replay(self, log: Sequence[Change]) -> None:
        self.wrote = True
        for change in log:
            await self._apply(change)

    async def _apply(self, change: Change) -> None:
        """Apply and log a change of another workspace."""
        module = _table_module(change.kind)
        if change.purged is not None:
            await self._put_or_remove(module, change)
        elif change.before is None:
            row = await module.row_values(self.content, change.after)
            await row_writes.insert(self._connection, module.TABLE, row)
        else:
            await self._replace(module, change.kind, change.before, change.after)
        await change_table.append(self._connection, change)
        self._end.advance(change.seq)

    async def _put_or_remove(self, module: Any, change: Change) -> None:
        """Apply a change of which a state was purged, so that it need not fit the row."""
        if (entity := stand_in(change)) is None:
            await row_writes.remove(self._connection, module.TABLE, number_of(change))
        else:
            row = await module.row_values(self.content, entity)
            await row_writes.put(self._connection, module.TABLE, row)

    async def write(self, action: Action, before: Entity | None, after: E | None) -> E | None:
        self.wrote = True
        entity = after if after is not None else before
        assert entity is not None
        kind = kind_of(entity)
        module = _table_module(kind)
        seq = await self._end.seq() + 1
        try:
            if before is None:
                after = await self._insert(module, after, seq)
            else:
                await self._replace(module, kind, before, after)
        except ConstraintError as error:
            if not isinstance(entity, Project):
                raise
            # The name may belong to a project that the viewer cannot see.
            raise NameTaken("project", entity.name) from error
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
        await change_table.append(self._connection, change)
        self._end.advance(seq)
        return after

    async def write_all(self, writes: Sequence[Write]) -> list[Entity | None]:
        return [await self.write(write.action, write.before, write.after) for write in writes]

    async def _insert(self, module: Any, entity: Any, seq: int) -> Any:
        """Insert a row, with a new number if it has none. Returns the stored entity."""
        key = module.TABLE.key
        if key == "number" and not entity.number:
            entity = replace(entity, number=seq)
        row = await module.row_values(self.content, entity)
        number = await row_writes.insert(self._connection, module.TABLE, row)
        return entity if getattr(entity, key) == number else replace(entity, **{key: number})

    async def _replace(self, module: Any, kind: Kind, before: Any, after: Any) -> None:
        """Update or delete a row. Raises `Outdated` if its version is not that of `before`."""
        number = getattr(before, module.TABLE.key)
        if after is None:
            done = await row_writes.delete(self._connection, module.TABLE, number, before.version)
        else:
            row = await module.row_values(self.content, after)
            done = await row_writes.update(self._connection, module.TABLE, number, before.version, row)
        if not done:
            raise Outdated(kind, label_of(before) if kind != "task" else key_of(before))
