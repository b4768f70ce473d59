"""Authentication with access tokens of an OAuth issuer."""

from __future__ import annotations

import logging
import time
from typing import Final

from dittybag.config import OAuth, SettingsError
from dittybag.domain.accounts import Principal
from dittybag.domain.errors import DittybagError
from dittybag.http.asgi_messages import HttpError
from dittybag.identity.challenges import challenge, metadata_url, protected_resource_metadata
from dittybag.identity.identity_errors import (
    InsufficientScope,
    KeysUnavailable,
    OAuthMisconfigured,
    OAuthNotInstalled,
    TokenRefused,
)
from dittybag.identity.oauth_settings import OAuthSettings
from dittybag.identity.token_verifier import OAuthVerifier
from dittybag.protocol.wire_errors import InternalError, InvalidRequest
from dittybag.services.account_service import AccountService

_log = logging.getLogger("dittybag")

#: Anybody can send refused tokens, so each reason is logged at most once in this time.
_LOG_SECONDS: Final = 60.0

_SCOPES = ("dittybag:read", "dittybag:write", "dittybag:admin")


class OAuthAuthenticator:
    """Verifies OAuth access tokens. See `dittybag.http.authentication.TokenVerifier`."""

    def __init__(self, settings: OAuth, accounts: AccountService, project: int) -> None:
        """Raises `SettingsError`."""
        try:
            self._verifier = OAuthVerifier(
                OAuthSettings(issuer=settings.issuer, audience=settings.audience, jwks=settings.jwks)
            )
        except (OAuthMisconfigured, OAuthNotInstalled) as error:
            raise SettingsError(str(error)) from error
        self._accounts = accounts
        self._project = project
        self._issuer = settings.issuer
        self._refusals = _RefusalLog()
        #: The URL of this server if the audience is one; then clients can find the issuer.
        self._resource = settings.audience if "://" in settings.audience else None

    async def verify(self, text: str) -> Principal | None:
        try:
            identity = await self._verifier.verify(text)
        except InsufficientScope as error:
            self._refusals.add(str(error))
            header = (b"www-authenticate", self.challenge("insufficient_scope", " ".join(_SCOPES)))
            message = f"This token needs one of the scopes {', '.join(_SCOPES)}"
            raise HttpError(403, InvalidRequest(message), headers=[header]) from error
        except TokenRefused as error:
            self._refusals.add(str(error))
            return None
        except KeysUnavailable as error:
            self._refusals.add("the keys of the issuer are unavailable", f" ({error})")
            message = "The keys to verify this token are unavailable. Retry in a moment"
            raise HttpError(503, InternalError(message), headers=[(b"retry-after", b"2")]) from error
        try:
            user = identity.user
            principal = await self._accounts.external_principal(user, identity.scope, self._project)
        except DittybagError as error:
            raise HttpError(503, InternalError(str(error)), headers=[(b"retry-after", b"1")]) from error
        if principal is None:
            self._refusals.add("its user is disabled")
        return principal

    def challenge(self, error: str | None, scope: str | None) -> bytes:
        """The `WWW-Authenticate` header for a request without a valid token."""
        url = None if self._resource is None else metadata_url(self._resource)
        return challenge(metadata_url=url, error=error, scope=scope)

    @property
    def metadata(self) -> bytes:
        """The protected resource metadata of this server (RFC 9728)."""
        return protected_resource_metadata(self._resource or "", [self._issuer], _SCOPES)

    async def close(self) -> None:
        await self._verifier.close()


class _RefusalLog:
    """Logs why tokens are refused, without the tokens."""

    def __init__(self) -> None:
        #: By reason: until when it is not logged, and how often it was not.
        self._silent: dict[str, tuple[float, int]] = {}

    def add(self, reason: str, detail: str = "") -> None:
        """Log a refusal. `reason` is one of a fixed set of texts."""
        now = time.monotonic()
        until, count = self._silent.get(reason, (0.0, 0))
        if now < until:
            self._silent[reason] = (until, count + 1)
            return
        self._silent[reason] = (now + _LOG_SECONDS, 0)
        more = f"; {count} more since this was last logged" if count else ""
        _log.warning("an OAuth token was refused: %s%s%s", reason, detail, more)
