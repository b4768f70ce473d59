"""A transaction on a connection. All writes to entities go through the change log."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from dittybag.domain.changes import Action, Change, Interface
from dittybag.domain.entities import Entity, Kind, key_of, kind_of, label_of, project_of
from dittybag.domain.errors import Invalid, NameTaken, Outdated, Problem
from dittybag.domain.ports import (
    Write,
)
from dittybag.domain.projects import Project
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import Resource
from dittybag.storage.sql.connected_tables import ConnectedTables
from dittybag.storage.sql.entity_rows import quoted
from dittybag.storage.sql.row_mapping import number_of, stand_in
from dittybag.storage.uuid7 import uuid7

if TYPE_CHECKING:
    from dittybag.storage.sql.claim_table import ClaimTable
    from dittybag.storage.sql.edge_table import EdgeTable
    from dittybag.storage.sql.ranked_table import RankedTable

E = TypeVar("E", bound=Entity)


class LogEnd:
    """The end of the change log in a write transaction, during which no other process can append."""

    def __init__(self, tables: ConnectedTables) -> None:
        self._tables = tables
        self._seq: int | None = None
        #: The number of changes that were appended.
        self.appended = 0

    async def seq(self) -> int:
        """Return the `seq` of the last change."""
        if self._seq is None:
            self._seq = await self._tables.changes.newest_seq()
        return self._seq

    def advance(self, seq: int) -> None:
        self.appended += seq - (seq - 1 if self._seq is None else self._seq)
        self._seq = seq


class SqlTransaction:
    """A consistent view of the store; a write transaction is the only way to change it."""

    presumes_free = False

    def __init__(
        self,
        tables: ConnectedTables,
        now: int,
        actor: str = "",
        interface: Interface | None = None,
        end: LogEnd | None = None,
    ) -> None:
        self.now = now
        self.projects = tables.projects
        self.prompts = tables.prompts
        self.resources = tables.resources
        self.tasks = tables.tasks
        self.changes = tables.changes
        self.sessions = tables.sessions
        self.accounts = tables.accounts
        self._tables = tables
        self._actor = actor
        self._interface = interface
        self._end = end
        self._batch = self._last = 0
        #: The SHA-256 and bytes of the content stored last.
        self._last_content: tuple[str, bytes] | None = None

    @property
    def claims(self) -> ClaimTable:
        return self._tables.claims

    @property
    def edges(self) -> EdgeTable:
        return self._tables.edges

    @property
    def ranked(self) -> RankedTable:
        return self._tables.ranked

    @property
    def last_seq(self) -> int:
        """The `seq` of the last change of this use case; 0 if it has changed nothing."""
        return self._last

    def new_id(self) -> str:
        return uuid7(self.now)

    async def allow_pauses(self) -> None:
        """Let this transaction compute for long between two queries, and not count as one that hangs."""

    async def store_content(self, content: bytes) -> str:
        """Store bytes and return their SHA-256, the key for `content`."""
        digest = await self._tables.contents.store(content)
        self._last_content = digest, content
        return digest

    async def content(self, sha256: str) -> bytes:
        # New content is not in any project yet, so row-level security hides it.
        if self._last_content is not None and self._last_content[0] == sha256:
            return self._last_content[1]
        return await self._tables.contents.read(sha256)

    async def delete_unused_contents(self) -> None:
        """Delete the contents that neither a resource nor the change log refers to."""
        await self._tables.native.delete_content_uses()
        await self._tables.contents.delete_unused()

    async def record_purge(self) -> None:
        """Record that content was purged and that the store has to be scrubbed."""
        sql = "INSERT INTO pending_purges (at, actor) VALUES ($1, $2)"
        await self._tables.driver.run(sql, self.now, self._actor)

    async def pending_purge(self) -> int | None:
        """Return the number of the last purge after which the store was not scrubbed."""
        number: int | None = await self._tables.driver.value("SELECT max(number) FROM pending_purges")
        return number

    async def complete_purges(self, number: int) -> None:
        """Record that the store was scrubbed after this purge and all before it."""
        await self._tables.driver.run("DELETE FROM pending_purges WHERE number <= $1", number)

    async def find(self, kind: Kind, **fields: Any) -> Any:
        """Return an entity of any project and user whose fields have these values, or `None`."""
        conditions = " AND ".join(f"{quoted(name)} = ${number}" for number, name in enumerate(fields, 1))
        return await self._tables.rows[kind].select_one(f"{conditions} LIMIT 1", *fields.values())

    async def page_of_kind(self, kind: Kind, after: int, limit: int) -> Any:
        """Return entities of all projects and users in creation order, starting after number `after`."""
        rows = self._tables.rows[kind]
        return await rows.select(
            f"WHERE {rows.type.key} > $1 ORDER BY {rows.type.key} LIMIT $2", after, limit
        )

    async def initial_change(self) -> Change | None:
        """Return the change that created the default project if it is the only one, else `None`."""
        log = await self.changes.page(ChangeQuery(limit=2))
        return log[0] if len(log) == 1 and log[0].kind == "project" and log[0].action == "create" else None

    async def replay(self, log: AsyncIterable[Change]) -> None:
        """Apply the log of another workspace to a new one and log the same changes.

        The log must include the change that created its default project: the initial change of this workspace
        is removed first. Each change is applied before the next one is asked for.
        """
        if await self.initial_change() is None:
            raise ValueError("the workspace already contains changes")
        await self._tables.driver.run("DELETE FROM projects")
        await self._tables.driver.run("DELETE FROM changes")
        async for change in log:
            try:
                await self._apply(change)
            except self._tables.driver.constraint_error as error:
                raise conflicting(change) from error

    async def continue_replay(self, log: Sequence[Change]) -> None:
        """Apply the next changes of the log that `replay` began with, and log the same changes."""
        for change in log:
            await self._apply(change)

    async def _apply(self, change: Change) -> None:
        """Apply and log a change of another workspace."""
        before: Any = change.before
        after = stand_in(change)
        if change.purged is not None:
            before = await self._put_or_remove(change, after)
        elif before is None:
            await self._tables.rows[change.kind].insert(await self._values(change.kind, after))
        else:
            await self._replace(change.kind, before, after)
        await self._tables.native.index(change.kind, before, after, self.content)
        await self._append(change)

    async def _put_or_remove(self, change: Change, entity: Entity | None) -> Any:
        """Apply a change with a purged state, which need not fit the row. Returns what the row was."""
        rows = self._tables.rows[change.kind]
        number = number_of(change)
        before = await rows.select_one(f"{rows.type.key} = $1", number)
        if entity is None:
            await rows.remove(number)
        else:
            values = await self._values(change.kind, entity)
            if not await rows.update(number, None, values):
                await rows.insert(values)
        return before

    async def write(self, action: Action, before: Entity | None, after: E | None) -> E | None:
        """Create, update or delete one entity and log the change. Returns the stored entity.

        Raises `Outdated` if the stored entity differs from `before`.
        """
        entity = after if after is not None else before
        assert entity is not None
        kind = kind_of(entity)
        seq = await self._log_end.seq() + 1
        try:
            if before is None:
                entity = after = await self._insert(kind, after, seq)
            else:
                await self._replace(kind, before, after)
        except self._tables.driver.constraint_error as error:
            if not isinstance(after, Project):
                raise
            # The name may belong to a project that the viewer cannot see.
            raise NameTaken("project", after.name) from error
        await self._tables.native.index(kind, before, after, self.content)
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
            interface=self._interface,
        )
        await self._append(change)
        return after

    def start_batch(self) -> None:
        """Let what was written so far and what follows be undone separately."""
        self._batch = 0

    async def write_all(self, writes: Sequence[Write]) -> list[Entity | None]:
        """Make several writes in this order. Returns the stored entities.

        None of them needs the result of another one, so a store may send all to the database at once. Raises
        `Outdated` if a stored entity differs from its `before`.
        """
        return [await self.write(write.action, write.before, write.after) for write in writes]

    @property
    def _log_end(self) -> LogEnd:
        self._end = self._end or LogEnd(self._tables)
        return self._end

    async def _append(self, change: Change) -> None:
        await self.changes.append(change)
        self._log_end.advance(change.seq)

    async def _insert(self, kind: Kind, entity: Any, seq: int) -> Any:
        """Insert a row, with a new number if it has none. Returns the stored entity."""
        rows = self._tables.rows[kind]
        key = rows.type.key
        if key == "number" and not entity.number:
            entity = replace(entity, number=seq)
        number = await rows.insert(await self._values(kind, entity))
        return entity if getattr(entity, key) == number else replace(entity, **{key: number})

    async def _replace(self, kind: Kind, before: Any, after: Any) -> None:
        """Update or delete a row. Raises `Outdated` if its version is not that of `before`."""
        rows = self._tables.rows[kind]
        number = getattr(before, rows.type.key)
        if after is None:
            done = await rows.delete(number, before.version)
        else:
            done = await rows.update(number, before.version, await self._values(kind, after))
        if not done:
            raise outdated(before)

    async def _values(self, kind: Kind, entity: Any) -> dict[str, Any]:
        """Return the values of the columns of an entity."""
        text = await self._text_of(entity)
        return self._tables.rows[kind].values(entity) | self._tables.native.search_columns(entity, text)

    async def _text_of(self, entity: Entity | None) -> str | None:
        """Return the content of an entity if it is a text resource."""
        if isinstance(entity, Resource) and entity.is_text:
            return (await self.content(entity.sha256)).decode()
        return None


def conflicting(change: Change) -> Invalid:
    """Return the error for a change of a log that does not fit those before it."""
    problem = f"change {change.seq} conflicts with the changes before it"
    return Invalid([Problem(f"change {change.seq}", problem)])


def outdated(entity: Entity) -> Outdated:
    """Return the error for an entity that has another version."""
    kind = kind_of(entity)
    return Outdated(kind, label_of(entity) if kind != "task" else key_of(entity))
