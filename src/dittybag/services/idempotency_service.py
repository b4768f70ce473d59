"""Use cases for idempotency keys: each call with a key runs once, and its result is stored."""

from __future__ import annotations

from functools import partial
from typing import Final, TypeVar

from dittybag.domain.errors import KeyReused
from dittybag.domain.idempotency import RETENTION, StoredResult
from dittybag.domain.ports import Store, Transaction, Work

T = TypeVar("T")

#: Number of expired keys that are deleted whenever a result is stored.
_PRUNED: Final = 50


class IdempotentCall:
    """A call with an idempotency key: its owner, the key and a hash of the request."""

    __slots__ = ("digest", "is_done", "key", "owner")

    def __init__(self, owner: str, key: str, digest: bytes) -> None:
        """`owner`: empty for the owner of the machine."""
        self.owner = owner
        self.key = key
        self.digest = digest
        #: Whether the call has written: its further writes belong to the same execution.
        self.is_done = False


class DuplicateCall(Exception):
    """A call with the same key was executed before."""

    def __init__(self, stored: StoredResult) -> None:
        self.stored = stored


def run_once(call: IdempotentCall, work: Work[T]) -> Work[T]:
    """Wrap `work` so that it raises `DuplicateCall` or `KeyReused` if the key was used before.

    The key is recorded in the same transaction as the work, and write transactions are serialised or check
    that the key is still unused. So one of two concurrent calls finds the key of the other.
    """

    async def guarded(transaction: Transaction) -> T:
        if (stored := await _find_valid(transaction, call)) is not None:
            raise DuplicateCall(stored)
        transaction.plan_idempotency_key(call.owner, call.key, call.digest)
        result = await work(transaction)
        await transaction.record_idempotency_key(call.owner, call.key, call.digest)
        return result

    return guarded


class IdempotencyService:
    """Stores and finds the results of calls with idempotency keys."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, call: IdempotentCall) -> tuple[StoredResult | None, int]:
        """Return the record of the call, if it was executed, and the current time. Raises `KeyReused`."""
        return await self._store.read(partial(_find_with_time, call=call))

    async def save_result(self, call: IdempotentCall, result: bytes) -> None:
        """Store the result of an executed call and delete some expired keys."""
        await self._store.write(partial(_save_result, call=call, result=result), actor="")


async def _save_result(transaction: Transaction, call: IdempotentCall, result: bytes) -> None:
    await transaction.save_idempotent_result(call.owner, call.key, call.digest, result)
    await transaction.prune_idempotency_keys(transaction.now - RETENTION, _PRUNED)


async def _find_with_time(transaction: Transaction, call: IdempotentCall) -> tuple[StoredResult | None, int]:
    return await _find_valid(transaction, call), transaction.now


async def _find_valid(transaction: Transaction, call: IdempotentCall) -> StoredResult | None:
    stored = await transaction.idempotency.get(call.owner, call.key)
    if stored is None or not stored.is_valid(transaction.now):
        return None
    if stored.digest != call.digest:
        raise KeyReused(call.key)
    return stored
