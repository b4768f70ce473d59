"""Calls that come with a key: each is carried out once, and the answer kept for when it comes again."""

from __future__ import annotations

from typing import Final, TypeVar

from dittybag.domain.errors import KeyReused
from dittybag.domain.idempotency import REMEMBERED, KeptAnswer
from dittybag.domain.ports import Store, Transaction, Work

T = TypeVar("T")

#: So many old answers are forgotten whenever a new one is kept.
_FORGOTTEN: Final = 50


class KeyedCall:
    """A call with a key: whose, which key, and a digest of what is asked."""

    __slots__ = ("digest", "is_done", "key", "owner")

    def __init__(self, owner: str, key: str, digest: bytes) -> None:
        """`owner`: empty for the owner of the machine."""
        self.owner = owner
        self.key = key
        self.digest = digest
        #: Something was written: whatever else this very call writes is a part of it.
        self.is_done = False


class CarriedOut(Exception):
    """The call has been carried out before."""

    def __init__(self, kept: KeptAnswer) -> None:
        self.kept = kept


def once(call: KeyedCall, work: Work[T]) -> Work[T]:
    """The work, unless the call was carried out before: then it raises `CarriedOut`, or `KeyReused`.

    Writers take turns, and the key is noted in the same transaction as what is done: so of two calls that
    come at once, one finds the other's key.
    """

    async def carry_out(transaction: Transaction) -> T:
        if (kept := await _remembered(transaction, call)) is not None:
            raise CarriedOut(kept)
        result = await work(transaction)
        await transaction.note_call(call.owner, call.key, call.digest)
        return result

    return carry_out


class IdempotencyService:
    """What is known of calls that came with a key."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, call: KeyedCall) -> tuple[KeptAnswer | None, int]:
        """The call, if it has been carried out; and what time it is. Raises `KeyReused`."""

        async def work(transaction: Transaction) -> tuple[KeptAnswer | None, int]:
            return await _remembered(transaction, call), transaction.now

        return await self._store.read(work)

    async def keep(self, call: KeyedCall, answer: bytes) -> None:
        """Keep the answer to a call that was carried out, and forget some that nobody needs any more."""

        async def work(transaction: Transaction) -> None:
            await transaction.keep_answer(call.owner, call.key, call.digest, answer)
            await transaction.forget_answers(transaction.now - REMEMBERED, _FORGOTTEN)

        await self._store.write(work, actor="")


async def _remembered(transaction: Transaction, call: KeyedCall) -> KeptAnswer | None:
    kept = await transaction.answers.get(call.owner, call.key)
    if kept is None or not kept.is_remembered(transaction.now):
        return None
    if kept.digest != call.digest:
        raise KeyReused(call.key)
    return kept
