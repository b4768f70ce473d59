"""Connections to a PostgreSQL server, and the translation of its errors."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit
from zlib import crc32

import asyncpg  # type: ignore[import-untyped]  # it has no types
from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.errors import (
    StorageBusy,
    StorageDamaged,
    StorageError,
    StorageFailed,
    StorageFull,
    StorageReadOnly,
    StorageUnreachable,
)
from dittybag.storage.postgres.driver_connections import DirectConnection, PooledConnection

#: How long requests are retried while the server is unreachable.
RETRY_SECONDS: Final = 5.0

CONNECT_SECONDS: Final = 5.0

#: The option of macOS that does what TCP_USER_TIMEOUT does on Linux, in seconds.
_TCP_RXT_CONNDROPTIME: Final = 0x80

#: How long a writer tries to connect. Callers wait for the outcome meanwhile.
RECONNECT_SECONDS: Final = 2.0

#: The maximum duration of a statement, and of its wait for a lock.
STATEMENT_SECONDS: Final = 30.0
LOCK_SECONDS: Final = 25.0

#: Longer than the server's own limit, in case the server does not enforce it.
COMMAND_SECONDS: Final = STATEMENT_SECONDS + 5
#: The maximum duration of a statement that changes all rows of a table or builds an index of them.
REBUILD_SECONDS: Final = 86_400.0

#: How long a process that hangs in a transaction can block other writers.
IDLE_SECONDS: Final = 10.0

#: The maximum size of the list of new entries of an index in KiB. Usually the list is merged much earlier.
INDEX_LIST_LIMIT: Final = 32768

#: Separates our advisory locks from those of other programs: "Ditt".
LOCK_CLASS: Final = 0x44697474

#: https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS
_NAME_BYTES: Final = 63

#: Nothing else is set when a connection is opened through a pooler: PgBouncer knows no other settings.
_NAME: Final = {"application_name": "dittybag"}

_SETTINGS: Final = {
    "statement_timeout": str(int(STATEMENT_SECONDS * 1000)),
    "lock_timeout": str(int(LOCK_SECONDS * 1000)),
    "idle_in_transaction_session_timeout": str(int(IDLE_SECONDS * 1000)),
    # Compiling a query takes longer than running it.
    "jit": "off",
}

#: Without keepalives, a client machine that crashes would hold its locks for hours.
_KEEPALIVES: Final = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}

#: Readers cannot write, and see one snapshot per transaction.
_READING: Final = {"default_transaction_read_only": "on", "default_transaction_isolation": "repeatable read"}

#: Writers see all commits up to the moment they get the lock.
_WRITING: Final = {"default_transaction_read_only": "off", "default_transaction_isolation": "read committed"}

#: The same for each transaction through a pooler.
_BEGIN_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITING: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

#: An acknowledged write is on disk, whatever the server's default.
_FORCE_DURABLE_COMMITS: Final = (
    "SELECT set_config('synchronous_commit', 'on', {})"
    " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
)


#: For those whose server does not take settings.
POOLER_HINT: Final = "if this is PgBouncer, add pooler=transaction to the options of the URL"


class PostgresConnection(Protocol):
    """The part of an asyncpg connection that is used here."""

    waiting_since: float | None

    async def is_running_on(self, other: PostgresConnection) -> bool: ...

    async def execute(self, query: str, *values: Any, timeout: float | None = None) -> str: ...  # noqa: ASYNC109  # asyncpg's signature

    async def executemany(self, command: str, args: Iterable[Sequence[Any]]) -> None: ...

    async def fetch(self, query: str, *values: Any) -> list[Any]: ...

    async def fetchrow(self, query: str, *values: Any) -> Any: ...

    async def fetchval(self, query: str, *values: Any, timeout: float | None = None) -> Any: ...  # noqa: ASYNC109  # asyncpg's signature

    async def begin(self, *statements: str) -> None: ...

    async def set_viewer(self, setting: str) -> None: ...

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None: ...

    def add_termination_listener(self, callback: Callable[..., None]) -> None: ...

    def is_closed(self) -> bool: ...

    def is_in_transaction(self) -> bool: ...

    def terminate(self) -> None: ...

    async def close(self, *, timeout: float | None = None) -> None: ...  # noqa: ASYNC109  # asyncpg's signature


class PostgresAddress(Struct, frozen=True):
    """The location of a workspace: a schema in a database."""

    #: For the driver. May contain a password.
    dsn: str
    #: For messages. Contains no password.
    display_url: str
    #: None for the first schema of the search path.
    schema: str | None
    #: Whether a pooler in transaction mode is in between.
    is_pooled: bool = False
    #: The server behind the pooler, if the URL names it.
    direct_dsn: str | None = None

    @property
    def direct(self) -> PostgresAddress | None:
        """The address of the server itself; None if only its pooler is known."""
        if not self.is_pooled:
            return self
        return (
            None
            if self.direct_dsn is None
            else PostgresAddress(self.direct_dsn, self.display_url, self.schema)
        )

    def __repr__(self) -> str:
        return f"PostgresAddress({self.display_url!r})"


def parse_address(url: str) -> PostgresAddress:
    """Parse a `postgresql://` URL. Raises `StorageFailed` if it is not valid."""
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        # The original message may contain the URL with its password.
        raise StorageFailed("postgresql://", "not a valid URL") from None
    schema, pooler, direct = (options.pop(name, None) for name in ("schema", "pooler", "direct"))
    account, _, hosts = parts.netloc.rpartition("@")
    user = account.partition(":")[0]
    display_url = f"postgresql://{user}{'@' if user else ''}{hosts or options.get('host', '')}{parts.path}"
    if schema is not None:
        display_url += f"?schema={quote(schema)}"
    if parts.scheme not in ("postgresql", "postgres"):
        raise StorageFailed(display_url, "the URL must start with postgresql://")
    if schema is not None and not 0 < len(unquote(schema).encode(errors="replace")) <= _NAME_BYTES:
        raise StorageFailed(display_url, f"a schema name must have 1 to {_NAME_BYTES} bytes")
    if any("\0" in text for text in (unquote(url), *options.values(), schema or "")):
        raise StorageFailed(display_url.replace("\0", ""), "the URL must not contain NUL characters")
    if pooler not in (None, "transaction"):
        raise StorageFailed(display_url, "the only value of pooler is transaction")
    if direct is not None and pooler is None:
        raise StorageFailed(display_url, "direct is the server behind a pooler: add pooler=transaction")
    dsn = urlunsplit(parts._replace(query=urlencode(options, quote_via=quote)))
    direct_dsn = None if direct is None else _replace_server(parts, options, direct)
    return PostgresAddress(dsn, display_url, schema, pooler is not None, direct_dsn)


def parse_replica(url: str, primary: PostgresAddress) -> PostgresAddress:
    """Parse the URL of a read replica, which has the same schema unless the URL names it."""
    address = parse_address(url)
    return address if address.schema is not None else replace(address, schema=primary.schema)


def _replace_server(parts: SplitResult, options: dict[str, str], server: str) -> str:
    """Return the URL of another server, `HOST:PORT` or `HOST:PORT/DATABASE`, with the same account."""
    host, slash, database = server.partition("/")
    account, at, _ = parts.netloc.rpartition("@")
    others = {name: value for name, value in options.items() if name not in ("host", "port")}
    replaced = parts._replace(
        netloc=f"{account}{at}{host}",
        path=f"/{quote(database)}" if slash else parts.path,
        query=urlencode(others, quote_via=quote),
    )
    return urlunsplit(replaced)


def quoted(name: str) -> str:
    """Quote a name as an SQL identifier."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def lock_keys(schema: str) -> str:
    """Return the arguments of a workspace's advisory lock."""
    return f"{LOCK_CLASS}, {lock_key(schema)}"


