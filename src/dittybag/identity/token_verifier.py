"""Tokens in, identities out."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from msgspec import Struct

from dittybag.identity import bounded_fetch
from dittybag.identity.discovery import Fetch, key_document
from dittybag.identity.identity_errors import InsufficientScope, TokenRefused
from dittybag.identity.jwk_sets import KeySet, SignatureVerifier
from dittybag.identity.key_cache import KeyCache
from dittybag.identity.oauth_settings import OAuthSettings, check
from dittybag.identity.token_claims import Scope, TokenClaims, read

#: How long, and of how many tokens at most, it is remembered that they are good.
REMEMBERED_SECONDS: Final = 60.0
MOST_REMEMBERED: Final = 10_000
MOST_TOKEN_CHARACTERS: Final = 16 * 1024


class Identity(Struct, frozen=True):
    """Who is calling, what they may do, and until when that is certain."""

    user: str
    scope: Scope
    #: In seconds since 1970.
    expires_at: float


class OAuthVerifier:
    """Tells whose token it is, for the tokens of one issuer."""

    def __init__(
        self,
        settings: OAuthSettings,
        *,
        fetch: Fetch | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`fetch` gets the document at an address, in place of our own way.

        Raises `OAuthMisconfigured` and `OAuthNotInstalled`.
        """
        check(settings)
        self._settings = settings
        self._now = now
        self._signatures = SignatureVerifier(settings.algorithms)
        get = fetch or bounded_fetch.get
        self._key_cache = KeyCache(lambda: key_document(settings, get), self._signatures.key_set, now)
        #: By the hash of a token: the keys it was verified with, since when, until when, and whose it is.
        self._remembered: OrderedDict[bytes, tuple[KeySet, float, float, Identity]] = OrderedDict()

    async def verify(self, token: str) -> Identity:
        """Who a token speaks for.

        Raises `TokenRefused`, `InsufficientScope`, and `KeysUnavailable` if that cannot be told now.
        """
        now = self._now()
        digest = _digest(token)
        remembered = self._remembered.get(digest)
        if remembered is not None:
            keys, since, until, identity = remembered
            if keys is self._key_cache.fresh(now) and since <= now < until:
                return identity
        claimed = read(token, self._settings, now)
        keys = await self._keys_for(claimed)
        self._signatures.check(token, claimed.algorithm, keys.candidates(claimed.key_id, claimed.algorithm))
        if claimed.scope is None:
            raise InsufficientScope("it has none of the scopes that are needed here")
        identity = Identity(claimed.user, claimed.scope, claimed.expires_at)
        self._remember(digest, keys, now, identity)
        return identity

    async def close(self) -> None:
        """Stop fetching keys."""
        await self._key_cache.close()

    async def _keys_for(self, claimed: TokenClaims) -> KeySet:
        keys = await self._key_cache.keys()
        if not keys.candidates(claimed.key_id, claimed.algorithm):
            keys = await self._key_cache.newer()
        return keys

    def _remember(self, digest: bytes, keys: KeySet, now: float, identity: Identity) -> None:
        until = min(now + REMEMBERED_SECONDS, identity.expires_at + self._settings.leeway_seconds)
        self._remembered[digest] = (keys, now, until, identity)
        self._remembered.move_to_end(digest)
        if len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)


def _digest(token: str) -> bytes:
    if len(token) > MOST_TOKEN_CHARACTERS:
        raise TokenRefused("it is too long")
    try:
        return sha256(token.encode("ascii")).digest()
    except UnicodeEncodeError:
        raise TokenRefused("it has characters in it that no token has") from None
