"""Answers to calls with a key in PostgreSQL."""

from __future__ import annotations

from dittybag.domain.idempotency import StoredResult
from dittybag.storage.postgres.connections import Connection
from dittybag.storage.postgres.rows import first_row
from dittybag.storage.row_mapping import stored_result_from_row


class IdempotencyTable:
    """Reading answers."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, owner: str, key: str) -> StoredResult | None:
        sql = "SELECT digest, at, first, last, answer FROM answers WHERE owner = $1 AND key = $2"
        row = await first_row(self._connection, sql, owner, key)
        return None if row is None else stored_result_from_row(row)


async def note(
    connection: Connection,
    owner: str,
    key: str,
    digest: bytes,
    *,
    at: int,
    seqs: tuple[int | None, int | None],
) -> None:
    """A call has been carried out, and is not answered yet."""
    await connection.execute(
        """INSERT INTO answers (owner, key, digest, at, first, last) VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (owner, key) DO UPDATE SET digest = excluded.digest, at = excluded.at,
                  first = excluded.first, last = excluded.last, answer = NULL""",
        owner,
        key,
        digest,
        at,
        *seqs,
    )


async def keep(connection: Connection, owner: str, key: str, digest: bytes, answer: bytes) -> None:
    """This was answered to a call."""
    await connection.execute(
        "UPDATE answers SET answer = $4 WHERE owner = $1 AND key = $2 AND digest = $3",
        owner,
        key,
        digest,
        answer,
    )


async def forget(connection: Connection, before: int, most: int) -> None:
    """Forget the oldest of those that are older, but not too many at a time."""
    await connection.execute(
        """DELETE FROM answers WHERE (owner, key) IN (
               SELECT owner, key FROM answers WHERE at <= $1 ORDER BY at LIMIT $2)""",
        before,
        most,
    )
