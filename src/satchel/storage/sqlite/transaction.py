"""A transaction on a SQLite connection: one view of all tables, and one way to write, through the log."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final, TypeVar

import apsw
from msgspec.structs import replace

from satchel.domain.changes import Action, Change, Entity, Kind, key_of, kind_of, label_of, project_of
from satchel.domain.errors import Outdated
from satchel.storage.ids import uuid7
from satchel.storage.sqlite import changes, projects, prompts, records, resources, sessions, tasks
from satchel.storage.sqlite.changes import ChangeTable
from satchel.storage.sqlite.projects import ProjectTable
from satchel.storage.sqlite.prompts import PromptTable
from satchel.storage.sqlite.resources import ResourceTable
from satchel.storage.sqlite.search import IndexEntry, PendingIndex
from satchel.storage.sqlite.sessions import SessionTable
from satchel.storage.sqlite.tasks import TaskTable

E = TypeVar("E", bound=Entity)

#: Each has a `TABLE` and `values` for a row of it; all but projects an `INDEX` and an `index_text`.
_TABLES: Final[dict[Kind, ModuleType]] = {
    "project": projects,
    "prompt": prompts,
    "resource": resources,
    "task": tasks,
}


class Tables:
    """Everything there is to read on one connection, and what its indexes have yet to learn."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.pending = PendingIndex(connection)
        self.projects = ProjectTable(connection)
        self.prompts = PromptTable(connection, self.pending)
        self.resources = ResourceTable(connection, self.pending)
        self.tasks = TaskTable(connection, self.pending)
        self.changes = ChangeTable(connection)
        self.sessions = SessionTable(connection)


class SqliteTransaction:
    """See `satchel.domain.ports.Transaction`. Nothing here ever waits."""

    def __init__(self, tables: Tables, now: int, actor: str = "") -> None:
        self.now = now
        self.projects = tables.projects
        self.prompts = tables.prompts
        self.resources = tables.resources
        self.tasks = tables.tasks
        self.changes = tables.changes
        self.sessions = tables.sessions
        #: Whether anything has been written: then failing needs a rollback.
        self.wrote = False
        self._connection = tables.connection
        self._pending = tables.pending
        self._actor = actor
        self._batch = 0

    def new_id(self) -> str:
        return uuid7(self.now)

    async def keep(self, content: bytes) -> str:
        self.wrote = True
        return resources.keep(self._connection, content)

    async def content(self, sha256: str) -> bytes:
        return resources.content_of(self._connection, sha256)

    async def keep_session(self, id: str, state: bytes) -> None:
        self.wrote = True
        sessions.keep(self._connection, id, state, self.now)

    async def end_session(self, id: str) -> bool:
        self.wrote = True
        return sessions.end(self._connection, id)

    async def forget_sessions(self, before: int, most: int) -> None:
        self.wrote = True
        sessions.forget(self._connection, before, most)

    async def write(self, action: Action, before: Entity | None, after: E | None) -> E | None:
        self.wrote = True
        entity = after if after is not None else before
        assert entity is not None
        kind = kind_of(entity)
        noun: Any = _TABLES[kind]
        seq = changes.newest(self._connection) + 1
        if before is None:
            after = self._insert(noun, after, seq)
        else:
            self._replace(noun, kind, before, after)
        self._index(noun, before, after)
        entity = after if after is not None else before
        assert entity is not None
        self._batch = self._batch or seq
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
        changes.append(self._connection, change)
        return after

    def _insert(self, noun: Any, entity: Any, seq: int) -> Any:
        """Add a row, with a number if it has none yet; the entity as it is stored."""
        key = noun.TABLE.key
        if key == "number" and not entity.number:
            entity = replace(entity, number=seq)
        number = records.insert(self._connection, noun.TABLE, noun.values(self._connection, entity))
        return entity if getattr(entity, key) == number else replace(entity, **{key: number})

    def _replace(self, noun: Any, kind: Kind, before: Entity, after: Entity | None) -> None:
        """Change or delete a row. Raises `Outdated` if it is not as `before` says."""
        number = getattr(before, noun.TABLE.key)
        if after is None:
            done = records.delete(self._connection, noun.TABLE, number, before.version)
        else:
            row = noun.values(self._connection, after)
            done = records.update(self._connection, noun.TABLE, number, before.version, row)
        if not done:
            raise Outdated(kind, label_of(before) if kind != "task" else key_of(before))

    def _index(self, noun: Any, before: Entity | None, after: Entity | None) -> None:
        if noun is projects:
            return
        old = None if before is None else noun.index_text(self._connection, before)
        new = None if after is None else noun.index_text(self._connection, after)
        if old != new:
            number = getattr(after if after is not None else before, noun.TABLE.key)
            self._pending.add(IndexEntry(noun.INDEX, number, new, known=old is not None))
