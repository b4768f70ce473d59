"""Accounts: users, their access tokens, and the members of projects."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from binascii import crc32
from collections.abc import Iterable
from typing import Final, Literal, get_args

from msgspec import Struct

from dittybag.domain.errors import checked
from dittybag.domain.text import line_problem

#: The permissions of a token; each scope includes the ones before it.
Scope = Literal["read", "write", "admin"]
#: The permissions of a member in a project.
Role = Literal["read", "write"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)

NAME_LENGTH: Final = 100
LABEL_LENGTH: Final = 100
#: Lists show this many of a token's last characters to tell tokens apart.
HINT_LENGTH: Final = 4
#: Lets secret scanners recognise tokens.
PREFIX: Final = "dittybag_"
#: Enough random bytes that a token cannot be guessed.
SECRET_BYTES: Final = 32

_NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9._@-]*"
#: 32 bytes in unpadded Base64, then a checksum.
_TOKEN: Final = rf"{PREFIX}([A-Za-z0-9_-]{{43}})([A-Za-z0-9_-]{{6}})"


class User(Struct, frozen=True, kw_only=True):
    """An account with tasks and tokens. The name is the key: it never changes and is never reused."""

    name: str
    created_at: int
    disabled_at: int | None = None


class Token(Struct, frozen=True, kw_only=True):
    """An access token of a user. Its text is not stored, only a hash."""

    #: Increasing; 0 until the token is stored.
    id: int
    user: str
    scope: Scope
    label: str
    #: The last characters of the token's text.
    hint: str
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
    #: When it was last used, accurate to ten minutes.
    used_at: int | None = None

    def is_valid(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Member(Struct, frozen=True):
    """A user who can read a project, and with the role `write` also change it."""

    user: str
    role: Role


class AccountEvent(Struct, frozen=True, kw_only=True):
    """An entry in the audit log of accounts."""

    at: int
    actor: str
    #: For example `token.create`.
    action: str
    user: str
    #: Further facts as text.
    detail: str = ""


class Principal(Struct, frozen=True):
    """An authenticated user and their permissions on a server."""

    user: str
    scope: Scope
    #: The user's role in the server's project; `None` if the project is hidden from them.
    role: Role | None

    @property
    def sees_project(self) -> bool:
        return self.role is not None

    @property
    def changes_own(self) -> bool:
        """Whether the user can change their own data, that is, tasks."""
        return self.scope != "read"

    @property
    def changes_project(self) -> bool:
        return self.role == "write" and self.scope != "read"

    def has(self, scope: Scope) -> bool:
        """Return whether the token has this scope or a wider one."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


def role_of(user: str, members: Iterable[Member]) -> Role | None:
    """Return the role of a user in a project with these members. Without members, everyone can write."""
    roles = {member.user: member.role for member in members}
    return roles.get(user) if roles else "write"


def checked_name(name: str) -> str:
    """Return `name`. Raises `Invalid` if it is not a valid user name."""
    problem = None
    if not 1 <= len(name) <= NAME_LENGTH:
        problem = f"User name must be 1-{NAME_LENGTH} characters"
    elif not re.fullmatch(_NAME, name):
        problem = (
            "User name must contain only a-z, A-Z, 0-9, _, ., @ and -, and start with a letter, a digit or _"
        )
    return checked("name", name, problem)


def checked_label(label: str) -> str:
    """Return `label`. Raises `Invalid` if it is not a valid token label."""
    problem = line_problem("Label", label)
    if len(label) > LABEL_LENGTH:
        problem = f"Label must be at most {LABEL_LENGTH} characters"
    return checked("label", label, problem)


def token_text(secret: bytes) -> str:
    """Return the text of the token for a secret."""
    body = _base64(secret)
    return f"{PREFIX}{body}{_checksum(body)}"


def is_token(text: str) -> bool:
    """Return whether a text is a well-formed token. The checksum catches typos without a lookup."""
    found = re.fullmatch(_TOKEN, text)
    return found is not None and _checksum(found[1]) == found[2]


def token_hash(text: str) -> str:
    """Return the hash under which a token is stored.

    One round of SHA-256 is enough: slow hashes protect passwords, which can be guessed. A token has 256
    random bits.
    """
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()


def _checksum(body: str) -> str:
    return _base64(crc32(body.encode()).to_bytes(4))


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
