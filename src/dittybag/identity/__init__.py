"""Who is calling: an OAuth 2.1 resource server that trusts the tokens of one issuer.

It imports nothing of Dittybag outside this package, and PyJWT only when a verifier is made.
"""

from dittybag.identity.challenges import challenge, metadata_url, protected_resource_metadata
from dittybag.identity.identity_errors import (
    InsufficientScope,
    KeysUnavailable,
    OAuthMisconfigured,
    OAuthNotInstalled,
    TokenRefused,
)
from dittybag.identity.oauth_settings import OAuthSettings
from dittybag.identity.token_verifier import Identity, OAuthVerifier

__all__ = [
    "Identity",
    "InsufficientScope",
    "KeysUnavailable",
    "OAuthMisconfigured",
    "OAuthNotInstalled",
    "OAuthSettings",
    "OAuthVerifier",
    "TokenRefused",
    "challenge",
    "metadata_url",
    "protected_resource_metadata",
]
