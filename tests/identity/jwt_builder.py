"""Builds JWTs byte by byte, without a JWT library, so that tests can make invalid ones."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, TypeAlias

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

ISSUER = "https://login.example.com/realms/team"
AUDIENCE = "https://dittybag.example.com/mcp"
#: The current time in these tests.
NOW = 1_800_000_000.0

Sign: TypeAlias = Callable[[bytes], bytes]


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def encode_integer(value: int, length: int | None = None) -> str:
    return b64(value.to_bytes(length or (value.bit_length() + 7) // 8, "big"))


class Key:
    """A key of an issuer: its public JWK, which may be made when it is needed, and its signing function."""

    def __init__(
        self, kid: str, algorithm: str, jwk: dict[str, Any] | Callable[[], dict[str, Any]], sign: Sign
    ) -> None:
        self.kid = kid
        self.algorithm = algorithm
        self._given = jwk
        self.sign = sign

    @cached_property
    def jwk(self) -> dict[str, Any]:
        given = self._given() if callable(self._given) else self._given
        return {**given, "kid": self.kid, "use": "sig", "alg": self.algorithm}

    def token(
        self, claims: dict[str, Any] | bytes | None = None, header: dict[str, Any] | bytes | None = None
    ) -> str:
        """Return a token with a valid signature and any content."""
        header = {"alg": self.algorithm, "typ": "at+jwt", "kid": self.kid} if header is None else header
        return compact(header, good_claims() if claims is None else claims, self.sign)


def good_claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a valid token with changes; `None` removes a claim."""
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ann",
        "scope": "openid dittybag:write",
        "iat": int(NOW) - 10,
        "exp": int(NOW) + 600,
        **changes,
    }
    return {name: value for name, value in claims.items() if value is not None}


def compact(header: dict[str, Any] | bytes, claims: dict[str, Any] | bytes, sign: Sign) -> str:
    """Return a token in compact form: three base64url parts."""
    parts = [
        part if isinstance(part, bytes) else json.dumps(part, separators=(",", ":")).encode()
        for part in (header, claims)
    ]
    signed = ".".join(map(b64, parts))
    return f"{signed}.{b64(sign(signed.encode()))}"


@cache
def rsa_key(kid: str, algorithm: str = "RS256", bits: int = 2048) -> Key:
    # Generated at its first use: it takes long, and every test process imports modules with many keys.
    private = cache(lambda: rsa.generate_private_key(65537, bits))

    def jwk() -> dict[str, Any]:
        numbers = private().public_key().public_numbers()
        return {"kty": "RSA", "n": encode_integer(numbers.n), "e": encode_integer(numbers.e)}

    length = int(algorithm[2:])
    digest: hashes.HashAlgorithm = {256: hashes.SHA256(), 384: hashes.SHA384(), 512: hashes.SHA512()}[length]
    scheme = (
        padding.PKCS1v15()
        if algorithm.startswith("RS")
        else padding.PSS(padding.MGF1(digest), salt_length=digest.digest_size)
    )
    return Key(kid, algorithm, jwk, lambda data: private().sign(data, scheme, digest))


_CURVES: dict[str, tuple[str, ec.EllipticCurve, hashes.HashAlgorithm, int]] = {
    "ES256": ("P-256", ec.SECP256R1(), hashes.SHA256(), 32),
    "ES384": ("P-384", ec.SECP384R1(), hashes.SHA384(), 48),
    "ES512": ("P-521", ec.SECP521R1(), hashes.SHA512(), 66),
}


@cache
def ec_key(kid: str, algorithm: str = "ES256") -> Key:
    name, curve, digest, length = _CURVES[algorithm]
    private = ec.generate_private_key(curve)
    point = private.public_key().public_numbers()

    def sign(data: bytes) -> bytes:
        r, s = decode_dss_signature(private.sign(data, ec.ECDSA(digest)))
        return r.to_bytes(length, "big") + s.to_bytes(length, "big")

    jwk = {
        "kty": "EC",
        "crv": name,
        "x": encode_integer(point.x, length),
        "y": encode_integer(point.y, length),
    }
    return Key(kid, algorithm, jwk, sign)


@cache
def ed_key(kid: str, curve: str = "Ed25519") -> Key:
    private = ed25519.Ed25519PrivateKey.generate() if curve == "Ed25519" else ed448.Ed448PrivateKey.generate()
    jwk = {"kty": "OKP", "crv": curve, "x": b64(private.public_key().public_bytes_raw())}
    return Key(kid, "EdDSA", jwk, private.sign)
