"""Idempotency keys and stored results in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import msgspec

from dittybag.domain.idempotency import StoredResult
from dittybag.storage.row_mapping import stored_result_from_row
from dittybag.storage.sqlite.rows import first_row


class IdempotencyTable:
    """See `dittybag.domain.ports.IdempotencyRepository`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def get(self, owner: str, key: str) -> StoredResult | None:
        sql = (
            "SELECT digest, at, first_seq, last_seq, result FROM idempotency_keys WHERE owner = ? AND key = ?"
        )
        row = first_row(self._connection, sql, (owner, key))
        return None if row is None else stored_result_from_row(row)


def insert(
    connection: apsw.Connection,
    owner: str,
    key: str,
    digest: bytes,
    *,
    at: int,
    seqs: tuple[int | None, int | None],
) -> None:
    """Record the key of a call that has run and has no stored result yet."""
    connection.execute(
        "INSERT OR REPLACE INTO idempotency_keys (owner, key, digest, at, first_seq, last_seq)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (owner, key, digest, at, *seqs),
    )


def save_result(connection: apsw.Connection, owner: str, key: str, digest: bytes, result: bytes) -> None:
    """Store the result of a call."""
    connection.execute(
        "UPDATE idempotency_keys SET result = ?"
        " WHERE owner = ? AND key = ? AND digest = ? AND result IS NULL",
        (result, owner, key, digest),
    )


def clear_results(connection: apsw.Connection, seqs: Sequence[int]) -> None:
    """Clear the results of calls that made one of these changes, or none: those may show any content."""
    connection.execute(
        """UPDATE idempotency_keys SET result = x''
           WHERE first_seq IS NULL OR EXISTS (
               SELECT 1 FROM json_each(?) WHERE value BETWEEN first_seq AND last_seq)""",
        (msgspec.json.encode(seqs).decode(),),
    )


def prune(connection: apsw.Connection, before: int, max_count: int) -> None:
    """Delete keys recorded up to the time `before`: the oldest first, at most `max_count`."""
    connection.execute(
        "DELETE FROM idempotency_keys WHERE rowid IN"
        " (SELECT rowid FROM idempotency_keys WHERE at <= ? ORDER BY at LIMIT ?)",
        (before, max_count),
    )
