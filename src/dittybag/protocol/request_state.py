"""The authenticated state that a client carries between the rounds of one request.

It passes through the client, so it is bound by a keyed hash to the principal, to the very request it was
written for and to an expiry; anything else is refused.
"""

from __future__ import annotations

import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final

import msgspec
from msgspec import Struct

from dittybag.protocol.types import JsonObject
from dittybag.protocol.wire_errors import InvalidParams

#: How long a client may take for one round.
LIFETIME_SECONDS: Final = 15 * 60

_INVALID_STATE: Final = "Invalid requestState: it was changed, has expired or belongs to another request"
_UNSIGNED_PARAMS: Final = frozenset({"_meta", "inputResponses", "requestState"})


class _SealedState(Struct, frozen=True, array_like=True):
    principal_id: str
    request: str
    expires: int
    answers: JsonObject


class StateSealer:
    """Writes and reads request states with one secret key."""

    def __init__(self, key: bytes | None = None, lifetime_seconds: int = LIFETIME_SECONDS) -> None:
        """`key`: shared by all processes that may see the next round; at least 32 bytes, random if absent."""
        if key is not None and len(key) < 32:
            raise ValueError("the key for request states needs at least 32 bytes")
        self._key = key or os.urandom(32)
        self._lifetime = lifetime_seconds

    def seal(self, answers: JsonObject, *, principal_id: str, method: str, params: JsonObject) -> str:
        expires = int(time.time()) + self._lifetime
        state = _SealedState(principal_id, _digest(method, params), expires, answers)
        payload = msgspec.json.encode(state)
        return urlsafe_b64encode(self._sign(payload) + payload).decode()

    def open(self, sealed: Any, *, principal_id: str, method: str, params: JsonObject) -> JsonObject:
        """The answers of earlier rounds. Raises `InvalidParams` for anything that `seal` did not write."""
        import hmac

        if not isinstance(sealed, str):
            raise InvalidParams(_INVALID_STATE)
        try:
            raw = urlsafe_b64decode(sealed)
        except ValueError:
            raise InvalidParams(_INVALID_STATE) from None
        signature, payload = raw[:32], raw[32:]
        # Base64 has several spellings of the same bytes; only ours is ours.
        genuine = urlsafe_b64encode(raw).decode() == sealed
        if not genuine or not hmac.compare_digest(signature, self._sign(payload)):
            raise InvalidParams(_INVALID_STATE)
        state = msgspec.json.decode(payload, type=_SealedState)
        if (
            state.principal_id != principal_id
            or state.request != _digest(method, params)
            or state.expires < time.time()
        ):
            raise InvalidParams(_INVALID_STATE)
        return state.answers

    def _sign(self, payload: bytes) -> bytes:
        # Loads OpenSSL, which most servers never need.
        import hmac

        return hmac.digest(self._key, payload, "sha256")


def _digest(method: str, params: JsonObject) -> str:
    import hashlib

    bound = {key: value for key, value in params.items() if key not in _UNSIGNED_PARAMS}
    text = msgspec.json.encode([method, bound], order="deterministic")
    return hashlib.sha256(text).hexdigest()
