"""Idempotency keys and stored results in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from dittybag.domain.idempotency import StoredResult
from dittybag.storage.postgres.connections import PostgresConnection
from dittybag.storage.postgres.rows import first_row
from dittybag.storage.row_mapping import stored_result_from_row


class IdempotencyTable:
    """See `dittybag.domain.ports.IdempotencyRepository`."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    async def get(self, owner: str, key: str) -> StoredResult | None:
        sql = """SELECT digest, at, first_seq, last_seq, result FROM idempotency_keys
                 WHERE owner = $1 AND key = $2"""
        row = await first_row(self._connection, sql, owner, key)
        return None if row is None else stored_result_from_row(row)


async def insert(
    connection: PostgresConnection,
    owner: str,
    key: str,
    digest: bytes,
    *,
    at: int,
    seqs: tuple[int | None, int | None],
) -> None:
    """Record the key of a call that has run and has no stored result yet."""
    await connection.execute(
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


async def save_result(
    connection: PostgresConnection, owner: str, key: str, digest: bytes, result: bytes
) -> None:
    """Store the result of a call."""
    await connection.execute(
        """UPDATE idempotency_keys SET result = $4
           WHERE owner = $1 AND key = $2 AND digest = $3 AND result IS NULL""",
        owner,
        key,
        digest,
        result,
    )


async def clear_results(connection: PostgresConnection, seqs: Sequence[int]) -> None:
    """Clear the results of calls that made one of these changes, or none: those may show any content."""
    await connection.execute(
        """UPDATE idempotency_keys SET result = ''
           WHERE first_seq IS NULL OR EXISTS (
               SELECT FROM unnest($1::bigint[]) AS seq WHERE seq BETWEEN first_seq AND last_seq)""",
        seqs,
    )


async def prune(connection: PostgresConnection, before: int, max_count: int) -> None:
    """Delete keys recorded up to the time `before`: the oldest first, at most `max_count`."""
    await connection.execute(
        """DELETE FROM idempotency_keys WHERE (owner, key) IN (
               SELECT owner, key FROM idempotency_keys WHERE at <= $1 ORDER BY at LIMIT $2)""",
        before,
        max_count,
    )
