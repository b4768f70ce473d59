"""A transaction that has the writers' lock. It sends many writes to the database in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from dittybag.domain.changes import Action, Change
from dittybag.domain.entities import Entity, type_of
from dittybag.domain.errors import NameTaken
from dittybag.domain.ports import Write
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.storage.postgres.encoded_writes import EncodedWrite, columns_of, encode_write, numbered
from dittybag.storage.postgres.postgres_connections import VERSION_ERROR, DatabaseError
from dittybag.storage.sql.sql_transaction import SqlTransaction, conflicting, outdated

E = TypeVar("E", bound=Entity)

#: At most this many writes, and about this many characters, are sent in one call.
MAX_WRITES: Final = 500
MAX_SIZE: Final = 4 << 20

#: At most this many bytes of new contents are kept, because text is indexed with the resource.
MAX_KEPT: Final = 32 << 20

_ALLOW_PAUSES: Final = "SELECT set_config('idle_in_transaction_session_timeout', '60s', true)"
_APPLY: Final = "SELECT apply_changes($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
#: The values of an encoded write that `apply_changes` takes.
_APPLIED: Final = (
    "action",
    "kind",
    "number",
    "version",
    "entity",
    "project",
    "before",
    "after",
    "more_columns",
)


class PostgresTransaction(SqlTransaction):
    """A transaction whose writes are sent to the database together where they can be."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._kept: dict[str, bytes] = {}
        self._kept_size = 0

    async def allow_pauses(self) -> None:
        await self._tables.driver.value(_ALLOW_PAUSES)

    async def store_content(self, content: bytes) -> str:
        digest = await super().store_content(content)
        if self._kept_size > MAX_KEPT:
            self._kept.clear()
            self._kept_size = 0
        self._kept[digest] = content
        self._kept_size += len(content)
        return digest

    async def content(self, sha256: str) -> bytes:
        found = self._kept.get(sha256)
        return await super().content(sha256) if found is None else found

    async def write(self, action: Action, before: Entity | None, after: E | None) -> E | None:
        (stored,) = await self.write_all([Write(action, before, after)])
        return stored  # type: ignore[return-value]  # it has the type of `after`

    async def write_all(self, writes: Sequence[Write]) -> list[Entity | None]:
        stored: list[Entity | None] = []
        for start in range(0, len(writes), MAX_WRITES):
            stored += await self._write_some(writes[start : start + MAX_WRITES])
        return stored

    async def _write_some(self, writes: Sequence[Write]) -> list[Entity | None]:
        first = await self._log_end.seq() + 1
        self._batch = self._batch or first
        encoded, logged = [], []
        for seq, write in enumerate(writes, first):
            after: Any = write.after
            if write.before is None and after is not None and type_of(after).key == "number":
                after = after if after.number else replace(after, number=seq)
            encoded.append(await self._encode(write.action, write.before, after))
            logged.append((seq, self._batch, self.now, self._actor, self._interface))
        try:
            numbers = await self._send(logged, encoded)
        except DatabaseError as error:
            if (place := _place_of(error)) is None:
                raise
            write = writes[place]
            if error.sqlstate == VERSION_ERROR and write.before is not None:
                raise outdated(write.before) from error
            if isinstance(write.after, Project):
                # The name may belong to a project that the viewer cannot see.
                raise NameTaken("project", write.after.name) from error
            raise
        self._last = first + len(writes) - 1
        self._log_end.advance(self._last)
        return [numbered(write.after, number) for write, number in zip(writes, numbers, strict=True)]

    async def _encode(self, action: Action, before: Any, after: Any) -> EncodedWrite:
        return encode_write(self._tables, action, before, after, await self._text_of(after))

    async def _send(self, logged: Sequence[Sequence[Any]], encoded: Sequence[EncodedWrite]) -> list[int]:
        values = [[getattr(write, name) for name in _APPLIED] for write in encoded]
        driver = self._tables.driver
        driver.wrote = True
        arguments = (*columns_of(logged, 5), *columns_of(values, len(_APPLIED)))
        numbers: list[int] = await driver.value(_APPLY, *arguments)
        return numbers

    async def continue_replay(self, log: Sequence[Change]) -> None:
        waiting: list[Change] = []
        size = 0
        for change in log:
            if change.purged is not None:
                # It need not fit the row, which may depend on the changes before it.
                await self._apply_some(waiting)
                await super()._apply(change)
                waiting, size = [], 0
                continue
            waiting.append(change)
            size += _size_of(change)
            if len(waiting) == MAX_WRITES or size > MAX_SIZE:
                await self._apply_some(waiting)
                waiting, size = [], 0
        await self._apply_some(waiting)

    async def _apply(self, change: Change) -> None:
        await (super()._apply(change) if change.purged is not None else self._apply_some([change]))

    async def _apply_some(self, changes: Sequence[Change]) -> None:
        """Apply and log changes of another workspace."""
        if not changes:
            return
        encoded = [await self._encode(change.action, change.before, change.after) for change in changes]
        logged = [(change.seq, change.batch, change.at, change.actor, change.interface) for change in changes]
        try:
            await self._send(logged, encoded)
        except DatabaseError as error:
            if (place := _place_of(error)) is None:
                raise
            change = changes[place]
            before: Any = change.before
            raise (outdated(before) if error.sqlstate == VERSION_ERROR else conflicting(change)) from error
        self._log_end.advance(changes[-1].seq)


def _size_of(change: Change) -> int:
    """Return the number of characters that make a change large, roughly."""
    return sum(len(state.content) for state in (change.before, change.after) if isinstance(state, Prompt))


def _place_of(error: Any) -> int | None:
    """Return which of the writes has failed, if the function says so."""
    detail = error.detail if isinstance(error.detail, str) else ""
    return int(detail) - 1 if detail.isdigit() else None
