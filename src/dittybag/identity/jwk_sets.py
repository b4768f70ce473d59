"""The public keys of an issuer, and whether one of them has signed a token (RFC 7517, RFC 7515)."""

from __future__ import annotations

import logging
from typing import Any, Final

from msgspec import Struct

from dittybag.identity.identity_errors import FetchFailed, OAuthNotInstalled, TokenRefused
from dittybag.identity.strict_json import json_object

MOST_KEYS: Final = 100
LEAST_RSA_BITS: Final = 2048
#: Larger ones take long to verify with, and nobody uses them.
MOST_RSA_BITS: Final = 8192

_log = logging.getLogger("dittybag.identity")

_RSA: Final = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"))
#: Which algorithms a key may be used with, by its kind and curve. A token has no say in this.
_ALGORITHMS: Final = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): frozenset(("ES256",)),
    ("EC", "P-384"): frozenset(("ES384",)),
    ("EC", "P-521"): frozenset(("ES512",)),
    ("OKP", "Ed25519"): frozenset(("EdDSA",)),
    ("OKP", "Ed448"): frozenset(("EdDSA",)),
}
#: What of a key is public, by its kind.
_PUBLIC: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}


class PublicKey(Struct, frozen=True):
    """One key, and what it may be used for."""

    id: str | None
    algorithms: frozenset[str]
    key: Any


class KeySet(Struct, frozen=True, eq=False):
    """All keys that an issuer had at one time."""

    keys: tuple[PublicKey, ...]

    def candidates(self, key_id: str | None, algorithm: str) -> list[PublicKey]:
        """The keys that a token may be signed with. One that names none must leave no doubt."""
        fitting = [key for key in self.keys if algorithm in key.algorithms]
        if key_id is None:
            return fitting if len(fitting) == 1 else []
        return [key for key in fitting if key.id == key_id]


class SignatureVerifier:
    """PyJWT, with a fixed list of algorithms."""

    def __init__(self, algorithms: tuple[str, ...]) -> None:
        try:
            from jwt import PyJWS

            # Without cryptography PyJWT has none of these.
            from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
            from jwt.exceptions import PyJWTError
        except ImportError as error:
            raise OAuthNotInstalled(
                "OAuth needs PyJWT and cryptography, which are not installed: pip install 'dittybag[oauth]'"
            ) from error
        self._algorithms = frozenset(algorithms)
        self._jws = PyJWS(algorithms=list(algorithms))
        self._makers = {
            "RSA": RSAAlgorithm.from_jwk,
            "EC": ECAlgorithm.from_jwk,
            "OKP": OKPAlgorithm.from_jwk,
        }
        self._bad_token = PyJWTError

    def check(self, token: str, algorithm: str, keys: list[PublicKey]) -> None:
        """Raises `TokenRefused` if none of these keys has signed the token."""
        for key in keys:
            try:
                self._jws.decode(token, key.key, algorithms=[algorithm])
            except (self._bad_token, ValueError, TypeError):
                continue
            return
        raise TokenRefused("none of the issuer's keys has signed it")

    def key_set(self, data: bytes) -> KeySet:
        """The keys in a JWKS document that can be used. Raises `FetchFailed` if it is no such document."""
        try:
            found = json_object(data).get("keys")
        except ValueError as error:
            raise FetchFailed(f"what is there is not a key set ({error})") from None
        if not isinstance(found, list) or len(found) > MOST_KEYS:
            raise FetchFailed(f"what is there has no list of at most {MOST_KEYS} keys")
        keys = tuple(key for one in found if (key := self._public_key(one)) is not None)
        if not keys:
            _log.warning("The OAuth issuer has no key that can be used here: every token will be refused")
        return KeySet(keys)

    def _public_key(self, jwk: object) -> PublicKey | None:
        """A key, if it is one to verify signatures with and strong enough; the others are passed over."""
        if not isinstance(jwk, dict) or not _is_for_signatures(jwk):
            return None
        algorithms = self._suitable(jwk)
        if not algorithms:
            return None
        kind = jwk["kty"]
        try:
            key: Any = self._makers[kind]({"kty": kind, **{name: jwk[name] for name in _PUBLIC[kind]}})
        except (self._bad_token, ValueError, TypeError, KeyError):
            return None
        if kind == "RSA" and not LEAST_RSA_BITS <= key.key_size <= MOST_RSA_BITS:
            return None
        return PublicKey(jwk.get("kid"), algorithms, key)

    def _suitable(self, jwk: dict[str, Any]) -> frozenset[str]:
        """Which of the allowed algorithms a key may be used with."""
        kind, curve, algorithm = jwk.get("kty"), jwk.get("crv"), jwk.get("alg")
        if not isinstance(kind, str) or not isinstance(curve, str | None):
            return frozenset()
        suitable = self._algorithms & _ALGORITHMS.get((kind, curve), frozenset())
        return suitable if algorithm is None else suitable & {str(algorithm)}


def _is_for_signatures(jwk: dict[str, Any]) -> bool:
    operations = jwk.get("key_ops", ["verify"])
    return (
        isinstance(jwk.get("kid"), str | None)
        and jwk.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        # A private key that the whole world can read proves nothing.
        and "d" not in jwk
    )
