"""Use cases for accounts: users, tokens and members of projects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import urandom
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.accounts import (
    HINT_LENGTH,
    SECRET_BYTES,
    AccountEvent,
    Member,
    Principal,
    Role,
    Scope,
    Token,
    User,
    checked_label,
    checked_name,
    is_token,
    role_of,
    token_hash,
    token_text,
)
from dittybag.domain.errors import (
    Invalid,
    LastMember,
    MemberNotFound,
    NameTaken,
    Problem,
    ProjectNotFound,
    TokenNotFound,
    UserDisabled,
    UserNotFound,
)
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.tasks import DEFAULT_USER

#: Minimum time between two updates of when a token was last used, in microseconds.
_USE_INTERVAL: Final = 600 * 1_000_000


class NewToken(Struct, frozen=True):
    """A new token and its text, which is shown only once."""

    token: Token
    text: str


class VerifiedToken(Struct, frozen=True):
    """A valid token and its principal."""

    principal: Principal
    token: Token
    #: Whether `record_use` is due.
    is_use_due: bool


class AccountService:
    """Manages the users, tokens and members of a workspace.

    Every write is recorded as an account event. It cannot be undone.
    """

    def __init__(self, store: Store, random: Callable[[int], bytes] = urandom) -> None:
        self._store = store
        self._random = random

    # Users

    async def add_user(self, name: str, *, actor: str) -> User:
        checked_name(name)

        async def work(transaction: Transaction) -> User:
            if (taken := await transaction.accounts.user(name)) is not None:
                raise NameTaken("user", taken.name)
            user = User(name=name, created_at=transaction.now)
            await transaction.accounts.put_user(user)
            await _add_event(transaction, actor, "user.add", name)
            return user

        return await self._store.write(work, actor=actor)

    async def users(self) -> list[User]:
        async def work(transaction: Transaction) -> list[User]:
            return await transaction.accounts.users()

        return await self._store.read(work)

    async def disable(self, name: str, *, actor: str) -> tuple[User, list[Token]]:
        """Disable a user and revoke their tokens. Returns the user and the revoked tokens."""

        async def work(transaction: Transaction) -> tuple[User, list[Token]]:
            user = await _user(transaction, name)
            valid = [token for token in await transaction.accounts.tokens(user.name) if not token.revoked_at]
            for token in valid:
                await _revoke(transaction, token, actor)
            if user.disabled_at is None:
                user = replace(user, disabled_at=transaction.now)
                await transaction.accounts.put_user(user)
                await _add_event(transaction, actor, "user.disable", user.name)
            return user, valid

        return await self._store.write(work, actor=actor)

    async def enable(self, name: str, *, actor: str) -> User:
        """Enable a user. Revoked tokens stay revoked."""

        async def work(transaction: Transaction) -> User:
            user = await _user(transaction, name)
            if user.disabled_at is not None:
                user = replace(user, disabled_at=None)
                await transaction.accounts.put_user(user)
                await _add_event(transaction, actor, "user.enable", user.name)
            return user

        return await self._store.write(work, actor=actor)

    # Tokens

    async def create_token(
        self, name: str, scope: Scope, *, actor: str, label: str = "", expires_at: int | None = None
    ) -> NewToken:
        """Create a token for a user. `expires_at`: microseconds since 1970."""
        checked_label(label)
        text = token_text(self._random(SECRET_BYTES))

        async def work(transaction: Transaction) -> Token:
            user = await _user(transaction, name)
            if user.disabled_at is not None:
                raise UserDisabled(user.name)
            if expires_at is not None and expires_at <= transaction.now:
                raise Invalid([Problem("expires_at", "expires_at must be in the future")])
            token = Token(
                id=0,
                user=user.name,
                scope=scope,
                label=label,
                hint=text[-HINT_LENGTH:],
                created_at=transaction.now,
                expires_at=expires_at,
            )
            token = await transaction.accounts.add_token(token, token_hash(text))
            await _add_event(transaction, actor, "token.create", user.name, f"{token.id} {scope}")
            return token

        return NewToken(await self._store.write(work, actor=actor), text)

    async def tokens(self, name: str | None = None) -> tuple[list[Token], list[User]]:
        """Return all tokens, or those of a user, and all users, some of whom may be disabled."""

        async def work(transaction: Transaction) -> tuple[list[Token], list[User]]:
            user = None if name is None else (await _user(transaction, name)).name
            return await transaction.accounts.tokens(user), await transaction.accounts.users()

        return await self._store.read(work)

    async def revoke(self, ids: Sequence[int], *, actor: str) -> list[Token]:
        """Revoke tokens: all of them or, if one does not exist, none."""

        async def work(transaction: Transaction) -> list[Token]:
            revoked = []
            for token_id in dict.fromkeys(ids):
                token = await transaction.accounts.token(token_id)
                if token is None:
                    raise TokenNotFound(token_id)
                revoked.append(await _revoke(transaction, token, actor))
            return revoked

        return await self._store.write(work, actor=actor)

    async def verify_token(self, text: str, project: int) -> VerifiedToken | None:
        """Return the token and its principal for a project, or `None` if the token is not valid."""
        return await self.verify_token_hash(token_hash(text), project) if is_token(text) else None

    async def verify_token_hash(self, hashed: str, project: int) -> VerifiedToken | None:
        """Like `verify_token`, but by the stored hash."""

        async def work(transaction: Transaction) -> VerifiedToken | None:
            token = await transaction.accounts.token_by_hash(hashed)
            if token is None or not token.is_valid(transaction.now):
                return None
            user = await transaction.accounts.user(token.user)
            if user is None or user.disabled_at is not None:
                return None
            role = role_of(user.name, await transaction.accounts.members(project))
            is_use_due = token.used_at is None or transaction.now - token.used_at > _USE_INTERVAL
            return VerifiedToken(Principal(user.name, token.scope, role), token, is_use_due)

        return await self._store.read(work)

    async def authenticate(self, text: str, project: int) -> Principal | None:
        """Like `verify_token`, but return only the principal."""
        found = await self.verify_token(text, project)
        return None if found is None else found.principal

    async def record_use(self, id: int) -> None:
        """Record that a token was used now."""

        async def work(transaction: Transaction) -> None:
            token = await transaction.accounts.token(id)
            if token is not None:
                await transaction.accounts.put_token(replace(token, used_at=transaction.now))

        await self._store.write(work, actor="")

    async def external_principal(self, name: str, scope: Scope, project: int) -> Principal | None:
        """Return the principal of a user whom an external issuer authenticated, or `None` if disabled.

        An external issuer cannot authenticate the default user of servers without authentication, unless an
        account with that name exists.
        """

        async def work(transaction: Transaction) -> Principal | None:
            user = await transaction.accounts.user(name)
            if user is None:
                is_reserved = name.lower() == DEFAULT_USER
            else:
                # A name in another case would own other tasks.
                is_reserved = user.disabled_at is not None or user.name != name
            if is_reserved:
                return None
            return Principal(name, scope, role_of(name, await transaction.accounts.members(project)))

        return await self._store.read(work)

    # Members of projects

    async def share(self, project: str, name: str, role: Role, *, actor: str) -> list[Member]:
        """Add a member to a project, or change their role. Returns all members."""

        async def work(transaction: Transaction) -> list[Member]:
            found, user = await _project(transaction, project), await _user(transaction, name)
            await transaction.accounts.put_member(found.id, user.name, role)
            await _add_event(transaction, actor, "project.share", user.name, f"{found.id} {role}")
            return await transaction.accounts.members(found.id)

        return await self._store.write(work, actor=actor)

    async def unshare(self, project: str, name: str, *, actor: str, to_all: bool = False) -> list[Member]:
        """Remove a user from a project. Returns the remaining members.

        Raises `LastMember` if no member would remain, because then everyone could see the project, unless
        `to_all` allows it.
        """

        async def work(transaction: Transaction) -> list[Member]:
            found, user = await _project(transaction, project), await _user(transaction, name)
            members = await transaction.accounts.members(found.id)
            left = [member for member in members if member.user != user.name]
            if left == members:
                raise MemberNotFound(user.name, found.name)
            if not left and not to_all:
                raise LastMember(user.name, found.name)
            await transaction.accounts.put_member(found.id, user.name, None)
            await _add_event(transaction, actor, "project.unshare", user.name, f"{found.id}")
            return left

        return await self._store.write(work, actor=actor)

    async def members(self, project: str) -> list[Member]:
        async def work(transaction: Transaction) -> list[Member]:
            return await transaction.accounts.members((await _project(transaction, project)).id)

        return await self._store.read(work)

    async def events(self, limit: int) -> list[AccountEvent]:
        """Return account events, newest first."""

        async def work(transaction: Transaction) -> list[AccountEvent]:
            return await transaction.accounts.events(limit)

        return await self._store.read(work)


async def _revoke(transaction: Transaction, token: Token, actor: str) -> Token:
    if token.revoked_at is not None:
        return token
    token = replace(token, revoked_at=transaction.now)
    await transaction.accounts.put_token(token)
    await _add_event(transaction, actor, "token.revoke", token.user, f"{token.id}")
    return token


async def _add_event(transaction: Transaction, actor: str, action: str, user: str, detail: str = "") -> None:
    event = AccountEvent(at=transaction.now, actor=actor, action=action, user=user, detail=detail)
    await transaction.accounts.add_event(event)


async def _user(transaction: Transaction, name: str) -> User:
    user = await transaction.accounts.user(name)
    if user is None:
        raise UserNotFound(name)
    return user


async def _project(transaction: Transaction, name: str) -> Project:
    project = await transaction.projects.by_name(name)
    if project is None:
        raise ProjectNotFound(name)
    return project