def lock_key(schema: str) -> int:
    """Return the second number of a workspace's advisory lock.

    Two schemas with the same hash only wait for each other.
    """
    return crc32(schema.encode()) - (1 << 31)


def notification_channel(schema: str) -> str:
    """Return the channel of a workspace for `NOTIFY`."""
    return (
        f"dittybag_{schema}"
        if len(schema.encode()) < _NAME_BYTES - 8
        else f"dittybag_{crc32(schema.encode())}"
    )


class ConnectionLost(Exception):
    """The connection failed or was lost. The operation can be retried."""

    #: Whether a server has answered, but accepts no more connections.
    is_refusal = False


async def connect(
    where: PostgresAddress, *, writable: bool, seconds: float = CONNECT_SECONDS
) -> PostgresConnection:
    """Open a connection. Without `writable`, it rejects writes.

    Raises `ConnectionLost` if the server does not answer or has too many connections.
    """
    try:
        open_it = _connect_pooled if where.is_pooled else _connect_directly
        connection = await open_it(where, writable=writable, seconds=seconds)
    except Exception as error:  # noqa: BLE001  # the driver raises errors of many kinds
        # The original error may contain the password.
        raise _connecting_error(error, where) from None
    _set_tcp_timeout(connection)
    if writable and not where.is_pooled:
        try:
            await connection.execute(_FORCE_DURABLE_COMMITS.format("false"))
        except BaseException as error:
            # Also if the caller was cancelled.
            connection.terminate()
            if not isinstance(error, Exception):
                raise
            raise translate_error(error, connection, where.display_url) from error
    return connection


