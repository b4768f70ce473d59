"""Calls that come with a key: each is carried out once, and the answer stored for when it comes again."""

from __future__ import annotations

from typing import Final, TypeVar

from dittybag.domain.errors import KeyReused
from dittybag.domain.idempotency import RETENTION, StoredResult
from dittybag.domain.ports import Store, Transaction, Work

T = TypeVar("T")

#: So many old answers are forgotten whenever a new one is stored.
_FORGOTTEN: Final = 50


class IdempotentCall:
    """A call with a key: whose, which key, and a digest of what is asked."""

    __slots__ = ("digest", "is_done", "key", "owner")

    def __init__(self, owner: str, key: str, digest: bytes) -> None:
        """`owner`: empty for the owner of the machine."""
        self.owner = owner
        self.key = key
        self.digest = digest
        #: Something was written: whatever else this very call writes is a part of it.
        self.is_done = False


class DuplicateCall(Exception):
    """The call has been carried out before."""

    def __init__(self, stored: StoredResult) -> None:
        self.stored = stored


def run_once(call: IdempotentCall, work: Work[T]) -> Work[T]:
    """The work, unless the call was carried out before: then it raises `DuplicateCall`, or `KeyReused`.

    Writers take turns, and the key is noted in the same transaction as what is done: so of two calls that
    come at once, one finds the other's key.
    """

    async def carry_out(transaction: Transaction) -> T:
        if (stored := await _remembered(transaction, call)) is not None:
            raise DuplicateCall(stored)
        result = await work(transaction)
        await transaction.record_idempotency_key(call.owner, call.key, call.digest)
        return result

    return carry_out


class IdempotencyService:
    """What is known of calls that came with a key."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, call: IdempotentCall) -> tuple[StoredResult | None, int]:
        """The call, if it has been carried out; and what time it is. Raises `KeyReused`."""

        async def work(transaction: Transaction) -> tuple[StoredResult | None, int]:
            return await _remembered(transaction, call), transaction.now

        return await self._store.read(work)

    async def save_result(self, call: IdempotentCall, answer: bytes) -> None:
        """Keep the answer to a call that was carried out, and forget some that nobody needs any more."""

        async def work(transaction: Transaction) -> None:
            await transaction.save_idempotent_result(call.owner, call.key, call.digest, answer)
            await transaction.prune_idempotency_keys(transaction.now - RETENTION, _FORGOTTEN)

        await self._store.write(work, actor="")


async def _remembered(transaction: Transaction, call: IdempotentCall) -> StoredResult | None:
    stored = await transaction.idempotency.get(call.owner, call.key)
    if stored is None or not stored.is_valid(transaction.now):
        return None
    if stored.digest != call.digest:
        raise KeyReused(call.key)
    return stored
