"""Answers to calls with a key in SQLite."""

from __future__ import annotations

import apsw

from dittybag.domain.idempotency import StoredResult
from dittybag.storage.row_mapping import stored_result_from_row
from dittybag.storage.sqlite.rows import first_row


class IdempotencyTable:
    """Reading answers."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def get(self, owner: str, key: str) -> StoredResult | None:
        sql = "SELECT digest, at, first, last, answer FROM answers WHERE owner = ? AND key = ?"
        row = first_row(self._connection, sql, (owner, key))
        return None if row is None else stored_result_from_row(row)


def note(
    connection: apsw.Connection,
    owner: str,
    key: str,
    digest: bytes,
    *,
    at: int,
    seqs: tuple[int | None, int | None],
) -> None:
    """A call has been carried out, and is not answered yet."""
    connection.execute(
        "INSERT OR REPLACE INTO answers (owner, key, digest, at, first, last) VALUES (?, ?, ?, ?, ?, ?)",
        (owner, key, digest, at, *seqs),
    )


def keep(connection: apsw.Connection, owner: str, key: str, digest: bytes, answer: bytes) -> None:
    """This was answered to a call."""
    connection.execute(
        "UPDATE answers SET answer = ? WHERE owner = ? AND key = ? AND digest = ?",
        (answer, owner, key, digest),
    )


def forget(connection: apsw.Connection, before: int, most: int) -> None:
    """Forget the oldest of those that are older, but not too many at a time."""
    connection.execute(
        "DELETE FROM answers WHERE rowid IN (SELECT rowid FROM answers WHERE at <= ? ORDER BY at LIMIT ?)",
        (before, most),
    )
