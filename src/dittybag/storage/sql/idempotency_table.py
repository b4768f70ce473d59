"""Idempotency keys and stored results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dittybag.domain.idempotency import StoredResult
from dittybag.storage.sql.row_mapping import row_reader
from dittybag.storage.sql.sql_driver import SqlDriver

_read_result: Final = row_reader(StoredResult)


class IdempotencyTable:
    """See `dittybag.domain.ports.IdempotencyRepository`."""

    def __init__(self, driver: SqlDriver) -> None:
        self._driver = driver

    async def get(self, owner: str, key: str) -> StoredResult | None:
        sql = """SELECT digest, at, first_seq, last_seq, result FROM idempotency_keys
                 WHERE owner = $1 AND key = $2"""
        row = await self._driver.row(sql, owner, key)
        return None if row is None else _read_result(row)

    async def insert(
        self, owner: str, key: str, digest: bytes, at: int, seqs: tuple[int | None, int | None]
    ) -> None:
        """Record the key of a call that has run and has no stored result yet."""
        await self._driver.run(
            """INSERT INTO idempotency_keys (owner, key, digest, at, first_seq, last_seq)
               VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT (owner, key) DO UPDATE SET digest = excluded.digest, at = excluded.at,
                      first_seq = excluded.first_seq, last_seq = excluded.last_seq, result = NULL""",
            owner,
            key,
            digest,
            at,
            *seqs,
        )

    async def save_result(self, owner: str, key: str, digest: bytes, result: bytes) -> None:
        """Store the result of a call."""
        sql = """UPDATE idempotency_keys SET result = $4
                 WHERE owner = $1 AND key = $2 AND digest = $3 AND result IS NULL"""
        await self._driver.run(sql, owner, key, digest, result)

    async def clear_results(self, seqs: Sequence[int]) -> None:
        """Clear the results of calls that made one of these changes, or none: those may show any content."""
        await self._driver.run(
            f"""UPDATE idempotency_keys SET result = $2 WHERE first_seq IS NULL OR EXISTS (
                    SELECT 1 FROM changes
                    WHERE seq BETWEEN first_seq AND last_seq AND {self._driver.any_of("seq", "$1")})""",
            self._driver.list_value(seqs),
            b"",
        )

    async def prune(self, before: int, max_count: int) -> None:
        """Delete keys recorded up to the time `before`: the oldest first, at most `max_count`."""
        await self._driver.run(
            """DELETE FROM idempotency_keys WHERE (owner, key) IN (
                   SELECT owner, key FROM idempotency_keys WHERE at <= $1 ORDER BY at LIMIT $2)""",
            before,
            max_count,
        )
