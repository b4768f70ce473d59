"""Who is calling: an OAuth 2.1 resource server that trusts the tokens of one issuer.

It imports nothing of Satchel outside this package, and PyJWT only when a verifier is made.
"""

from satchel.identity.challenges import challenge, metadata_url, protected_resource_metadata
from satchel.identity.errors import (
    InsufficientScope,
    KeysUnavailable,
    OAuthMisconfigured,
    OAuthNotInstalled,
    TokenRefused,
)
from satchel.identity.settings import OAuthSettings
from satchel.identity.verifier import Identity, Verifier

__all__ = [
    "Identity",
    "InsufficientScope",
    "KeysUnavailable",
    "OAuthMisconfigured",
    "OAuthNotInstalled",
    "OAuthSettings",
    "TokenRefused",
    "Verifier",
    "challenge",
    "metadata_url",
    "protected_resource_metadata",
]
