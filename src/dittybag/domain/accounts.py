"""Accounts: users, the tokens by which they are known, and who may see and change a project."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from binascii import crc32
from collections.abc import Iterable
from typing import Final, Literal, get_args

from msgspec import Struct

from dittybag.domain.errors import Problem, require
from dittybag.domain.text import line_problem

#: What a token may be used for; each includes the ones before it.
Scope = Literal["read", "write", "admin"]
#: What a member may do in a project.
Role = Literal["read", "write"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)

NAME_LENGTH: Final = 100
LABEL_LENGTH: Final = 100
#: As many characters of a token as lists show, to tell it from others.
HINT_LENGTH: Final = 4
#: So that whoever scans files for secrets finds it.
PREFIX: Final = "dittybag_"
#: Nobody guesses so many random bytes.
SECRET_BYTES: Final = 32

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]*")
#: 32 bytes in Base64 without padding, and a checksum.
_TOKEN: Final = re.compile(rf"{PREFIX}([A-Za-z0-9_-]{{43}})([A-Za-z0-9_-]{{6}})")


class User(Struct, frozen=True, kw_only=True):
    """Somebody with tasks and tokens. The name is the key: it is never changed and never given again."""

    name: str
    created_at: int
    disabled_at: int | None = None


class Token(Struct, frozen=True, kw_only=True):
    """A way for somebody to be known. What it says is not kept, only its hash."""

    #: Counts up; 0 until it is stored.
    id: int
    user: str
    scope: Scope
    label: str
    #: The last characters of the token.
    hint: str
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
    #: When it was last seen in use, give or take some minutes.
    used_at: int | None = None

    def is_valid(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Member(Struct, frozen=True):
    """Somebody who may see a project, and perhaps change it."""

    user: str
    role: Role


class AccountEvent(Struct, frozen=True, kw_only=True):
    """Something that was done to accounts: an entry of an audit of their own."""

    at: int
    actor: str
    #: Like `token.create`.
    action: str
    user: str
    #: What else there is to say, as text.
    detail: str = ""


class Principal(Struct, frozen=True):
    """Somebody who is known, and what they may do on a server."""

    user: str
    scope: Scope
    #: What the user may do in the server's project; nothing if it is none of their business.
    role: Role | None

    @property
    def sees_project(self) -> bool:
        return self.role is not None

    @property
    def changes_own(self) -> bool:
        """Whether they may change what belongs to themselves: tasks."""
        return self.scope != "read"

    @property
    def changes_project(self) -> bool:
        return self.role == "write" and self.scope != "read"

    def has(self, scope: Scope) -> bool:
        """Whether the token may be used for this."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


def role_of(user: str, members: Iterable[Member]) -> Role | None:
    """What a user may do in a project with these members. One without members is everybody's."""
    roles = {member.user: member.role for member in members}
    return roles.get(user) if roles else "write"


def checked_name(name: str) -> str:
    """Raises `Invalid` unless `name` may be that of a user."""
    problem = None
    if not 1 <= len(name) <= NAME_LENGTH:
        problem = f"User name must be 1-{NAME_LENGTH} characters"
    elif not _NAME.fullmatch(name):
        problem = "User name may have a-z, A-Z, 0-9, _, ., @ and -, and begins with a letter, a digit or _"
    require([Problem("name", problem)] if problem else ())
    return name


def checked_label(label: str) -> str:
    """Raises `Invalid` unless `label` may say what a token is for."""
    problem = line_problem("Label", label)
    if len(label) > LABEL_LENGTH:
        problem = f"Label must be at most {LABEL_LENGTH} characters"
    require([Problem("label", problem)] if problem else ())
    return label


def token_text(secret: bytes) -> str:
    """A token that holds a secret."""
    body = _base64(secret)
    return f"{PREFIX}{body}{_checksum(body)}"


def is_token(text: str) -> bool:
    """Whether a text can be a token: one with a typo cannot, and need not be looked for."""
    found = _TOKEN.fullmatch(text)
    return found is not None and _checksum(found[1]) == found[2]


def token_hash(text: str) -> str:
    """What is kept of a token.

    One round of SHA-256 is enough: slow hashes are for passwords, which can be guessed. A token has 256
    random bits.
    """
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()


def _checksum(body: str) -> str:
    return _base64(crc32(body.encode()).to_bytes(4))


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
