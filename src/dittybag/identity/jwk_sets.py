"""An issuer's public keys (JWKS, RFC 7517) and the check of token signatures with them (RFC 7515)."""

from __future__ import annotations

import logging
from typing import Any, Final

from msgspec import Struct

from dittybag.identity.identity_errors import FetchFailed, OAuthNotInstalled, TokenRefused
from dittybag.identity.strict_json import json_object

MAX_KEYS: Final = 100
MIN_RSA_BITS: Final = 2048
#: Larger keys are slow to verify and not used in practice.
MAX_RSA_BITS: Final = 8192

_log = logging.getLogger("dittybag.identity")

_RSA: Final = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"))
#: The algorithms that a key may be used with, by key type and curve. The token does not choose.
_ALGORITHMS: Final = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): frozenset(("ES256",)),
    ("EC", "P-384"): frozenset(("ES384",)),
    ("EC", "P-521"): frozenset(("ES512",)),
    ("OKP", "Ed25519"): frozenset(("EdDSA",)),
    ("OKP", "Ed448"): frozenset(("EdDSA",)),
}
#: The public members of a JWK, by key type.
_PUBLIC: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}


class PublicKey(Struct, frozen=True):
    """A public key and the algorithms that it may be used with."""

    id: str | None
    algorithms: frozenset[str]
    key: Any


class KeySet(Struct, frozen=True, eq=False):
    """The keys of one fetched JWKS document."""

    keys: tuple[PublicKey, ...]

    def candidates(self, key_id: str | None, algorithm: str) -> list[PublicKey]:
        """Return the keys that may have signed a token. Without a key id, exactly one key must match."""
        matching = [key for key in self.keys if algorithm in key.algorithms]
        if key_id is None:
            return matching if len(matching) == 1 else []
        return [key for key in matching if key.id == key_id]


class SignatureVerifier:
    """Verifies signatures with PyJWT and a fixed list of algorithms."""

    def __init__(self, algorithms: tuple[str, ...]) -> None:
        try:
            from jwt import PyJWS

            # PyJWT has these only if cryptography is installed.
            from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
            from jwt.exceptions import PyJWTError
        except ImportError as error:
            raise OAuthNotInstalled(
                "OAuth needs PyJWT and cryptography, which are not installed: pip install 'dittybag[oauth]'"
            ) from error
        self._algorithms = frozenset(algorithms)
        self._jws = PyJWS(algorithms=list(algorithms))
        self._parsers = {
            "RSA": RSAAlgorithm.from_jwk,
            "EC": ECAlgorithm.from_jwk,
            "OKP": OKPAlgorithm.from_jwk,
        }
        self._bad_token = PyJWTError

    def check(self, token: str, algorithm: str, keys: list[PublicKey]) -> None:
        """Raises `TokenRefused` unless one of these keys has signed the token."""
        for key in keys:
            try:
                self._jws.decode(token, key.key, algorithms=[algorithm])
            except (self._bad_token, ValueError, TypeError):
                continue
            return
        raise TokenRefused("not signed by a key of the issuer")

    def parse_key_set(self, data: bytes) -> KeySet:
        """Return the usable keys of a JWKS document. Raises `FetchFailed` if it is not a JWKS document."""
        try:
            found = json_object(data).get("keys")
        except ValueError as error:
            raise FetchFailed(f"the document is not a key set ({error})") from None
        if not isinstance(found, list) or len(found) > MAX_KEYS:
            raise FetchFailed(f"the key set has no list of at most {MAX_KEYS} keys")
        keys = tuple(key for jwk in found if (key := self._parse_key(jwk)) is not None)
        if not keys:
            _log.warning("The OAuth issuer has no usable keys: every token will be refused")
        return KeySet(keys)

    def _parse_key(self, jwk: object) -> PublicKey | None:
        """Return a key, or `None` if it is malformed, too weak, or not for signatures."""
        if not isinstance(jwk, dict) or not _is_for_signatures(jwk):
            return None
        algorithms = self._allowed_algorithms(jwk)
        if not algorithms:
            return None
        kind = jwk["kty"]
        try:
            key: Any = self._parsers[kind]({"kty": kind, **{name: jwk[name] for name in _PUBLIC[kind]}})
        except (self._bad_token, ValueError, TypeError, KeyError):
            return None
        if kind == "RSA" and not MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS:
            return None
        return PublicKey(jwk.get("kid"), algorithms, key)

    def _allowed_algorithms(self, jwk: dict[str, Any]) -> frozenset[str]:
        """Return the configured algorithms that a key may be used with."""
        kind, curve, algorithm = jwk.get("kty"), jwk.get("crv"), jwk.get("alg")
        if not isinstance(kind, str) or not isinstance(curve, str | None):
            return frozenset()
        allowed = self._algorithms & _ALGORITHMS.get((kind, curve), frozenset())
        return allowed if algorithm is None else allowed & {str(algorithm)}


def _is_for_signatures(jwk: dict[str, Any]) -> bool:
    operations = jwk.get("key_ops", ["verify"])
    return (
        isinstance(jwk.get("kid"), str | None)
        and jwk.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        # A published private key proves nothing.
        and "d" not in jwk
    )
