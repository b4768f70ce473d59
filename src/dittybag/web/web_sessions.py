"""Sessions of the web UI: people sign in once, and a cookie identifies them afterwards."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from hmac import compare_digest
from os import urandom
from typing import Final

import msgspec
from msgspec import Struct

from dittybag.domain.accounts import PREFIX, Principal, Scope, token_hash
from dittybag.domain.ports import Store, StoredSession, Transaction
from dittybag.services.account_service import AccountService

#: A session ends after this time without a request.
SESSION_SECONDS: Final = 7 * 24 * 3600
#: The last use of a session is stored at most this often.
_TOUCH_SECONDS: Final = 600
#: A session is cached for this time; a revoked token must stop working within 5 seconds.
_CACHE_SECONDS: Final = 2.0
_MAX_CACHED: Final = 10_000
#: Maximum number of sessions of one user. A new one ends the oldest.
MAX_SESSIONS: Final = 100
#: A session with a token of another issuer ends after this time.
_FOREIGN_TOKEN_SECONDS: Final = 3600
#: Random bytes of a sign-in link, which is short enough for a line of a terminal.
_LINK_BYTES: Final = 16
#: Maximum number of unused sign-in links.
_MAX_LINKS: Final = 20
#: An unused sign-in link expires after this time.
_LINK_SECONDS: Final = 24 * 3600
#: While a link that was requested is unused, no other one is printed for this time.
_REPRINT_SECONDS: Final = 60
_COOKIE_LENGTH: Final = 43
_NO_LINK: Final = (0.0, "/")


class WebSession(Struct, frozen=True):
    """A signed-in or anonymous browser."""

    #: Its permissions in the server's project; None for the owner of the machine.
    principal: Principal | None = None
    #: The CSRF secret that the forms of this session send.
    form_secret: str = ""
    is_signed_in: bool = True

    @property
    def name(self) -> str | None:
        return None if self.principal is None else self.principal.user


ANONYMOUS: Final = WebSession(is_signed_in=False)


class _SessionState(Struct, frozen=True, omit_defaults=True):
    """The stored state of a session: the token it was created with, or the user of a foreign token."""

    #: The hash of one of our tokens.
    token: str | None = None
    user: str | None = None
    scope: Scope | None = None
    #: Seconds since 1970.
    until: int | None = None


_decode = msgspec.json.Decoder(_SessionState).decode


class WebSessions:
    """Creates and finds sessions. They are in the store, where every server finds them."""

    def __init__(
        self,
        store: Store,
        accounts: AccountService,
        project: int,
        *,
        needs_token: bool,
        verify_foreign: Callable[[str], Awaitable[Principal | None]] | None = None,
    ) -> None:
        """`verify_foreign` returns the principal of a token of another issuer."""
        self._store = store
        self._verify_foreign = verify_foreign
        self._accounts = accounts
        self._project = project
        self._needs_token = needs_token
        self._cache: OrderedDict[str, tuple[float, WebSession]] = OrderedDict()
        #: By the hash of its key, until when a link works, and the page that it opens.
        self._links: OrderedDict[str, tuple[float, str]] = OrderedDict()
        #: The newest link that was requested, and until when no other one is printed.
        self._requested = ("", 0.0)

    # Signing in

    def new_link_key(self, page: str = "/") -> str:
        """Return the secret of a new sign-in link, which works once and opens this page."""
        key = _new_secret(_LINK_BYTES)
        self._links[_digest(key)] = (time.monotonic() + _LINK_SECONDS, page)
        while len(self._links) > _MAX_LINKS:
            self._links.popitem(last=False)
        return key

    def requested_link_key(self) -> str | None:
        """Return the secret of a new sign-in link, or None if an unused one was requested a moment ago."""
        digest, until = self._requested
        if digest in self._links and time.monotonic() < until:
            return None
        key = self.new_link_key()
        self._requested = (_digest(key), time.monotonic() + _REPRINT_SECONDS)
        return key

    def is_link_valid(self, key: str) -> bool:
        """Return whether a sign-in link is neither used nor expired."""
        return time.monotonic() < self._links.get(_digest(key), _NO_LINK)[0] and not self._needs_token

    def link_page(self, key: str) -> str:
        """Return the page that a sign-in link opens."""
        return self._links.get(_digest(key), _NO_LINK)[1]

    async def sign_in_by_link(self, key: str) -> str | None:
        """Return the cookie of a new session, or None if the link is unknown, used or expired."""
        if not self.is_link_valid(key):
            return None
        del self._links[_digest(key)]
        return await self._create_session("", _SessionState())

    async def sign_in_by_token(self, token: str) -> str | None:
        """Return the cookie of a new session, or None if the token is not valid."""
        if token.startswith(PREFIX) or self._verify_foreign is None:
            found = await self._accounts.verify_token(token, self._project)
            if found is None:
                return None
            return await self._create_session(found.principal.user, _SessionState(token=token_hash(token)))
        principal = await self._verify_foreign(token)
        if principal is None:
            return None
        until = int(time.time()) + _FOREIGN_TOKEN_SECONDS
        state = _SessionState(user=principal.user, scope=principal.scope, until=until)
        return await self._create_session(principal.user, state)

    async def _create_session(self, user: str, state: _SessionState) -> str:
        secret = _new_secret()
        await self._store.write(partial(_add_session, secret, f"web {user}", state), actor="")
        return secret

    async def sign_out(self, secret: str) -> None:
        key = _session_id(secret)
        self._cache.pop(key, None)
        await self._store.write(lambda transaction: transaction.sessions.delete(key), actor="")

    # Finding sessions

    async def find(self, secret: str | None) -> WebSession:
        """Return the session of a cookie. Raises `DittybagError` if the store cannot be read."""
        if secret is None or len(secret) != _COOKIE_LENGTH:
            return ANONYMOUS
        key = _session_id(secret)
        until, session = self._cache.get(key, (0.0, ANONYMOUS))
        now = time.monotonic()
        if now < until:
            return session
        principal, is_signed_in = await self._look_up(key)
        if not is_signed_in:
            self._cache.pop(key, None)
            return ANONYMOUS
        session = WebSession(principal, _digest("form " + secret))
        self._cache[key] = (now + _CACHE_SECONDS, session)
        self._cache.move_to_end(key)
        while len(self._cache) > _MAX_CACHED:
            self._cache.popitem(last=False)
        return session

    async def principal_in(self, secret: str, project: int) -> Principal | None:
        """Return the principal of a session in another project."""
        return (await self._look_up(_session_id(secret), project))[0]

    async def _look_up(self, id: str, project: int | None = None) -> tuple[Principal | None, bool]:
        stored = await self._store.read(lambda transaction: transaction.sessions.get(id), single=True)
        now = time.time_ns() // 1000
        if stored is None or now - stored.used_at > SESSION_SECONDS * 1_000_000:
            return None, False
        state = _decode(stored.state)
        principal = await self._principal(state, self._project if project is None else project, now)
        if (principal is None) == self._needs_token:
            # Without tokens every session belongs to the owner of the machine; with tokens, none does.
            return None, False
        if now - stored.used_at > _TOUCH_SECONDS * 1_000_000:
            await self._store.write(partial(_touch_session, id, stored), actor="")
        return principal, True

    async def _principal(self, state: _SessionState, project: int, now: int) -> Principal | None:
        if not self._needs_token:
            return None
        if state.token is not None:
            found = await self._accounts.verify_token_hash(state.token, project)
            return None if found is None else found.principal
        if state.user is None or state.scope is None or now > (state.until or 0) * 1_000_000:
            return None
        return await self._accounts.external_principal(state.user, state.scope, project)


async def _add_session(secret: str, owner: str, state: _SessionState, transaction: Transaction) -> None:
    idle_since = transaction.now - SESSION_SECONDS * 1_000_000
    await transaction.sessions.prune(idle_since, owner, MAX_SESSIONS - 1)
    await transaction.sessions.save(_session_id(secret), owner, msgspec.json.encode(state), transaction.now)


async def _touch_session(id: str, stored: StoredSession, transaction: Transaction) -> None:
    # The session may have been signed out in the meantime.
    if await transaction.sessions.get(id) is not None:
        await transaction.sessions.save(id, stored.owner, stored.state, transaction.now)


def is_own_form(session: WebSession, secret: str | None) -> bool:
    """Return whether the CSRF secret of a form is that of the session."""
    return bool(session.form_secret) and compare_digest(session.form_secret, secret or "")


def _new_secret(size: int = 32) -> str:
    return urlsafe_b64encode(urandom(size)).rstrip(b"=").decode()


def _session_id(secret: str) -> str:
    """Return the id of a stored session: a hash, so that the database does not reveal the cookie."""
    return "web-" + _digest(secret)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
