"""Verifies OAuth access tokens and returns the identity of the user."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from msgspec import Struct

from dittybag.identity import bounded_fetch
from dittybag.identity.discovery import Fetch, fetch_jwks
from dittybag.identity.identity_errors import InsufficientScope, TokenRefused
from dittybag.identity.jwk_sets import KeySet, SignatureVerifier
from dittybag.identity.key_cache import KeyCache
from dittybag.identity.oauth_settings import OAuthSettings, check
from dittybag.identity.token_claims import OAuthScope, TokenClaims, read

#: How long a verified token is cached, and the maximum number of cached tokens.
CACHE_SECONDS: Final = 60.0
MAX_CACHED: Final = 10_000
MAX_TOKEN_CHARACTERS: Final = 16 * 1024


class Identity(Struct, frozen=True):
    """The user and scope of a verified token, and its expiry time."""

    user: str
    scope: OAuthScope
    #: Unix time in seconds.
    expires_at: float


class OAuthVerifier:
    """Verifies the tokens of one issuer."""

    def __init__(
        self,
        settings: OAuthSettings,
        *,
        fetch: Fetch | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`fetch` replaces the built-in HTTP client.

        Raises `OAuthMisconfigured` and `OAuthNotInstalled`.
        """
        check(settings)
        self._settings = settings
        self._now = now
        self._signatures = SignatureVerifier(settings.algorithms)
        get = fetch or bounded_fetch.get
        self._key_cache = KeyCache(lambda: fetch_jwks(settings, get), self._signatures.parse_key_set, now)
        #: By token hash: the keys it was verified with, when, until when this holds, and the identity.
        self._verified: OrderedDict[bytes, tuple[KeySet, float, float, Identity]] = OrderedDict()

    async def verify(self, token: str) -> Identity:
        """Return the identity of a token.

        Raises `TokenRefused`, `InsufficientScope`, and `KeysUnavailable` if it cannot be verified now.
        """
        now = self._now()
        digest = _digest(token)
        cached = self._verified.get(digest)
        if cached is not None:
            keys, since, until, identity = cached
            if keys is self._key_cache.get_fresh(now) and since <= now < until:
                return identity
        claims = read(token, self._settings, now)
        keys = await self._keys_for(claims)
        self._signatures.check(token, claims.algorithm, keys.candidates(claims.key_id, claims.algorithm))
        if claims.scope is None:
            raise InsufficientScope("it has none of the required scopes")
        identity = Identity(claims.user, claims.scope, claims.expires_at)
        self._remember(digest, keys, now, identity)
        return identity

    async def close(self) -> None:
        """Cancel the current fetch of keys."""
        await self._key_cache.close()

    async def _keys_for(self, claims: TokenClaims) -> KeySet:
        keys = await self._key_cache.get()
        if not keys.candidates(claims.key_id, claims.algorithm):
            keys = await self._key_cache.refresh()
        return keys

    def _remember(self, digest: bytes, keys: KeySet, now: float, identity: Identity) -> None:
        until = min(now + CACHE_SECONDS, identity.expires_at + self._settings.leeway_seconds)
        self._verified[digest] = (keys, now, until, identity)
        self._verified.move_to_end(digest)
        if len(self._verified) > MAX_CACHED:
            self._verified.popitem(last=False)


def _digest(token: str) -> bytes:
    if len(token) > MAX_TOKEN_CHARACTERS:
        raise TokenRefused("too long")
    try:
        return sha256(token.encode("ascii")).digest()
    except UnicodeEncodeError:
        raise TokenRefused("it contains characters that are not ASCII") from None
