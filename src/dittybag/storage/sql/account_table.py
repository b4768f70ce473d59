"""Users, tokens, project members and account events."""

from __future__ import annotations

from typing import Final

from dittybag.domain.accounts import AccountEvent, Member, Role, Token, User
from dittybag.storage.sql.row_mapping import row_reader
from dittybag.storage.sql.sql_driver import SqlDriver, is_number

_USER: Final = "name, created_at, disabled_at"
_TOKEN: Final = "id, user_name, scope, label, hint, created_at, expires_at, revoked_at, used_at"  # noqa: S105  # columns
_EVENT: Final = "at, actor, action, user_name, detail"

_read_user: Final = row_reader(User)
_read_token: Final = row_reader(Token)
_read_event: Final = row_reader(AccountEvent)


class AccountTable:
    """Users, tokens and members of projects.

    They are not in the change log because they must not be undone. The caller validates writes and records
    them as account events.
    """

    def __init__(self, driver: SqlDriver) -> None:
        self._driver = driver

    async def user(self, name: str) -> User | None:
        """Find a user by name, ignoring case: no two names differ only in case."""
        row = await self._driver.row(f"SELECT {_USER} FROM users WHERE lower(name) = lower($1)", name)
        return None if row is None else _read_user(row)

    async def users(self) -> list[User]:
        """Return all users by name."""
        return [
            _read_user(row) for row in await self._driver.rows(f"SELECT {_USER} FROM users ORDER BY name")
        ]

    async def token(self, id: int) -> Token | None:
        return await self._token("id", id) if is_number(id) else None

    async def token_by_hash(self, hash: str) -> Token | None:
        return await self._token("sha256", hash)

    async def _token(self, column: str, value: int | str) -> Token | None:
        row = await self._driver.row(f"SELECT {_TOKEN} FROM tokens WHERE {column} = $1", value)
        return None if row is None else _read_token(row)

    async def tokens(self, user: str | None = None) -> list[Token]:
        """Return all tokens, or those of a user, in creation order."""
        narrowed, values = ("", ()) if user is None else ("WHERE user_name = $1", (user,))
        rows = await self._driver.rows(f"SELECT {_TOKEN} FROM tokens {narrowed} ORDER BY id", *values)
        return [_read_token(row) for row in rows]

    async def token_hashes(self) -> dict[int, str]:
        """Return the hash of each token, by token id."""
        return {row[0]: row[1] for row in await self._driver.rows("SELECT id, sha256 FROM tokens")}

    async def members(self, project: int) -> list[Member]:
        """Return the members of a project by name."""
        sql = "SELECT user_name, role FROM members WHERE project = $1 ORDER BY user_name"
        return [Member(*row) for row in await self._driver.rows(sql, project)]

    async def projects_hidden_from(self, user: str) -> set[int]:
        """Return the projects, deleted ones included, that have members but not this user."""
        return await self._restricted_except("user_name = $1", user)

    async def projects_locked_for(self, user: str) -> set[int]:
        """Return the projects that a user may not change, whether or not they are hidden."""
        return await self._restricted_except("user_name = $1 AND role = 'write'", user)

    async def _restricted_except(self, condition: str, user: str) -> set[int]:
        """Return the projects with members, except those with a member that matches a condition."""
        sql = f"SELECT project FROM restricted_projects EXCEPT SELECT project FROM members WHERE {condition}"
        return {row[0] for row in await self._driver.rows(sql, user)}

    async def events(self, limit: int) -> list[AccountEvent]:
        """Return account events, newest first."""
        sql = f"SELECT {_EVENT} FROM account_events ORDER BY number DESC LIMIT $1"
        return [_read_event(row) for row in await self._driver.rows(sql, limit)]

    async def put_user(self, user: User) -> None:
        """Add a user, or update the user with this name."""
        await self._driver.run(
            f"INSERT INTO users ({_USER}) VALUES ($1, $2, $3)"
            " ON CONFLICT (name) DO UPDATE SET disabled_at = excluded.disabled_at",
            user.name,
            user.created_at,
            user.disabled_at,
        )

    async def add_token(self, token: Token, hash: str) -> Token:
        """Store a new token and return it with its id."""
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
        stored = await self.token(await self._driver.insert("tokens", "id", values))
        assert stored is not None
        return stored

    async def put_token(self, token: Token) -> None:
        """Update when a token was revoked and last used."""
        sql = "UPDATE tokens SET revoked_at = $1, used_at = $2 WHERE id = $3"
        await self._driver.run(sql, token.revoked_at, token.used_at, token.id)

    async def put_member(self, project: int, user: str, role: Role | None) -> None:
        """Set the role of a member; `None` removes the member."""
        if role is None:
            sql = "DELETE FROM members WHERE project = $1 AND user_name = $2"
            await self._driver.run(sql, project, user)
            return
        await self._driver.run(
            "INSERT INTO members (project, user_name, role) VALUES ($1, $2, $3)"
            " ON CONFLICT (project, user_name) DO UPDATE SET role = excluded.role",
            project,
            user,
            role,
        )

    async def add_event(self, event: AccountEvent) -> None:
        await self._driver.run(
            f"INSERT INTO account_events ({_EVENT}) VALUES ($1, $2, $3, $4, $5)",
            event.at,
            event.actor,
            event.action,
            event.user,
            event.detail,
        )
