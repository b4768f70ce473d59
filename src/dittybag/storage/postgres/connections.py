"""Connections to a PostgreSQL server, and what its errors mean."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit
from zlib import crc32

import asyncpg  # type: ignore[import-untyped]  # it has no types
from msgspec import Struct

from dittybag.domain.errors import (
    StorageBusy,
    StorageDamaged,
    StorageError,
    StorageFailed,
    StorageFull,
    StorageReadOnly,
    StorageUnreachable,
)

#: How long whoever waits keeps waiting for a server that is away.
RETRY_SECONDS: Final = 5.0

CONNECT_SECONDS: Final = 5.0

#: How long one statement may take, and how long it waits for what others hold.
STATEMENT_SECONDS: Final = 30.0
LOCK_SECONDS: Final = 25.0

#: Longer than the server's own limit, for when it does not keep that.
COMMAND_SECONDS: Final = STATEMENT_SECONDS + 5

#: A process that stands still in the middle of a transaction keeps all other writers waiting for so long.
IDLE_SECONDS: Final = 10.0

#: Separates our advisory locks from those of other programs: "Ditt".
LOCK_CLASS: Final = 0x44697474

#: https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS
_NAME_BYTES: Final = 63

_SETTINGS: Final = {
    "application_name": "dittybag",
    "statement_timeout": str(int(STATEMENT_SECONDS * 1000)),
    "lock_timeout": str(int(LOCK_SECONDS * 1000)),
    "idle_in_transaction_session_timeout": str(int(IDLE_SECONDS * 1000)),
    # A client whose machine has vanished must not keep its locks for hours.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    # Compiling takes longer than any query here.
    "jit": "off",
}

#: For readers: whatever they are asked to do, they do not write, and see one state from begin to end.
_READING: Final = {"default_transaction_read_only": "on", "default_transaction_isolation": "repeatable read"}

#: For writers, who see what is there once they have the lock.
_WRITING: Final = {"default_transaction_read_only": "off", "default_transaction_isolation": "read committed"}

#: Whatever the server's default is, an acknowledged write is on its disk.
_FORCE_DURABLE_COMMITS: Final = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
)


class Connection(Protocol):
    """As much of a connection of asyncpg's as is used here."""

    async def execute(self, query: str, *values: Any) -> str: ...

    async def fetch(self, query: str, *values: Any) -> list[Any]: ...

    async def fetchrow(self, query: str, *values: Any) -> Any: ...

    async def fetchval(self, query: str, *values: Any) -> Any: ...

    def transaction(self) -> Any: ...

    async def add_listener(self, notification_channel: str, callback: Callable[..., None]) -> None: ...

    def add_termination_listener(self, callback: Callable[..., None]) -> None: ...

    def is_closed(self) -> bool: ...

    def is_in_transaction(self) -> bool: ...

    def terminate(self) -> None: ...

    async def close(self, *, timeout: float | None = None) -> None: ...  # noqa: ASYNC109  # its own word


class PostgresAddress(Struct, frozen=True):
    """Where a workspace is: a schema of a database."""

    #: For the driver. It may have a password in it.
    dsn: str
    #: For people.
    display_url: str
    #: The first in the search path, if none is named.
    schema: str | None

    def __repr__(self) -> str:
        return f"Address({self.display_url!r})"


def parse_address(url: str) -> PostgresAddress:
    """What a `postgresql://` URL says. Raises `StorageFailed` if it makes no sense."""
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        # Its own message may quote the URL, and the password with it.
        raise StorageFailed("postgresql://", "this is not a URL") from None
    schema = options.pop("schema", None)
    account, _, hosts = parts.netloc.rpartition("@")
    user = account.partition(":")[0]
    display_url = f"postgresql://{user}{'@' if user else ''}{hosts or options.get('host', '')}{parts.path}"
    if schema is not None:
        display_url += f"?schema={quote(schema)}"
    if parts.scheme not in ("postgresql", "postgres"):
        raise StorageFailed(display_url, "the URL must begin with postgresql://")
    if schema is not None and not 0 < len(unquote(schema).encode(errors="replace")) <= _NAME_BYTES:
        raise StorageFailed(display_url, f"the name of a schema has 1 to {_NAME_BYTES} bytes")
    if any("\0" in text for text in (unquote(url), *options.values(), schema or "")):
        raise StorageFailed(display_url.replace("\0", ""), "a URL must not contain NUL characters")
    dsn = urlunsplit(parts._replace(query=urlencode(options, quote_via=quote)))
    return PostgresAddress(dsn, display_url, schema)


def quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def lock_keys(schema: str) -> str:
    """The advisory lock of a workspace, as arguments. A clash of two schemas only makes them wait."""
    return f"{LOCK_CLASS}, {crc32(schema.encode()) - (1 << 31)}"


