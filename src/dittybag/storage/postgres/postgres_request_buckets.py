"""Buckets of requests in the database, from which all servers of a workspace take."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from dittybag.domain.errors import StorageUnreachable
from dittybag.domain.rate_limits import RateLimit, TakenRequests
from dittybag.storage.postgres.postgres_connections import (
    DRIVER_ERRORS,
    ConnectionLost,
    PostgresAddress,
    PostgresConnection,
    connect,
    translate_error,
)

#: How often a server deletes buckets that are full again, in seconds.
CLEANING_SECONDS: Final = 600.0

_TAKE: Final = "SELECT token, granted, wait FROM take_requests($1, $2, $3, $4)"

#: A row that another server uses at the moment is left alone, so this never waits.
_DELETE_FULL: Final = """
DELETE FROM request_buckets WHERE token IN (
    SELECT token FROM request_buckets WHERE full_at < extract(epoch FROM clock_timestamp())
    LIMIT 10000 FOR UPDATE SKIP LOCKED
)
"""


class PostgresRequestBuckets:
    """See `dittybag.domain.ports.RequestBuckets`. Its connection is opened when it is first used."""

    def __init__(self, where: PostgresAddress) -> None:
        self._where = where
        self._connection: PostgresConnection | None = None
        self._cleaned_at = time.monotonic()

    async def take(self, wanted: Mapping[bytes, int], limit: RateLimit) -> Mapping[bytes, TakenRequests]:
        """Raises `StorageError`. Only one call may run at a time."""
        try:
            try:
                return await self._take(wanted, limit)
            except ConnectionLost:
                # It may have been idle for long. To take twice does no harm.
                return await self._take(wanted, limit)
        except ConnectionLost as error:
            raise StorageUnreachable(self._where.display_url, str(error)) from error

    async def _take(self, wanted: Mapping[bytes, int], limit: RateLimit) -> Mapping[bytes, TakenRequests]:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._where, writable=True)
        connection = self._connection
        try:
            rows = await connection.fetch(
                _TAKE, list(wanted), list(wanted.values()), limit.per_second, limit.burst
            )
            if time.monotonic() >= self._cleaned_at + CLEANING_SECONDS:
                self._cleaned_at = time.monotonic()
                await connection.execute(_DELETE_FULL)
        except BaseException as error:
            # Also if the caller no longer waits: the connection may still be busy.
            self._drop_connection()
            if isinstance(error, DRIVER_ERRORS):
                raise translate_error(error, connection, self._where.display_url) from error
            raise
        return {token: TakenRequests(granted, wait) for token, granted, wait in rows}

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        self._drop_connection()
