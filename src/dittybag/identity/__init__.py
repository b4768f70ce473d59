"""An OAuth 2.1 resource server that verifies the access tokens of one issuer.

The package imports nothing else of Dittybag but `dittybag.files`, and imports PyJWT only when an
`OAuthVerifier` is created.
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
