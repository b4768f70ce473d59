"""Parses a token and checks its claims; the signature is not checked here."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from dittybag.identity.identity_errors import TokenRefused
from dittybag.identity.oauth_settings import OAuthSettings
from dittybag.identity.strict_json import json_object

MAX_USER_CHARACTERS: Final = 200
MAX_KEY_ID_CHARACTERS: Final = 200

OAuthScope: TypeAlias = Literal["read", "write", "admin"]

_WIDEST_FIRST: Final[tuple[OAuthScope, ...]] = ("admin", "write", "read")
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
#: The `typ` of access tokens and of tokens without a specific type. Others have other uses (RFC 8725, 3.11).
_TYPES: Final = ("jwt", "at+jwt", "application/at+jwt")
#: Headers that change the meaning of the token. None is supported, so tokens with them are refused.
_UNSUPPORTED_HEADERS: Final = ("crit", "b64", "zip", "enc")
#: The end of the year 9999.
_END_OF_TIME: Final = 253_402_300_800.0


class TokenClaims(Struct, frozen=True):
    """The checked claims of a token, and the key that it names."""

    algorithm: str
    key_id: str | None
    user: str
    #: The widest scope, or `None` if the token has none of Dittybag's scopes.
    scope: OAuthScope | None
    expires_at: float


def read(token: str, settings: OAuthSettings, now: float) -> TokenClaims:
    """Return the claims of a token after all checks except the signature. Raises `TokenRefused`."""
    # Exactly the three parts of a signed token: no spaces, no padding, no encrypted token with five parts.
    if not _COMPACT.fullmatch(token):
        raise TokenRefused("not a signed JWT in compact form")
    header, payload, signature = token.split(".")
    _decode_part(signature)
    headers = _parse_object(header)
    algorithm, key_id = _check_headers(headers, settings)
    claims = _parse_object(payload)
    _check_origin(claims, settings)
    return TokenClaims(
        algorithm=algorithm,
        key_id=key_id,
        user=_user(claims, settings.user_claim),
        scope=_scope(claims, settings.scope_prefix),
        expires_at=_expiry(claims, settings.leeway_seconds, now),
    )


def _check_headers(headers: dict[str, Any], settings: OAuthSettings) -> tuple[str, str | None]:
    # `jwk`, `jku`, `x5u` and `x5c` would let the token choose its own key, so they are ignored.
    if any(name in headers for name in _UNSUPPORTED_HEADERS):
        raise TokenRefused("it has an unsupported header (crit, b64, zip or enc)")
    kind = headers.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise TokenRefused("not an access token")
    algorithm = headers.get("alg")
    if not isinstance(algorithm, str) or algorithm not in settings.algorithms:
        raise TokenRefused("the algorithm (alg) is not allowed")
    key_id = headers.get("kid")
    if key_id is None and "kid" not in headers:
        return algorithm, None
    if not isinstance(key_id, str) or not 0 < len(key_id) <= MAX_KEY_ID_CHARACTERS:
        raise TokenRefused("the key id (kid) is not valid")
    return algorithm, key_id


def _check_origin(claims: dict[str, Any], settings: OAuthSettings) -> None:
    if claims.get("iss") != settings.issuer:
        raise TokenRefused("wrong issuer (iss)")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if not all(isinstance(value, str) for value in audiences) or settings.audience not in audiences:
        raise TokenRefused("wrong audience (aud)")
    # The client would have to prove that it holds a key, which is not checked here.
    if "cnf" in claims:
        raise TokenRefused("bound to a client key (cnf), which is not supported")


def _expiry(claims: dict[str, Any], leeway: int, now: float) -> float:
    expires_at = _timestamp(claims, "exp")
    if expires_at is None:
        raise TokenRefused("the expiry time (exp) is missing")
    if now >= expires_at + leeway:
        raise TokenRefused("expired")
    for name in ("nbf", "iat"):
        time = _timestamp(claims, name)
        if time is not None and time > now + leeway:
            raise TokenRefused("not valid yet")
    return expires_at


def _timestamp(claims: dict[str, Any], name: str) -> float | None:
    if name not in claims:
        return None
    value = claims[name]
    # `bool` is a subclass of `int`.
    if type(value) not in (int, float) or not 0 <= value < _END_OF_TIME:
        raise TokenRefused(f"{name} is not a valid time")
    return float(value)


def _user(claims: dict[str, Any], name: str) -> str:
    user = claims.get(name)
    if not isinstance(user, str) or not 0 < len(user) <= MAX_USER_CHARACTERS:
        raise TokenRefused("the user claim is missing or not valid")
    # No control characters, and no invisible ones that make two names look alike.
    if not user.isprintable() or user != user.strip():
        raise TokenRefused("the user name contains characters that are not allowed")
    # Anyone can claim an unverified address.
    if name == "email" and claims.get("email_verified", True) not in (True, "true"):
        raise TokenRefused("the email address of the user is not verified")
    return user


def _scope(claims: dict[str, Any], prefix: str) -> OAuthScope | None:
    scope, listed = claims.get("scope", ""), claims.get("scp", [])
    # Some issuers send the list as one string.
    listed = listed.split(" ") if isinstance(listed, str) else listed
    if not isinstance(scope, str) or not isinstance(listed, list):
        raise TokenRefused("the scopes (scope, scp) are malformed")
    if not all(isinstance(value, str) for value in listed):
        raise TokenRefused("the scopes (scope, scp) are malformed")
    granted = {*scope.split(" "), *listed}
    return next((name for name in _WIDEST_FIRST if prefix + name in granted), None)


def _parse_object(segment: str) -> dict[str, Any]:
    try:
        return json_object(_decode_part(segment))
    except ValueError:
        raise TokenRefused("a part is not a valid JSON object") from None


def _decode_part(segment: str) -> bytes:
    try:
        data = urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    except ValueError:
        raise TokenRefused("a part is not valid base64url") from None
    # The last character may have unused bits. Two spellings of the same bytes would be two tokens.
    if urlsafe_b64encode(data).rstrip(b"=") != segment.encode():
        raise TokenRefused("a part is not canonical base64url")
    return data
