"""A transaction without a lock: its only write is its commit, which checks what was read before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

from msgspec import Struct

from dittybag.domain.changes import Action
from dittybag.domain.entities import Entity
from dittybag.domain.ports import Write
from dittybag.domain.projects import Project
from dittybag.storage.postgres.encoded_writes import EncodedWrite, encode_write, numbered
from dittybag.storage.sql.connected_tables import ConnectedTables
from dittybag.storage.sql.project_table import ProjectTable
from dittybag.storage.sql.sql_transaction import SqlTransaction

if TYPE_CHECKING:
    from dittybag.storage.sql.edge_table import EdgeTable

E = TypeVar("E", bound=Entity)


class LockNeeded(Exception):
    """The use case does something that must be run under the writers' lock. Nothing was written."""


class CheckFailed(Exception):
    """Something that the use case has read or presumed no longer holds. Nothing was written."""


class PlannedCommit(Struct, frozen=True):
    """The writes of a use case, and what must hold when they are committed."""

    #: The versions of projects, by id.
    projects: dict[int, int]
    #: New contents of resources, by SHA-256.
    contents: dict[str, bytes]
    writes: list[EncodedWrite]
    at: int

    @property
    def size(self) -> int:
        return sum(write.size for write in self.writes) + sum(map(len, self.contents.values()))


class CommitResult(Struct, frozen=True):
    """The `seq` of the first change of a use case, and the number of each row that it has written."""

    first_seq: int
    numbers: list[int]


#: The projects that use cases have read lately, by id. A commit checks their version.
ProjectCache = dict[int, Project]


class CheckedProjects(ProjectTable):
    """Records which projects a use case has read."""

    def __init__(self, tables: ConnectedTables, cache: ProjectCache, *, presumes: bool) -> None:
        super().__init__(tables.driver, tables.rows["project"], tables.native)
        self._cache = cache
        self._presumes = presumes
        #: Their versions, by id.
        self.versions: dict[int, int] = {}
        #: Whether one of them was not read now.
        self.used_cache = False

    async def get(self, id: int) -> Project | None:
        if self._presumes and (known := self._cache.get(id)) is not None:
            self.used_cache = True
            self.versions[id] = known.version
            return known
        return self._record(await super().get(id))

    async def by_name(self, name: str) -> Project | None:
        return self._record(await super().by_name(name))

    def _record(self, project: Project | None) -> Project:
        if project is None:
            # A commit cannot check that a project is still missing.
            raise LockNeeded
        self._cache[project.id] = project
        self.versions[project.id] = project.version
        return project


class CheckedTransaction(SqlTransaction):
    """A transaction without a lock. Its first write or `write_all` is the last.

    What else would write raises `LockNeeded`: the connections that it reads with cannot write.
    """

    def __init__(
        self,
        tables: ConnectedTables,
        now: int,
        cache: ProjectCache,
        commit: Callable[[PlannedCommit], Awaitable[CommitResult]],
        *,
        presumes: bool,
    ) -> None:
        """`presumes`: unique values are presumed free, and cached projects unchanged."""
        super().__init__(tables, now)
        self.presumes_free = presumes
        self._checked_projects = self.projects = CheckedProjects(tables, cache, presumes=presumes)
        self._commit = commit
        self._contents: dict[str, bytes] = {}
        self.has_committed = False

    @property
    def used_cache(self) -> bool:
        return self._checked_projects.used_cache

    @property
    def edges(self) -> EdgeTable:
        # A cycle may lead through tasks that are not written.
        raise LockNeeded

    async def store_content(self, content: bytes) -> str:
        from hashlib import sha256

        digest = sha256(content).hexdigest()
        self._contents[digest] = content
        self._last_content = digest, content
        return digest

    def start_batch(self) -> NoReturn:
        raise LockNeeded

    async def write(self, action: Action, before: Entity | None, after: E | None) -> E | None:
        (stored,) = await self.write_all([Write(action, before, after)])
        return stored  # type: ignore[return-value]  # it has the type of `after`

    async def write_all(self, writes: Sequence[Write]) -> list[Entity | None]:
        if self.has_committed:
            raise RuntimeError("a checked use case has written twice")
        if not writes:
            return []
        encoded = [await self._encode(write) for write in writes]
        result = await self._commit(
            PlannedCommit(self._checked_projects.versions, self._contents, encoded, self.now)
        )
        self.has_committed = True
        self._batch, self._last = result.first_seq, result.first_seq + len(writes) - 1
        return [numbered(write.after, number) for write, number in zip(writes, result.numbers, strict=True)]

    async def _encode(self, write: Write) -> EncodedWrite:
        if isinstance(write.after or write.before, Project):
            raise LockNeeded
        text = await self._text_of(write.after)
        return encode_write(self._tables, write.action, write.before, write.after, text)
