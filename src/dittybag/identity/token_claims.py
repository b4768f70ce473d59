"""What a token says, before anybody knows whether it is true."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from dittybag.identity.identity_errors import TokenRefused
from dittybag.identity.oauth_settings import OAuthSettings
from dittybag.identity.strict_json import json_object

MOST_USER_CHARACTERS: Final = 200
MOST_KEY_ID_CHARACTERS: Final = 200

Scope: TypeAlias = Literal["read", "write", "admin"]

_WIDEST_FIRST: Final[tuple[Scope, ...]] = ("admin", "write", "read")
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
#: Access tokens, and what calls itself nothing more than a token. Others are for other ends (RFC 8725, 3.11).
_TYPES: Final = ("jwt", "at+jwt", "application/at+jwt")
#: Headers that change what the rest means: none is understood here, so none is passed over.
_MEANINGFUL_HEADERS: Final = ("crit", "b64", "zip", "enc")
#: The end of the year 9999.
_END_OF_TIME: Final = 253_402_300_800.0


class TokenClaims(Struct, frozen=True):
    """Who a token says it is for, and which key it says to be signed with."""

    algorithm: str
    key_id: str | None
    user: str
    #: The widest it asks for; nothing if there is none of ours.
    scope: Scope | None
    expires_at: float


def read(token: str, settings: OAuthSettings, now: float) -> TokenClaims:
    """What a token says; all of it but the signature is checked. Raises `TokenRefused`."""
    # Nothing but the three parts of a signed token: no blanks, no padding, no five parts of an encrypted one.
    if not _COMPACT.fullmatch(token):
        raise TokenRefused("it is not made like a signed token")
    header, payload, signature = token.split(".")
    _decoded(signature)
    headers = _object(header)
    algorithm, key_id = _checked_headers(headers, settings)
    claims = _object(payload)
    _check_origin(claims, settings)
    return TokenClaims(
        algorithm=algorithm,
        key_id=key_id,
        user=_user(claims, settings.user_claim),
        scope=_scope(claims, settings.scope_prefix),
        expires_at=_expiry(claims, settings.leeway_seconds, now),
    )


def _checked_headers(headers: dict[str, Any], settings: OAuthSettings) -> tuple[str, str | None]:
    # `jwk`, `jku`, `x5u` and `x5c` would let the token choose its own key: nothing looks at them.
    if any(name in headers for name in _MEANINGFUL_HEADERS):
        raise TokenRefused("it has a header that is not understood")
    kind = headers.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise TokenRefused("it is not an access token")
    algorithm = headers.get("alg")
    if not isinstance(algorithm, str) or algorithm not in settings.algorithms:
        raise TokenRefused("its algorithm is not allowed")
    key_id = headers.get("kid")
    if key_id is None and "kid" not in headers:
        return algorithm, None
    if not isinstance(key_id, str) or not 0 < len(key_id) <= MOST_KEY_ID_CHARACTERS:
        raise TokenRefused("the id of its key is not one")
    return algorithm, key_id


def _check_origin(claims: dict[str, Any], settings: OAuthSettings) -> None:
    if claims.get("iss") != settings.issuer:
        raise TokenRefused("it is from another issuer")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if not all(isinstance(one, str) for one in audiences) or settings.audience not in audiences:
        raise TokenRefused("it is for another audience")
    # Whoever shows it would have to prove that a certain key is theirs, which a mere bearer does not.
    if "cnf" in claims:
        raise TokenRefused("it is bound to a key of the client")


def _expiry(claims: dict[str, Any], leeway: int, now: float) -> float:
    expires_at = _moment(claims, "exp")
    if expires_at is None:
        raise TokenRefused("it does not say when it expires")
    if now >= expires_at + leeway:
        raise TokenRefused("it has expired")
    for name in ("nbf", "iat"):
        moment = _moment(claims, name)
        if moment is not None and moment > now + leeway:
            raise TokenRefused("it is not valid yet")
    return expires_at


def _moment(claims: dict[str, Any], name: str) -> float | None:
    if name not in claims:
        return None
    value = claims[name]
    # A bool is an int to Python.
    if type(value) not in (int, float) or not 0 <= value < _END_OF_TIME:
        raise TokenRefused("one of its times is not a time")
    return float(value)


def _user(claims: dict[str, Any], name: str) -> str:
    user = claims.get(name)
    if not isinstance(user, str) or not 0 < len(user) <= MOST_USER_CHARACTERS:
        raise TokenRefused("it does not say who the user is")
    # Nothing invisible: neither control characters nor what makes two names look alike.
    if not user.isprintable() or user != user.strip():
        raise TokenRefused("the name of its user has characters in it that are not allowed")
    # Anybody can claim an address that nobody has checked.
    if name == "email" and claims.get("email_verified", True) not in (True, "true"):
        raise TokenRefused("the address of its user is not verified")
    return user


def _scope(claims: dict[str, Any], prefix: str) -> Scope | None:
    scope, listed = claims.get("scope", ""), claims.get("scp", [])
    # Some issuers write the list as a text, too.
    listed = listed.split(" ") if isinstance(listed, str) else listed
    if not isinstance(scope, str) or not isinstance(listed, list):
        raise TokenRefused("its scopes are not scopes")
    if not all(isinstance(one, str) for one in listed):
        raise TokenRefused("its scopes are not scopes")
    granted = {*scope.split(" "), *listed}
    return next((one for one in _WIDEST_FIRST if prefix + one in granted), None)


def _object(segment: str) -> dict[str, Any]:
    try:
        return json_object(_decoded(segment))
    except ValueError:
        raise TokenRefused("a part of it is not a JSON object") from None


def _decoded(segment: str) -> bytes:
    try:
        data = urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    except ValueError:
        raise TokenRefused("a part of it is not base64url") from None
    # The last character may have bits to spare; two texts for the same bytes would be two tokens.
    if urlsafe_b64encode(data).rstrip(b"=") != segment.encode():
        raise TokenRefused("a part of it is not base64url as it should be")
    return data
