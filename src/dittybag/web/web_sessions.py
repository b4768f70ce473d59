"""Who looks at the pages: people sign in once, and are known by a cookie from then on."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from hmac import compare_digest
from os import urandom
from typing import Final

import msgspec
from msgspec import Struct

from dittybag.domain.accounts import PREFIX, Principal, Scope, token_hash
from dittybag.domain.ports import StoredSession, Store, Transaction
from dittybag.services.account_service import AccountService

COOKIE: Final = "dittybag-session"
#: Somebody who does not come for so long has to sign in again.
SESSION_SECONDS: Final = 7 * 24 * 3600
#: That somebody was here is noted only so often.
_NOTED_SECONDS: Final = 600
#: So long is somebody known without asking again: what is revoked is worthless within 5 seconds.
_KNOWN_SECONDS: Final = 2.0
_MAX_KNOWN: Final = 10_000
_MAX_SESSIONS: Final = 10_000
#: Whom others vouch for has to show a new token after that.
_VOUCHED_SECONDS: Final = 3600
#: So many links can be used at a time.
_MAX_LINKS: Final = 20
#: A link that nobody uses is worthless after that.
_LINK_SECONDS: Final = 24 * 3600
_COOKIE_LENGTH: Final = 43


class Visitor(Struct, frozen=True):
    """Somebody at a page."""

    #: What they may do in the server's project; nothing for whoever owns the machine.
    principal: Principal | None = None
    #: The secret that forms of this visitor's pages carry.
    form_secret: str = ""
    is_known: bool = True

    @property
    def name(self) -> str | None:
        return None if self.principal is None else self.principal.user


NOBODY: Final = Visitor(is_known=False)


class _Session(Struct, frozen=True, omit_defaults=True):
    """What is kept of a session: by which token somebody came, or for whom others vouched and until when."""

    #: The hash of the token.
    token: str | None = None
    user: str | None = None
    scope: Scope | None = None
    #: Seconds since 1970.
    until: int | None = None


_decode = msgspec.json.Decoder(_Session).decode


class Visitors:
    """Knows people by their cookies. Sessions are in the store, where every server finds them."""

    def __init__(
        self,
        store: Store,
        accounts: AccountService,
        project: int,
        *,
        needs_token: bool,
        others: Callable[[str], Awaitable[Principal | None]] | None = None,
    ) -> None:
        """`others`: who a token belongs to that is not one of ours."""
        self._store = store
        self._others = others
        self._accounts = accounts
        self._project = project
        self._needs_token = needs_token
        self._known: OrderedDict[str, tuple[float, Visitor]] = OrderedDict()
        self._links: OrderedDict[str, float] = OrderedDict()

    # Signing in

    def new_link_key(self) -> str:
        """A secret that lets one browser in, once."""
        key = _secret()
        self._links[_digest(key)] = time.monotonic() + _LINK_SECONDS
        while len(self._links) > _MAX_LINKS:
            self._links.popitem(last=False)
        return key

    async def enter_by_link(self, key: str) -> str | None:
        """The cookie of a new session; nothing if the link was used before, or is none of ours."""
        until = self._links.pop(_digest(key), None)
        if until is None or time.monotonic() > until or self._needs_token:
            return None
        return await self._begin(_Session())

    async def enter_by_token(self, text: str) -> str | None:
        """The cookie of a new session for whoever has this token; nothing if it is not valid."""
        if text.startswith(PREFIX) or self._others is None:
            if await self._accounts.verify_token(text, self._project) is None:
                return None
            return await self._begin(_Session(token=token_hash(text)))
        principal = await self._others(text)
        if principal is None:
            return None
        until = int(time.time()) + _VOUCHED_SECONDS
        return await self._begin(_Session(user=principal.user, scope=principal.scope, until=until))

    async def _begin(self, session: _Session) -> str:
        secret = _secret()

        async def work(transaction: Transaction) -> None:
            await transaction.prune_sessions(
                transaction.now - SESSION_SECONDS * 1_000_000, _MAX_SESSIONS - 1
            )
            await transaction.save_session(_id(secret), msgspec.json.encode(session))

        await self._store.write(work, actor="")
        return secret

    async def leave(self, secret: str) -> None:
        """End a session."""
        self._known.pop(_id(secret), None)

        async def work(transaction: Transaction) -> None:
            await transaction.delete_session(_id(secret))

        await self._store.write(work, actor="")

    # Being known

    async def find(self, secret: str | None) -> Visitor:
        """Who has this cookie. Raises `DittybagError` if that cannot be found out now."""
        if secret is None or len(secret) != _COOKIE_LENGTH:
            return NOBODY
        key = _id(secret)
        until, visitor = self._known.get(key, (0.0, NOBODY))
        now = time.monotonic()
        if now < until:
            return visitor
        principal, is_known = await self._look_up(key)
        if not is_known:
            self._known.pop(key, None)
            return NOBODY
        visitor = Visitor(principal, _digest("form " + secret))
        self._known[key] = (now + _KNOWN_SECONDS, visitor)
        self._known.move_to_end(key)
        while len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)
        return visitor

    async def grant_in(self, secret: str, project: int) -> Principal | None:
        """What the visitor with this cookie may do in another project."""
        return (await self._look_up(_id(secret), project))[0]

    async def _look_up(self, id: str, project: int | None = None) -> tuple[Principal | None, bool]:
        async def work(transaction: Transaction) -> StoredSession | None:
            return await transaction.sessions.get(id)

        kept = await self._store.read(work, single=True)
        now = time.time_ns() // 1000
        if kept is None or now - kept.used_at > SESSION_SECONDS * 1_000_000:
            return None, False
        session = _decode(kept.state)
        principal = await self._principal(session, self._project if project is None else project, now)
        if (principal is None) == self._needs_token:
            # Without tokens everybody who was let in owns the machine; with them, nobody does.
            return None, False
        if now - kept.used_at > _NOTED_SECONDS * 1_000_000:
            await self._note(id, kept)
        return principal, True

    async def _principal(self, session: _Session, project: int, now: int) -> Principal | None:
        if not self._needs_token:
            return None
        if session.token is not None:
            found = await self._accounts.verify_token_hash(session.token, project)
            return None if found is None else found.principal
        if session.user is None or session.scope is None or now > (session.until or 0) * 1_000_000:
            return None
        return await self._accounts.external_principal(session.user, session.scope, project)

    async def _note(self, id: str, kept: StoredSession) -> None:
        async def work(transaction: Transaction) -> None:
            # Somebody may have signed out meanwhile.
            if await transaction.sessions.get(id) is not None:
                await transaction.save_session(id, kept.state)

        await self._store.write(work, actor="")


def is_own_form(visitor: Visitor, shown: str | None) -> bool:
    """Whether a form comes from one of the visitor's own pages."""
    return bool(visitor.form_secret) and compare_digest(visitor.form_secret, shown or "")


def _secret() -> str:
    return urlsafe_b64encode(urandom(32)).rstrip(b"=").decode()


def _id(secret: str) -> str:
    """Under which a session is kept: whoever reads the database cannot take its place."""
    return "web-" + _digest(secret)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