async def _connect_directly(where: PostgresAddress, *, writable: bool, seconds: float) -> PostgresConnection:
    settings = {
        **_NAME,
        **_transaction_settings(where),
        **_KEEPALIVES,
        **(_WRITING if writable else _READING),
    }
    connection: PostgresConnection = await asyncpg.connect(
        where.dsn,
        timeout=seconds,
        command_timeout=COMMAND_SECONDS,
        connection_class=DirectConnection,
        server_settings=settings,
    )
    return connection


async def _connect_pooled(where: PostgresAddress, *, writable: bool, seconds: float) -> PostgresConnection:
    connection: PooledConnection = await asyncpg.connect(
        where.dsn,
        timeout=seconds,
        command_timeout=COMMAND_SECONDS,
        connection_class=PooledConnection,
        server_settings=_NAME,
        # A statement that is planned for the operator must not be found by users, see `0004`.
        statement_cache_size=0,
    )
    begin = f"{_BEGIN_WRITING}; {_FORCE_DURABLE_COMMITS.format('true')}" if writable else _BEGIN_READING
    connection.configure(begin, _transaction_settings(where))
    return connection


def _transaction_settings(where: PostgresAddress) -> dict[str, str]:
    return _SETTINGS if where.schema is None else {**_SETTINGS, "search_path": quoted(where.schema)}


def _connecting_error(error: Exception, where: PostgresAddress) -> Exception:
    """Return the error of a connection that could not be opened."""
    if isinstance(error, asyncpg.ProtocolViolationError) and not where.is_pooled:
        return StorageUnreachable(where.display_url, f"{_first_line(error)}; {POOLER_HINT}")
    if isinstance(error, (asyncpg.ClientConfigurationError, *_PERMANENT_FAILURES)):
        return StorageUnreachable(where.display_url, _first_line(error))
    if isinstance(
        error, (OSError, asyncpg.InterfaceError, asyncpg.TooManyConnectionsError, *_CONNECTION_ENDED)
    ):
        lost = ConnectionLost(_first_line(error))
        lost.is_refusal = isinstance(error, asyncpg.TooManyConnectionsError)
        return lost
    return to_storage_error(error, where.display_url)


async def require_settings(connection: PostgresConnection, where: PostgresAddress) -> None:
    """Raise `StorageFailed` if the settings of a connection are ignored, as a pooler may do."""
    if await connection.fetchval("SHOW statement_timeout") != f"{STATEMENT_SECONDS:.0f}s":
        raise StorageFailed(where.display_url, f"the server ignores settings; {POOLER_HINT}")


def _set_tcp_timeout(connection: PostgresConnection) -> None:
    """Detect a dead peer quickly."""
    transport = getattr(connection, "_transport", None)
    peer = None if transport is None else transport.get_extra_info("socket")
    if peer is not None and peer.family in (socket.AF_INET, socket.AF_INET6):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(RETRY_SECONDS * 1000))
        elif str(sys.platform) == "darwin":
            peer.setsockopt(socket.IPPROTO_TCP, _TCP_RXT_CONNDROPTIME, int(RETRY_SECONDS))


#: The server closes the connection with these errors, or is gone.
_CONNECTION_ENDED: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    # The server sent an unexpected message: that it closes the connection.
    asyncpg.InternalClientError,
)

#: A retry would fail again.
_PERMANENT_FAILURES: Final = (
    asyncpg.ConnectionRejectionError,
    asyncpg.ProtocolViolationError,
)

#: The operation can be retried immediately.
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

#: All errors of the driver and the server.
DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

#: All errors of the server.
DatabaseError: Final = asyncpg.PostgresError

#: What `apply_changes` raises if a row has another version.
VERSION_ERROR: Final = "DBAG1"

#: A violation of a unique, foreign-key or check constraint.
ConstraintError: Final = asyncpg.IntegrityConstraintViolationError


def translate_error(error: Exception, connection: PostgresConnection, where: str) -> Exception:
    """Translate a driver error into a storage error or `ConnectionLost`. Returns other errors unchanged."""
    if not isinstance(error, DRIVER_ERRORS):
        return error
    broken = connection.is_closed() and isinstance(error, asyncpg.InterfaceError | OSError)
    if broken or isinstance(error, (*_CONNECTION_ENDED, *_RETRYABLE)):
        # The driver may still regard the connection as open.
        connection.terminate()
        return ConnectionLost(_first_line(error))
    return to_storage_error(error, where)


def to_storage_error(error: Exception, where: str) -> StorageError:
    """Return the storage error for a driver error."""
    for kind, error_class in _ERROR_CLASSES:
        if isinstance(error, kind):
            return (
                error_class(where, _first_line(error))
                if issubclass(error_class, StorageFailed)
                else error_class(where)
            )
    return StorageFailed(where, _first_line(error))


def _first_line(error: Exception) -> str:
    """Return the first line of a message. The others are hints about the SQL."""
    return (str(error) or type(error).__name__).partition("\n")[0]
