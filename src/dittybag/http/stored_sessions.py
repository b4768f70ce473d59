"""Sessions of HTTP clients in the store, where every process behind one address finds them."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Final, TypeVar

import msgspec

from dittybag.domain.errors import DittybagError
from dittybag.domain.ports import Store, StoredSession, Transaction
from dittybag.protocol import InternalError
from dittybag.protocol.transports.http.asgi_messages import HttpError
from dittybag.protocol.transports.http.http_sessions import SessionState, merge_states

T = TypeVar("T")

#: In microseconds: a session that is not used for so long has ended ...
_IDLE: Final = 7 * 24 * 3600 * 1_000_000
#: ... and its use is noted only so often.
_NOTED: Final = 600 * 1_000_000
_MOST: Final = 10_000

_decode = msgspec.msgpack.Decoder(SessionState).decode


class StoredSessions:
    """See `dittybag.protocol.transports.http.http_sessions.SessionRegistry`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, id: str, state: SessionState) -> None:
        async def work(transaction: Transaction) -> None:
            await transaction.prune_sessions(transaction.now - _IDLE, _MOST - 1)
            await transaction.save_session(id, msgspec.msgpack.encode(state))

        await self._done(self._store.write(work, actor=""))

    async def find(self, id: str) -> SessionState | None:
        async def work(transaction: Transaction) -> StoredSession | None:
            return await transaction.sessions.get(id)

        kept = await self._done(self._store.read(work))
        if kept is None:
            return None
        unused = time.time_ns() // 1000 - kept.used_at
        if unused > _IDLE:
            return None
        state = _decode(kept.state)
        if unused > _NOTED:
            await self.change(id, state, state)
        return state

    async def change(self, id: str, before: SessionState, after: SessionState) -> None:
        async def work(transaction: Transaction) -> None:
            # Another process may have ended it.
            if (kept := await transaction.sessions.get(id)) is not None:
                state = merge_states(_decode(kept.state), before, after)
                await transaction.save_session(id, msgspec.msgpack.encode(state))

        await self._done(self._store.write(work, actor=""))

    async def end(self, id: str) -> bool:
        async def work(transaction: Transaction) -> bool:
            return await transaction.delete_session(id)

        return await self._done(self._store.write(work, actor=""))

    async def _done(self, work: Awaitable[T]) -> T:
        """What goes wrong with the store is said in our words, and may be over in a moment."""
        try:
            return await work
        except DittybagError as error:
            raise HttpError(503, InternalError(str(error)), headers=[(b"retry-after", b"1")]) from error
