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
    TokenNotFound,
    UserDisabled,
    UserNotFound,
)
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.tasks import DEFAULT_USER
from dittybag.services.caller import ScopedStore, owner_reading, owner_writing
from dittybag.services.project_service import find_project

#: Minimum time between two updates of when a token was last used, in microseconds.
_USE_INTERVAL: Final = 3600 * 1_000_000


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


# Users


async def add_user(transaction: Transaction, name: str, *, actor: str) -> User:
    checked_name(name)
    if (taken := await transaction.accounts.user(name)) is not None:
        raise NameTaken("user", taken.name)
    user = User(name=name, created_at=transaction.now)
    await transaction.accounts.put_user(user)
    await _add_event(transaction, actor, "user.add", name)
    return user


async def list_users(transaction: Transaction) -> list[User]:
    return await transaction.accounts.users()


async def disable_user(transaction: Transaction, name: str, *, actor: str) -> tuple[User, list[Token]]:
    """Disable a user and revoke their tokens. Returns the user and the revoked tokens."""
    user = await _user(transaction, name)
    valid = [token for token in await transaction.accounts.tokens(user.name) if not token.revoked_at]
    for token in valid:
        await _revoke(transaction, token, actor)
    return await _set_disabled(transaction, user, transaction.now, actor), valid


async def enable_user(transaction: Transaction, name: str, *, actor: str) -> User:
    """Enable a user. Revoked tokens stay revoked."""
    return await _set_disabled(transaction, await _user(transaction, name), None, actor)


# Tokens


async def create_token(
    transaction: Transaction,
    text: str,
    name: str,
    scope: Scope,
    *,
    actor: str,
    label: str = "",
    expires_at: int | None = None,
) -> NewToken:
    checked_label(label)
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
    return NewToken(token, text)


async def list_tokens(transaction: Transaction, name: str | None = None) -> tuple[list[Token], list[User]]:
    """Return all tokens, or those of a user, and all users, some of whom may be disabled."""
    user = None if name is None else (await _user(transaction, name)).name
    return await transaction.accounts.tokens(user), await transaction.accounts.users()


async def revoke_tokens(transaction: Transaction, ids: Sequence[int], *, actor: str) -> list[Token]:
    """Revoke tokens: all of them or, if one does not exist, none."""
    found = []
    for token_id in dict.fromkeys(ids):
        token = await transaction.accounts.token(token_id)
        if token is None:
            raise TokenNotFound(token_id)
        found.append(token)
    return [await _revoke(transaction, token, actor) for token in found]


async def verify_token_hash(transaction: Transaction, hashed: str, project: int) -> VerifiedToken | None:
    """Return the token with a hash and its principal for a project, or `None` if the token is not valid."""
    token = await transaction.accounts.token_by_hash(hashed)
    if token is None or not token.is_valid(transaction.now):
        return None
    user = await transaction.accounts.user(token.user)
    if user is None or user.disabled_at is not None:
        return None
    role = role_of(user.name, await transaction.accounts.members(project))
    is_use_due = token.used_at is None or transaction.now - token.used_at > _USE_INTERVAL
    return VerifiedToken(Principal(user.name, token.scope, role), token, is_use_due)


async def record_use(transaction: Transaction, id: int, *, actor: str = "") -> None:
    """Record that a token was used now."""
    token = await transaction.accounts.token(id)
    if token is not None:
        await transaction.accounts.put_token(replace(token, used_at=transaction.now))


async def external_principal(
    transaction: Transaction, name: str, scope: Scope, project: int
) -> Principal | None:
    """Return the principal of a user whom an external issuer authenticated, or `None` if disabled.

    An external issuer cannot authenticate the default user of servers without authentication, unless an
    account with that name exists.
    """
    user = await transaction.accounts.user(name)
    if user is None:
        is_reserved = name.lower() == DEFAULT_USER
    else:
        # A name in another case would own other tasks.
        is_reserved = user.disabled_at is not None or user.name != name
    if is_reserved:
        return None
    return Principal(name, scope, role_of(name, await transaction.accounts.members(project)))


# Members of projects


