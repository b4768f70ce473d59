"""What has to be known of an issuer to trust its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from dittybag.identity.identity_errors import OAuthMisconfigured
from dittybag.identity.url_rules import is_url, split_url

#: Those that are verified with a public key. A shared secret would let every resource server make tokens.
ASYMMETRIC: Final = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
)
MOST_LEEWAY: Final = 300

_SCOPE_CHARACTERS: Final = re.compile(r"[!#-\[\]-~]*")


class OAuthSettings(Struct, frozen=True, kw_only=True):
    """Whose tokens are trusted, and what is read from them."""

    #: What `iss` must be, to the letter.
    issuer: str
    #: What must be among `aud`.
    audience: str
    #: Where the keys are: an address, or a file. Nothing: where the issuer's metadata says.
    jwks: str = ""
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256", "ES384", "EdDSA")
    #: The claim that says who the user is.
    user_claim: str = "sub"
    #: What stands before `read`, `write` and `admin` in the names of scopes.
    scope_prefix: str = "dittybag:"
    #: How far the issuer's clock and ours may be apart.
    leeway_seconds: int = 30


def check(settings: OAuthSettings) -> None:
    """Raises `OAuthMisconfigured` if no token should be trusted on the strength of these settings."""
    if problem := next(_problems(settings), None):
        raise OAuthMisconfigured(problem)


def _problems(settings: OAuthSettings) -> Iterator[str]:
    if not settings.issuer:
        yield "OAuth needs an issuer: the text that its tokens have as 'iss'"
    if not settings.audience:
        yield "OAuth needs an audience: the text that stands for this server in 'aud'"
    try:
        if is_url(settings.jwks):
            split_url(settings.jwks)
        elif not settings.jwks:
            _check_issuer(settings.issuer)
    except ValueError as error:
        what = "address of the keys (JWKS)" if settings.jwks else "issuer"
        yield f"The OAuth {what} cannot be used: {error}"
    if not settings.algorithms:
        yield "OAuth needs at least one algorithm, such as RS256"
    for algorithm in settings.algorithms:
        if algorithm not in ASYMMETRIC:
            yield (
                f"OAuth tokens cannot be verified with {algorithm[:20]!a}: only public keys are used "
                f"({', '.join(sorted(ASYMMETRIC))})"
            )
    if not settings.user_claim:
        yield "OAuth needs the name of the claim that says who the user is, such as sub"
    if not _SCOPE_CHARACTERS.fullmatch(settings.scope_prefix):
        yield "The prefix of OAuth scopes may have no blanks, quotes, backslashes or letters beyond ASCII"
    if not 0 <= settings.leeway_seconds <= MOST_LEEWAY:
        yield f"The leeway for OAuth tokens must be 0 to {MOST_LEEWAY} seconds"


def _check_issuer(issuer: str) -> None:
    split_url(issuer)
    if "?" in issuer:
        raise ValueError("the address has a query (?) in it")
