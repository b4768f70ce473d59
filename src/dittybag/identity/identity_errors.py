"""What can go wrong between a token and the person it speaks for.

TokenRefused                401, invalid_token
└── InsufficientScope       403, insufficient_scope
KeysUnavailable             503: nobody can tell whether the token is good
OAuthMisconfigured          no verifier can be made of these settings
OAuthNotInstalled           no verifier can be made without PyJWT
Unreachable                 a document cannot be had; outside of this package that is KeysUnavailable
"""

from __future__ import annotations

from typing import ClassVar


class TokenRefused(Exception):
    """The token is not good. The message is for our own log, never for the client, and quotes nothing."""

    status: ClassVar[int] = 401
    #: What a challenge calls it.
    error: ClassVar[str] = "invalid_token"


class InsufficientScope(TokenRefused):
    """The token is good, but allows nothing here."""

    status = 403
    error = "insufficient_scope"


class KeysUnavailable(Exception):
    """The issuer's keys could not be fetched: the same token may be good in a moment."""

    status: ClassVar[int] = 503


class OAuthMisconfigured(ValueError):
    """The settings make no sense; the message says which, and what would."""


class OAuthNotInstalled(ImportError):
    """What verifies signatures is not installed; the message says what to do."""


class FetchFailed(Exception):
    """There is no such document, or it cannot be had or used; the message says why."""
