"""Users, tokens, project members and account events in SQLite."""

from __future__ import annotations

from typing import Final, Protocol

import apsw

from dittybag.domain.accounts import AccountEvent, Member, Role, Token, User
from dittybag.storage.row_mapping import token_from_row, user_from_row
from dittybag.storage.sqlite.rows import all_rows, first_row

_USER: Final = "name, created_at, disabled_at"
_TOKEN: Final = "id, user_name, scope, label, hint, created_at, expires_at, revoked_at, used_at"  # noqa: S105  # columns


class TracksWrites(Protocol):
    """A transaction that records whether it has written anything."""

    wrote: bool


class AccountTables:
    """See `dittybag.domain.ports.AccountRepository`."""

    def __init__(self, connection: apsw.Connection, transaction: TracksWrites) -> None:
        self._connection = connection
        self._transaction = transaction

    async def user(self, name: str) -> User | None:
        sql = f"SELECT {_USER} FROM users WHERE lower(name) = lower(?)"
        row = first_row(self._connection, sql, (name,))
        return None if row is None else user_from_row(row)

    async def users(self) -> list[User]:
        return [
            user_from_row(row)
            for row in all_rows(self._connection, f"SELECT {_USER} FROM users ORDER BY name")
        ]

    async def token(self, id: int) -> Token | None:
        if not 0 < id < 1 << 63:
            return None
        row = first_row(self._connection, f"SELECT {_TOKEN} FROM tokens WHERE id = ?", (id,))
        return None if row is None else token_from_row(row)

    async def token_by_hash(self, hash: str) -> Token | None:
        row = first_row(self._connection, f"SELECT {_TOKEN} FROM tokens WHERE sha256 = ?", (hash,))
        return None if row is None else token_from_row(row)

    async def tokens(self, user: str | None = None) -> list[Token]:
        narrowed = "" if user is None else "WHERE user_name = :user"
        sql = f"SELECT {_TOKEN} FROM tokens {narrowed} ORDER BY id"
        return [token_from_row(row) for row in all_rows(self._connection, sql, {"user": user})]

    async def token_hashes(self) -> dict[int, str]:
        rows = all_rows(self._connection, "SELECT id, sha256 FROM tokens")
        return {row[0]: row[1] for row in rows}

    async def members(self, project: int) -> list[Member]:
        sql = "SELECT user_name, role FROM members WHERE project = ? ORDER BY user_name"
        return [Member(*row) for row in all_rows(self._connection, sql, (project,))]

    async def projects_hidden_from(self, user: str) -> set[int]:
        sql = "SELECT project FROM members EXCEPT SELECT project FROM members WHERE user_name = ?"
        return {row[0] for row in all_rows(self._connection, sql, (user,))}

    async def events(self, limit: int) -> list[AccountEvent]:
        rows = all_rows(
            self._connection,
            "SELECT at, actor, action, user_name, detail FROM account_events ORDER BY number DESC LIMIT ?",
            (limit,),
        )
        return [
            AccountEvent(at=row[0], actor=row[1], action=row[2], user=row[3], detail=row[4]) for row in rows
        ]

    def _write(self, sql: str, *values: object) -> None:
        self._transaction.wrote = True
        self._connection.execute(sql, values)

    async def put_user(self, user: User) -> None:
        self._write(
            f"INSERT INTO users ({_USER}) VALUES (?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET disabled_at = excluded.disabled_at",
            user.name,
            user.created_at,
            user.disabled_at,
        )

    async def add_token(self, token: Token, hash: str) -> Token:
        self._write(
            "INSERT INTO tokens (sha256, user_name, scope, label, hint, created_at, expires_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            hash,
            token.user,
            token.scope,
            token.label,
            token.hint,
            token.created_at,
            token.expires_at,
        )
        stored = await self.token(self._connection.last_insert_rowid())
        assert stored is not None
        return stored

    async def put_token(self, token: Token) -> None:
        self._write(
            "UPDATE tokens SET revoked_at = ?, used_at = ? WHERE id = ?",
            token.revoked_at,
            token.used_at,
            token.id,
        )

    async def put_member(self, project: int, user: str, role: Role | None) -> None:
        if role is None:
            self._write("DELETE FROM members WHERE project = ? AND user_name = ?", project, user)
        else:
            self._write(
                "INSERT INTO members (project, user_name, role) VALUES (?, ?, ?)"
                " ON CONFLICT (project, user_name) DO UPDATE SET role = excluded.role",
                project,
                user,
                role,
            )

    async def add_event(self, event: AccountEvent) -> None:
        self._write(
            "INSERT INTO account_events (at, actor, action, user_name, detail) VALUES (?, ?, ?, ?, ?)",
            event.at,
            event.actor,
            event.action,
            event.user,
            event.detail,
        )
