"""HTTP sessions in the database, shared by all server processes behind one address."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Final, TypeVar

import msgspec

from dittybag.domain.errors import DittybagError
from dittybag.domain.ports import Store, StoredSession, Transaction
from dittybag.http.asgi_messages import HttpError
from dittybag.http.http_sessions import SessionState, merge_states
from dittybag.protocol.wire_errors import InternalError

T = TypeVar("T")

#: A session that is unused for this long has ended (microseconds).
_IDLE: Final = 7 * 24 * 3600 * 1_000_000
#: The time of last use is updated at most this often (microseconds).
_TOUCH_INTERVAL: Final = 600 * 1_000_000
#: Maximum number of sessions of one user. A new one ends the oldest.
MAX_SESSIONS: Final = 1_000

_decode = msgspec.msgpack.Decoder(SessionState).decode


class StoreSessionRegistry:
    """Implements `dittybag.http.http_sessions.SessionRegistry`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, id: str, state: SessionState) -> None:
        owner = f"mcp {state.principal}"

        async def work(transaction: Transaction) -> None:
            await transaction.sessions.prune(transaction.now - _IDLE, owner, MAX_SESSIONS - 1)
            await transaction.sessions.save(id, owner, msgspec.msgpack.encode(state), transaction.now)

        await self._run(self._store.write(work, actor=""))

    async def find(self, id: str) -> SessionState | None:
        async def work(transaction: Transaction) -> StoredSession | None:
            return await transaction.sessions.get(id)

        stored = await self._run(self._store.read(work, single=True))
        if stored is None:
            return None
        unused = time.time_ns() // 1000 - stored.used_at
        if unused > _IDLE:
            return None
        state = _decode(stored.state)
        if unused > _TOUCH_INTERVAL:
            await self.change(id, state, state)
        return state

    async def change(self, id: str, before: SessionState, after: SessionState) -> None:
        async def work(transaction: Transaction) -> None:
            # Another process may have ended the session.
            if (stored := await transaction.sessions.get(id)) is not None:
                state = merge_states(_decode(stored.state), before, after)
                await transaction.sessions.save(
                    id, stored.owner, msgspec.msgpack.encode(state), transaction.now
                )

        await self._run(self._store.write(work, actor=""))

    async def end(self, id: str) -> bool:
        async def work(transaction: Transaction) -> bool:
            return await transaction.sessions.delete(id)

        return await self._run(self._store.write(work, actor=""))

    async def _run(self, work: Awaitable[T]) -> T:
        """Await `work`. Report a storage error as status 503 with `Retry-After`."""
        try:
            return await work
        except DittybagError as error:
            raise HttpError(503, InternalError(str(error)), headers=[(b"retry-after", b"1")]) from error
