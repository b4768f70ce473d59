"""The settings for verifying an issuer's tokens, and their validation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from dittybag.identity.identity_errors import OAuthMisconfigured
from dittybag.identity.url_rules import is_url, split_url

#: Algorithms with a public key. With a shared secret, every resource server could issue tokens.
ASYMMETRIC: Final = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
)
MAX_LEEWAY: Final = 300

_SCOPE_CHARACTERS: Final = re.compile(r"[!#-\[\]-~]*")


class OAuthSettings(Struct, frozen=True, kw_only=True):
    """Which tokens are trusted and which claims are read."""

    #: The exact value of `iss`.
    issuer: str
    #: The value that `aud` must be or contain.
    audience: str
    #: URL or file of the JWKS. If empty, it is read from the issuer's metadata.
    jwks: str = ""
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256", "ES384", "EdDSA")
    #: The claim that names the user.
    user_claim: str = "sub"
    #: The prefix of the scopes `read`, `write` and `admin`.
    scope_prefix: str = "dittybag:"
    #: Maximum clock difference between the issuer and this server.
    leeway_seconds: int = 30


def check(settings: OAuthSettings) -> None:
    """Raises `OAuthMisconfigured` if the settings are not valid or not safe."""
    if problem := next(_problems(settings), None):
        raise OAuthMisconfigured(problem)


def _problems(settings: OAuthSettings) -> Iterator[str]:
    if not settings.issuer:
        yield "OAuth needs an issuer: the value of 'iss' in its tokens"
    if not settings.audience:
        yield "OAuth needs an audience: the value for this server in 'aud'"
    try:
        if is_url(settings.jwks):
            split_url(settings.jwks)
        elif not settings.jwks:
            _check_issuer(settings.issuer)
    except ValueError as error:
        what = "JWKS URL" if settings.jwks else "issuer"
        yield f"The OAuth {what} is not valid: {error}"
    if not settings.algorithms:
        yield "OAuth needs at least one algorithm, such as RS256"
    for algorithm in settings.algorithms:
        if algorithm not in ASYMMETRIC:
            yield (
                f"The OAuth algorithm {algorithm[:20]!a} is not supported: "
                f"use one of {', '.join(sorted(ASYMMETRIC))}"
            )
    if not settings.user_claim:
        yield "OAuth needs the name of the claim that identifies the user, such as sub"
    if not _SCOPE_CHARACTERS.fullmatch(settings.scope_prefix):
        yield "The OAuth scope prefix must be ASCII without spaces, quotes and backslashes"
    if not 0 <= settings.leeway_seconds <= MAX_LEEWAY:
        yield f"The OAuth leeway must be from 0 to {MAX_LEEWAY} seconds"


def _check_issuer(issuer: str) -> None:
    split_url(issuer)
    if "?" in issuer:
        raise ValueError("the URL contains a query (?)")
