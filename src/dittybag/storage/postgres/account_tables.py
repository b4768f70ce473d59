"""Users, tokens, project members and account events in PostgreSQL."""

from __future__ import annotations

from typing import Final, Protocol

from dittybag.domain.accounts import AccountEvent, Member, Role, Token, User
from dittybag.storage.postgres import row_writes
from dittybag.storage.postgres.connections import PostgresConnection
from dittybag.storage.postgres.rows import all_rows, first_row
from dittybag.storage.row_mapping import token_from_row, user_from_row

_TOKENS: Final = row_writes.KeyedTable("tokens", "id")

_USER: Final = "name, created_at, disabled_at"
_TOKEN: Final = "id, user_name, scope, label, hint, created_at, expires_at, revoked_at, used_at"  # noqa: S105  # columns


class TracksWrites(Protocol):
    """A transaction that records whether it has written anything."""

    wrote: bool


class AccountTables:
    """See `dittybag.domain.ports.AccountRepository`."""

    def __init__(self, connection: PostgresConnection, transaction: TracksWrites) -> None:
        self._connection = connection
        self._transaction = transaction

    async def user(self, name: str) -> User | None:
        sql = f"SELECT {_USER} FROM users WHERE lower(name) = lower($1)"
        row = await first_row(self._connection, sql, name)
        return None if row is None else user_from_row(row)

    async def users(self) -> list[User]:
        rows = await all_rows(self._connection, f"SELECT {_USER} FROM users ORDER BY name")
        return [user_from_row(row) for row in rows]

    async def token(self, id: int) -> Token | None:
        if not 0 < id < 1 << 63:
            return None
        row = await first_row(self._connection, f"SELECT {_TOKEN} FROM tokens WHERE id = $1", id)
        return None if row is None else token_from_row(row)

    async def token_by_hash(self, hash: str) -> Token | None:
        row = await first_row(self._connection, f"SELECT {_TOKEN} FROM tokens WHERE sha256 = $1", hash)
        return None if row is None else token_from_row(row)

    async def tokens(self, user: str | None = None) -> list[Token]:
        narrowed, values = ("", ()) if user is None else ("WHERE user_name = $1", (user,))
        sql = f"SELECT {_TOKEN} FROM tokens {narrowed} ORDER BY id"
        return [token_from_row(row) for row in await all_rows(self._connection, sql, *values)]

    async def token_hashes(self) -> dict[int, str]:
        rows = await all_rows(self._connection, "SELECT id, sha256 FROM tokens")
        return {row[0]: row[1] for row in rows}

    async def members(self, project: int) -> list[Member]:
        sql = "SELECT user_name, role FROM members WHERE project = $1 ORDER BY user_name"
        return [Member(*row) for row in await all_rows(self._connection, sql, project)]

    async def projects_hidden_from(self, user: str) -> set[int]:
        sql = "SELECT project FROM members EXCEPT SELECT project FROM members WHERE user_name = $1"
        return {row[0] for row in await all_rows(self._connection, sql, user)}

    async def events(self, limit: int) -> list[AccountEvent]:
        rows = await all_rows(
            self._connection,
            "SELECT at, actor, action, user_name, detail FROM account_events ORDER BY number DESC LIMIT $1",
            limit,
        )
        return [
            AccountEvent(at=row[0], actor=row[1], action=row[2], user=row[3], detail=row[4]) for row in rows
        ]

    async def _write(self, sql: str, *values: object) -> None:
        self._transaction.wrote = True
        await self._connection.execute(sql, *values)

    async def put_user(self, user: User) -> None:
        await self._write(
            f"INSERT INTO users ({_USER}) VALUES ($1, $2, $3)"
            " ON CONFLICT (name) DO UPDATE SET disabled_at = excluded.disabled_at",
            user.name,
            user.created_at,
            user.disabled_at,
        )

    async def add_token(self, token: Token, hash: str) -> Token:
        self._transaction.wrote = True
        values = {
            "id": 0,
            "sha256": hash,
            "user_name": token.user,
            "scope": token.scope,
            "label": token.label,
            "hint": token.hint,
            "created_at": token.created_at,
            "expires_at": token.expires_at,
        }
        stored = await self.token(await row_writes.insert(self._connection, _TOKENS, values))
        assert stored is not None
        return stored

    async def put_token(self, token: Token) -> None:
        await self._write(
            "UPDATE tokens SET revoked_at = $1, used_at = $2 WHERE id = $3",
            token.revoked_at,
            token.used_at,
            token.id,
        )

    async def put_member(self, project: int, user: str, role: Role | None) -> None:
        if role is None:
            await self._write("DELETE FROM members WHERE project = $1 AND user_name = $2", project, user)
        else:
            await self._write(
                "INSERT INTO members (project, user_name, role) VALUES ($1, $2, $3)"
                " ON CONFLICT (project, user_name) DO UPDATE SET role = excluded.role",
                project,
                user,
                role,
            )

    async def add_event(self, event: AccountEvent) -> None:
        await self._write(
            "INSERT INTO account_events (at, actor, action, user_name, detail) VALUES ($1, $2, $3, $4, $5)",
            event.at,
            event.actor,
            event.action,
            event.user,
            event.detail,
        )
