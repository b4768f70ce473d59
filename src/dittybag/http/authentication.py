"""Middleware that authenticates HTTP requests by their bearer token."""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from hashlib import sha256
from math import ceil
from typing import Final, Protocol

from msgspec import Struct

from dittybag.domain.accounts import PREFIX, Principal, Scope
from dittybag.domain.errors import DittybagError
from dittybag.domain.rate_limits import RateLimit, RequestBucket
from dittybag.http.asgi_messages import AuthInfo, Header, Headers, HttpError
from dittybag.http.http_request import HttpRequest
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.wire_errors import InternalError, InvalidRequest
from dittybag.services.account_service import AccountService

#: How long a verified token is cached. A revoked token stops working within 5 seconds.
CACHE_SECONDS: Final = 2.0
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
    """A recently verified principal and the requests that its token may make."""

    __slots__ = ("auth", "bucket", "expires_at")

    def __init__(self, bucket: RequestBucket | None) -> None:
        """`bucket`: `None` without a limit."""
        self.auth = AuthInfo()
        #: Until then the token need not be verified again (monotonic time).
        self.expires_at = 0.0
        self.bucket = bucket


class Authentication:
    """Middleware that finds out who makes a request, and refuses requests without a valid token."""

    def __init__(
        self,
        local: TokenVerifier,
        *,
        limit: RateLimit | None,
        on_limited: Callable[[], None],
        external: TokenVerifier | None = None,
        challenge: Challenge = challenge,
        public_paths: tuple[str, ...] = PUBLIC_PATHS,
    ) -> None:
        """`local` verifies Dittybag's own tokens, `external` all others. `public_paths` need no token.

        `on_limited`: called for each request that is refused because of the rate limit.
        """
        self._local = local
        self._external = external
        self._limit = limit
        self._on_limited = on_limited
        self._challenge = challenge
        self._public_paths = public_paths
        self._cache: OrderedDict[bytes, _CachedPrincipal] = OrderedDict()

    def __call__(self, request: HttpRequest) -> Awaitable[bool] | None:
        if request.path in self._public_paths or (request.method, request.path) == _VERSION_REQUEST:
            return None
        token = self._bearer_token(request.headers)
        cached = self._cache.get(token.key)
        now = time.monotonic()
        if cached is None or now >= cached.expires_at:
            return self._verify_and_admit(request, token)
        self._spend_and_admit(request, token, cached, now)
        return None

    async def _verify_and_admit(self, request: HttpRequest, token: _BearerToken) -> bool:
        cached = await self._verify(token)
        if cached is None:
            raise self._unauthorized("invalid_token")
        self._spend_and_admit(request, token, cached, time.monotonic())
        return False

    def _spend_and_admit(
        self, request: HttpRequest, token: _BearerToken, cached: _CachedPrincipal, now: float
    ) -> None:
        """Admit a request within the rate limit. Raises `HttpError` if it is beyond."""
        bucket = cached.bucket
        if bucket is not None and not bucket.take_one(now):
            # For the access log.
            request.auth = cached.auth
            raise self._too_many_requests(bucket.wait(now))
        self._admit(request, token, cached)

    def _too_many_requests(self, wait: float) -> HttpError:
        self._on_limited()
        limit = self._limit
        assert limit is not None
        seconds = max(1, ceil(wait))
        headers = [
            (b"retry-after", b"%d" % seconds),
            # https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
            (b"ratelimit-policy", b'"token";q=%d;w=%d' % (limit.requests, limit.seconds)),
            (b"ratelimit", b'"token";r=0;t=%d' % seconds),
        ]
        return HttpError(429, InvalidRequest(f"Too many requests: the limit is {limit}"), headers=headers)

    def _admit(self, request: HttpRequest, token: _BearerToken, cached: _CachedPrincipal) -> None:
        """Note whose request this is. Raises `HttpError` if they may not make it."""
        auth = request.auth = cached.auth
        needed = REQUIRED_SCOPES.get(request.path)
        if needed is not None and not auth.principal.has(needed):
            message = f"This address requires a token with the scope {needed}"
            header = self._challenge_header("insufficient_scope", needed)
            raise HttpError(403, InvalidRequest(message), headers=[header])
        request.recheck = partial(self._recheck, token, auth)

    def _bearer_token(self, headers: Headers) -> _BearerToken:
        """Return the token of a request. Raises `HttpError`."""
        found = headers.get_all(_AUTHORIZATION)
        scheme, _, text = found[0].partition(" ") if len(found) == 1 else ("", "", "")
        if not found or (len(found) == 1 and scheme.lower() != "bearer"):
            raise self._unauthorized(None)
        if not 0 < len(text) <= MAX_TOKEN:
            raise self._unauthorized("invalid_token")
        return _BearerToken(text, sha256(text.encode()).digest())

    async def _verify(self, token: _BearerToken) -> _CachedPrincipal | None:
        """Return the principal of a token, from the cache if possible, or `None` if it is not valid."""
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
        cached = self._cache.setdefault(token.key, cached or self._new_entry())
        if cached.auth.principal != principal:
            cached.auth = AuthInfo(principal.user, principal, receives_notifications=principal.sees_project)
        cached.expires_at = started + CACHE_SECONDS
        self._cache.move_to_end(token.key)
        while len(self._cache) > MAX_CACHED:
            self._cache.popitem(last=False)
        return cached

    def _new_entry(self) -> _CachedPrincipal:
        return _CachedPrincipal(None if self._limit is None else RequestBucket(self._limit))

    async def _recheck(self, token: _BearerToken, auth: AuthInfo) -> HttpError | None:
        """Return an error unless the token is still valid for the same principal as before."""
        try:
            cached = await self._verify(token)
        except HttpError:
            # It cannot be verified now; the next check decides.
            return None
        return None if cached is not None and cached.auth == auth else self._unauthorized("invalid_token")

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
