"""The exceptions of token verification.

TokenRefused                401, invalid_token
└── InsufficientScope       403, insufficient_scope
KeysUnavailable             503: the token cannot be verified now
OAuthMisconfigured          the settings are not valid
OAuthNotInstalled           PyJWT is not installed
FetchFailed                 a document cannot be fetched; callers of this package see KeysUnavailable
"""

from __future__ import annotations

from typing import ClassVar


class TokenRefused(Exception):
    """The token is not valid. The message is for the server log, not the client, and quotes no token."""

    status: ClassVar[int] = 401
    #: The error code in `WWW-Authenticate`.
    error: ClassVar[str] = "invalid_token"


class InsufficientScope(TokenRefused):
    """The token is valid but has none of the required scopes."""

    status = 403
    error = "insufficient_scope"


class KeysUnavailable(Exception):
    """The issuer's keys could not be fetched. A retry with the same token may succeed."""

    status: ClassVar[int] = 503


class OAuthMisconfigured(ValueError):
    """The settings are not valid. The message names the setting and the allowed values."""


class OAuthNotInstalled(ImportError):
    """PyJWT or cryptography is not installed. The message says how to install them."""


class FetchFailed(Exception):
    """A document does not exist, or cannot be fetched or used. The message says why."""
