"""ASGI middleware that authenticates HTTP requests by their bearer token."""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from math import ceil
from typing import Any, Final, Protocol

from msgspec import Struct

from dittybag.domain.accounts import PREFIX, Principal, Scope
from dittybag.domain.errors import DittybagError
from dittybag.http.asgi_messages import (
    AUTH_INFO,
    Application,
    AsgiScope,
    AuthenticatedSyncHandler,
    AuthInfo,
    CompleteResponse,
    Header,
    Headers,
    HttpError,
    Receive,
    Send,
    SyncHandler,
    send_error,
)
from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.wire_errors import InternalError, InvalidRequest
from dittybag.services.account_service import AccountService

#: How long a verified token is cached. A revoked token stops working within 5 seconds.
CACHE_SECONDS: Final = 2.0
#: How often the token of an open stream is verified again.
RECHECK_SECONDS: Final = 1.5
#: Maximum number of cached tokens.
MAX_CACHED: Final = 10_000
#: Maximum length of a token in characters.
MAX_TOKEN: Final = 8192

#: Paths that need no token. They report only a status.
PUBLIC_PATHS: Final = ("/healthz", "/readyz")
#: The scope that a path requires, beyond a valid token.
REQUIRED_SCOPES: Final[Mapping[str, Scope]] = {"/metrics": "admin"}

#: The request that advertises the MCP revision, and needs no token either.
_VERSION_REQUEST: Final = ("HEAD", "/")

_AUTHORIZATION: Final = b"authorization"


class RateLimit(Struct, frozen=True):
    """The request rate that one token is allowed, per process (a token bucket)."""

    per_second: float = 50.0
    #: Size of the bucket: the number of requests allowed in a burst.
    burst: int = 200


class TokenVerifier(Protocol):
    """Finds the principal that a token belongs to."""

    async def verify(self, text: str) -> Principal | None:
        """Return the principal, or `None` if the token is invalid for any reason.

        Raises `HttpError` if the token cannot be verified now or lacks a required scope.
        """
        ...


#: Builds the value of `WWW-Authenticate` from an RFC 6750 error code and the required scope, both optional.
Challenge = Callable[[str | None, str | None], bytes]


def challenge(error: str | None = None, scope: str | None = None) -> bytes:
    """Return the value of `WWW-Authenticate` for a server that accepts only its own tokens."""
    parts = {"realm": "dittybag", "error": error, "scope": scope}
    parameters = ", ".join(f'{name}="{value}"' for name, value in parts.items() if value)
    return f"Bearer {parameters}".encode()


class LocalTokenVerifier:
    """Verifies tokens created by `dittybag token create`. Implements `TokenVerifier`."""

    def __init__(self, accounts: AccountService, project: int) -> None:
        self._accounts = accounts
        self._project = project
        self._use_updates: set[asyncio.Future[None]] = set()

    async def verify(self, text: str) -> Principal | None:
        try:
            found = await self._accounts.verify_token(text, self._project)
        except DittybagError as error:
            raise HttpError(503, InternalError(str(error)), headers=[(b"retry-after", b"1")]) from error
        if found is None:
            return None
        if found.is_use_due:
            # In the background: the request does not wait for it.
            update = asyncio.ensure_future(self._record_use(found.token.id))
            self._use_updates.add(update)
            update.add_done_callback(self._use_updates.discard)
        return found.principal

    async def _record_use(self, id: int) -> None:
        # If this fails, the next request tries again.
        with contextlib.suppress(DittybagError):
            await self._accounts.record_use(id)


class _CachedPrincipal:
    """A recently verified principal and the token bucket of its requests."""

    __slots__ = ("_filled_at", "_left", "_rate", "auth", "expires_at")

    def __init__(self, rate: RateLimit) -> None:
        self.auth = AuthInfo()
        #: Until then the token need not be verified again (monotonic time).
        self.expires_at = 0.0
        self._rate = rate
        self._left = float(rate.burst)
        self._filled_at = time.monotonic()

    def spend(self, now: float) -> bool:
        """Take one request from the bucket. Return whether it is within the limit."""
        rate = self._rate
        left = min(self._left + (now - self._filled_at) * rate.per_second, rate.burst)
        self._filled_at = now
        if left < 1:
            self._left = left
            return False
        self._left = left - 1
        return True

    def give_back(self) -> None:
        """Return a request to the bucket."""
        self._left += 1

    @property
    def seconds_to_wait(self) -> int:
        return max(1, ceil((1 - self._left) / self._rate.per_second))