async def share_project(
    transaction: Transaction, project: str, name: str, role: Role, *, actor: str
) -> list[Member]:
    """Add a member to a project, or change their role. Returns all members."""
    found, user = await find_project(transaction, project), await _user(transaction, name)
    members = {member.user: member for member in await transaction.accounts.members(found.id)}
    await transaction.accounts.put_member(found.id, user.name, role)
    await _add_event(transaction, actor, "project.share", user.name, f"{found.id} {role}")
    members[user.name] = Member(user.name, role)
    return [members[name] for name in sorted(members)]


async def unshare_project(
    transaction: Transaction, project: str, name: str, *, actor: str, to_all: bool = False
) -> list[Member]:
    """Remove a user from a project. Returns the remaining members.

    Raises `LastMember` if no member would remain, because then everyone could see the project, unless
    `to_all` allows it.
    """
    found, user = await find_project(transaction, project), await _user(transaction, name)
    members = await transaction.accounts.members(found.id)
    left = [member for member in members if member.user != user.name]
    if left == members:
        raise MemberNotFound(user.name, found.name)
    if not left and not to_all:
        raise LastMember(user.name, found.name)
    await transaction.accounts.put_member(found.id, user.name, None)
    await _add_event(transaction, actor, "project.unshare", user.name, f"{found.id}")
    return left


async def list_members(transaction: Transaction, project: str) -> list[Member]:
    return await transaction.accounts.members((await find_project(transaction, project)).id)


async def find_role(transaction: Transaction, user: str, project: int) -> Role | None:
    """Return the role of a user in a project; `None` if it is hidden from them."""
    return role_of(user, await transaction.accounts.members(project))


async def list_events(transaction: Transaction, limit: int) -> list[AccountEvent]:
    """Return account events, newest first."""
    return await transaction.accounts.events(limit)


class AccountService:
    """Manages the users, tokens and members of a workspace.

    Every write is recorded as an account event. It cannot be undone.
    """

    def __init__(self, store: Store, random: Callable[[int], bytes] = urandom) -> None:
        self._store = ScopedStore(store)
        self._random = random

    add_user = owner_writing(add_user)
    users = owner_reading(list_users)
    disable = owner_writing(disable_user)
    enable = owner_writing(enable_user)
    tokens = owner_reading(list_tokens)
    revoke = owner_writing(revoke_tokens)
    verify_token_hash = owner_reading(verify_token_hash)
    external_principal = owner_reading(external_principal)
    share = owner_writing(share_project)
    unshare = owner_writing(unshare_project)
    members = owner_reading(list_members)
    role = owner_reading(find_role)
    events = owner_reading(list_events)
    _create_token = owner_writing(create_token)
    _record_use = owner_writing(record_use)

    async def create_token(
        self, name: str, scope: Scope, *, actor: str, label: str = "", expires_at: int | None = None
    ) -> NewToken:
        """Create a token for a user. `expires_at`: microseconds since 1970."""
        text = token_text(self._random(SECRET_BYTES))
        return await self._create_token(text, name, scope, actor=actor, label=label, expires_at=expires_at)

    async def verify_token(self, text: str, project: int) -> VerifiedToken | None:
        """Like `verify_token_hash`, but by the text of the token."""
        return await self.verify_token_hash(token_hash(text), project) if is_token(text) else None

    async def record_use(self, id: int) -> None:
        """Record that a token was used now."""
        await self._record_use(id, actor="")


async def _revoke(transaction: Transaction, token: Token, actor: str) -> Token:
    if token.revoked_at is not None:
        return token
    token = replace(token, revoked_at=transaction.now)
    await transaction.accounts.put_token(token)
    await _add_event(transaction, actor, "token.revoke", token.user, f"{token.id}")
    return token


async def _set_disabled(transaction: Transaction, user: User, at: int | None, actor: str) -> User:
    if (user.disabled_at is None) == (at is None):
        return user
    user = replace(user, disabled_at=at)
    await transaction.accounts.put_user(user)
    await _add_event(transaction, actor, "user.enable" if at is None else "user.disable", user.name)
    return user


async def _add_event(transaction: Transaction, actor: str, action: str, user: str, detail: str = "") -> None:
    event = AccountEvent(at=transaction.now, actor=actor, action=action, user=user, detail=detail)
    await transaction.accounts.add_event(event)


async def _user(transaction: Transaction, name: str) -> User:
    user = await transaction.accounts.user(name)
    if user is None:
        raise UserNotFound(name)
    return user