def notification_channel(schema: str) -> str:
    """The channel on which a workspace tells its news."""
    return (
        f"dittybag_{schema}"
        if len(schema.encode()) < _NAME_BYTES - 8
        else f"dittybag_{crc32(schema.encode())}"
    )


class ConnectionLost(Exception):
    """There is no connection (any more). What was being done may be tried again."""


async def connect(where: PostgresAddress, *, writable: bool, seconds: float = CONNECT_SECONDS) -> Connection:
    """Open a connection. A reader may not write. Raises `ConnectionLost` if nobody answers, or too many do."""
    # The driver's deadline needs a task. Whoever answers at once has none yet, but has one after a pause.
    await asyncio.sleep(0)
    settings = {**_SETTINGS, **(_WRITING if writable else _READING)}
    if where.schema is not None:
        settings["search_path"] = quoted(where.schema)
    try:
        connection: Connection = await asyncpg.connect(
            where.dsn, timeout=seconds, command_timeout=COMMAND_SECONDS, server_settings=settings
        )
    except Exception as error:
        if isinstance(
            error, (OSError, asyncpg.InterfaceError, asyncpg.TooManyConnectionsError, *_CONNECTION_ENDED)
        ):
            if isinstance(error, (asyncpg.ClientConfigurationError, *_PERMANENT_FAILURES)):
                raise StorageUnreachable(where.display_url, _first_line(error)) from None
            raise ConnectionLost(_first_line(error)) from error
        raise to_storage_error(error, where.display_url) from None
    _set_tcp_timeout(connection)
    if writable:
        try:
            await connection.execute(_FORCE_DURABLE_COMMITS)
        except Exception as error:
            connection.terminate()
            raise translate_error(error, connection, where.display_url) from error
    return connection


def _set_tcp_timeout(connection: Connection) -> None:
    """Notice soon when what we send is not received by anybody any more."""
    transport = getattr(connection, "_transport", None)
    peer = None if transport is None else transport.get_extra_info("socket")
    if peer is not None and peer.family in (socket.AF_INET, socket.AF_INET6):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(RETRY_SECONDS * 1000))


#: The server ends the connection with these, or it is gone.
_CONNECTION_ENDED: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    # The server has said something that was no answer: that it ends the connection.
    asyncpg.InternalClientError,
)

#: Trying again will not help.
_PERMANENT_FAILURES: Final = (
    asyncpg.ConnectionRejectionError,
    asyncpg.ProtocolViolationError,
)

#: What was being done can be done again at once.
_RETRYABLE: Final = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.InvalidCachedStatementError,
    asyncpg.OutdatedSchemaCacheError,
)

_ErrorClass: TypeAlias = tuple[type[Exception], type[StorageError]]

_ERROR_CLASSES: Final[tuple[_ErrorClass, ...]] = (
    (TimeoutError, StorageBusy),
    (asyncpg.LockNotAvailableError, StorageBusy),
    (asyncpg.QueryCanceledError, StorageBusy),
    (asyncpg.TooManyConnectionsError, StorageBusy),
    (asyncpg.DiskFullError, StorageFull),
    (asyncpg.ReadOnlySQLTransactionError, StorageReadOnly),
    (asyncpg.InsufficientPrivilegeError, StorageReadOnly),
    (asyncpg.DataCorruptedError, StorageDamaged),
    (asyncpg.IndexCorruptedError, StorageDamaged),
    (asyncpg.InvalidAuthorizationSpecificationError, StorageUnreachable),
    (asyncpg.InvalidCatalogNameError, StorageUnreachable),
)

#: All that a driver and a server may raise.
DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

#: A row that must not be there, or must.
ConstraintError: Final = asyncpg.IntegrityConstraintViolationError


def translate_error(error: Exception, connection: Connection, where: str) -> Exception:
    """An error of the driver as one of the store, or as `ConnectionLost`; every other as it is."""
    if not isinstance(error, DRIVER_ERRORS):
        return error
    broken = connection.is_closed() and isinstance(error, asyncpg.InterfaceError | OSError)
    if broken or isinstance(error, (*_CONNECTION_ENDED, *_RETRYABLE)):
        # The driver may not have noticed yet.
        connection.terminate()
        return ConnectionLost(_first_line(error))
    return to_storage_error(error, where)


def to_storage_error(error: Exception, where: str) -> StorageError:
    """What an error of the driver says about the store."""
    for kind, error_class in _ERROR_CLASSES:
        if isinstance(error, kind):
            return (
                error_class(where, _first_line(error))
                if issubclass(error_class, StorageFailed)
                else error_class(where)
            )
    return StorageFailed(where, _first_line(error))


def _first_line(error: Exception) -> str:
    """The first line: the others are hints for those who write SQL."""
    return (str(error) or type(error).__name__).partition("\n")[0]