class AuthenticationMiddleware:
    """Passes authenticated requests on, with an `AuthInfo` in their scope, and rejects all others."""

    def __init__(
        self,
        inner: Application,
        local: TokenVerifier,
        *,
        external: TokenVerifier | None = None,
        rate: RateLimit | None = None,
        challenge: Challenge = challenge,
        public_paths: tuple[str, ...] = PUBLIC_PATHS,
    ) -> None:
        """`local` verifies Dittybag's own tokens, `external` all others. `public_paths` need no token."""
        self._inner = inner
        self._local = local
        self._external = external
        self._rate = rate or RateLimit()
        self._challenge = challenge
        self._public_paths = public_paths
        self._cache: OrderedDict[bytes, _CachedPrincipal] = OrderedDict()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path in self._public_paths or (scope["method"], path) == _VERSION_REQUEST:
            await self._inner(scope, receive, send)
            return
        try:
            token, auth = await self._authenticate(scope)
        except HttpError as error:
            await send_error(send, error)
            return
        request = _RevocableRequest(lambda: self._is_still_valid(token, auth), receive, send)
        await request.run(self._inner, scope, self._unauthorized("invalid_token"))

    def wrap_sync(self, inner: AuthenticatedSyncHandler) -> SyncHandler:
        """Wrap a synchronous handler. It gets only requests whose token is in the cache."""

        def authenticated(headers: Headers, body: bytes) -> CompleteResponse | Application | None:
            token: _BearerToken | None = headers.cache.get(self)
            cached = None if token is None else self._cache.get(token.key)
            if cached is None:
                return None
            now = time.monotonic()
            if now >= cached.expires_at or not cached.spend(now):
                return None
            response = inner(headers, body, cached.auth)
            if response is None:
                # The request takes the normal path, where it is counted.
                cached.give_back()
            return response

        return authenticated

    async def _authenticate(self, scope: AsgiScope) -> tuple[_BearerToken, AuthInfo]:
        """Find out who makes a request and add it to the scope. Raises `HttpError`."""
        token = self._bearer_token(Headers.from_scope(scope))
        cached = await self._verify(token)
        if cached is None:
            raise self._unauthorized("invalid_token")
        auth = scope[AUTH_INFO] = cached.auth
        if not cached.spend(time.monotonic()):
            rate = self._rate
            message = (
                f"Too many requests: the limit is {rate.per_second:g} per second, with bursts of {rate.burst}"
            )
            wait = (b"retry-after", b"%d" % cached.seconds_to_wait)
            raise HttpError(429, InvalidRequest(message), headers=[wait])
        needed = REQUIRED_SCOPES.get(scope["path"])
        if needed is not None and not auth.principal.has(needed):
            message = f"This address requires a token with the scope {needed}"
            header = self._challenge_header("insufficient_scope", needed)
            raise HttpError(403, InvalidRequest(message), headers=[header])
        return token, auth

    def _bearer_token(self, headers: Headers) -> _BearerToken:
        """Return the token of a request. Raises `HttpError`."""
        token: _BearerToken | None = headers.cache.get(self)
        if token is None:
            found = headers.get_all(_AUTHORIZATION)
            scheme, _, text = found[0].partition(" ") if len(found) == 1 else ("", "", "")
            if not found or (len(found) == 1 and scheme.lower() != "bearer"):
                raise self._unauthorized(None)
            if not 0 < len(text) <= MAX_TOKEN:
                raise self._unauthorized("invalid_token")
            # Cached with the headers because it follows from them alone. The validity of the token does not.
            token = headers.cache[self] = _BearerToken(text, sha256(text.encode()).digest())
        return token

    async def _verify(self, token: _BearerToken) -> _CachedPrincipal | None:
        cached = self._cache.get(token.key)
        if cached is not None and time.monotonic() < cached.expires_at:
            return cached
        started = time.monotonic()
        verifier = self._local if token.text.startswith(PREFIX) else self._external
        principal = None if verifier is None else await verifier.verify(token.text)
        if principal is None:
            self._cache.pop(token.key, None)
            return None
        # Another request may have added it in the meantime.
        cached = self._cache.setdefault(token.key, cached or _CachedPrincipal(self._rate))
        if cached.auth.principal != principal:
            cached.auth = AuthInfo(principal.user, principal, receives_notifications=principal.sees_project)
        cached.expires_at = started + CACHE_SECONDS
        self._cache.move_to_end(token.key)
        while len(self._cache) > MAX_CACHED:
            self._cache.popitem(last=False)
        return cached

    async def _is_still_valid(self, token: _BearerToken, auth: AuthInfo) -> bool:
        """Return whether a stream may stay open: the token is valid for the same principal as before."""
        try:
            cached = await self._verify(token)
        except HttpError:
            # It cannot be verified now; the next check decides.
            return True
        return cached is not None and cached.auth == auth

    def _unauthorized(self, error: str | None) -> HttpError:
        # The same message for every reason: the reason would help only an attacker.
        message = "This server requires a valid token: Authorization: Bearer TOKEN"
        return HttpError(401, InvalidRequest(message), headers=[self._challenge_header(error, None)])

    def _challenge_header(self, error: str | None, scope: str | None) -> Header:
        return b"www-authenticate", self._challenge(error, scope)


class _BearerToken(Struct, frozen=True):
    """The bearer token of a request. Its `repr` does not show it."""

    text: str
    #: Its SHA-256.
    key: bytes

    def __repr__(self) -> str:
        return "_BearerToken(...)"


class _RevocableRequest:
    """A request that ends when its token is revoked, as if the client had disconnected."""

    def __init__(self, is_still_valid: Callable[[], Awaitable[bool]], receive: Receive, send: Send) -> None:
        self._is_still_valid = is_still_valid
        self._receive = receive
        self._send = send
        self._has_body = False
        self._is_revoked = False
        self._started = self._finished = False

    async def run(self, application: Application, scope: AsgiScope, error: HttpError) -> None:
        """Run the application. Send `error` if the token is revoked before the response starts."""
        await application(scope, self.receive, self.send)
        if self._is_revoked and not self._started:
            await send_error(self._send, error)
        elif self._is_revoked and not self._finished:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def receive(self) -> Any:
        if not self._has_body:
            message = await self._receive()
            self._has_body = not message.get("more_body", False)
            return message
        # After the body, the only message to wait for is the disconnect.
        disconnect = asyncio.ensure_future(self._receive())
        try:
            while not disconnect.done():
                await asyncio.wait((disconnect,), timeout=RECHECK_SECONDS)
                if not disconnect.done() and not await self._is_still_valid():
                    self._is_revoked = True
                    return {"type": "http.disconnect"}
        finally:
            disconnect.cancel()
        return disconnect.result()

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._started = True
        elif not message.get("more_body", False):
            self._finished = True
        await self._send(message)
