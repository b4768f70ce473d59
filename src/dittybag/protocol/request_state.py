"""The signed state that a client carries between the rounds of one request.

The state passes through the client. A keyed hash binds it to the principal, the request and an expiry time;
any other state is refused.
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

#: The maximum duration of one round.
LIFETIME_SECONDS: Final = 15 * 60

_INVALID_STATE: Final = "Invalid `requestState`: it was modified, has expired, or belongs to another request"
_UNSIGNED_PARAMS: Final = frozenset({"_meta", "inputResponses", "requestState"})


class _SealedState(Struct, frozen=True, array_like=True):
    principal_id: str
    request: str
    expires: int
    answers: JsonObject


class StateSealer:
    """Signs and verifies request states with a secret key."""

    def __init__(self, key: bytes | None = None, lifetime_seconds: int = LIFETIME_SECONDS) -> None:
        """`key`: at least 32 bytes, shared by all processes behind one address; random by default."""
        if key is not None and len(key) < 32:
            raise ValueError("the key for request states must have at least 32 bytes")
        self._key = key or os.urandom(32)
        self._lifetime = lifetime_seconds

    def seal(self, answers: JsonObject, *, principal_id: str, method: str, params: JsonObject) -> str:
        expires = int(time.time()) + self._lifetime
        state = _SealedState(principal_id, _digest(method, params), expires, answers)
        payload = msgspec.json.encode(state)
        return urlsafe_b64encode(self._sign(payload) + payload).decode()

    def open(self, sealed: Any, *, principal_id: str, method: str, params: JsonObject) -> JsonObject:
        """Return the answers of earlier rounds. Raises `InvalidParams` for a state that is not valid."""
        import hmac

        if not isinstance(sealed, str):
            raise InvalidParams(_INVALID_STATE)
        try:
            raw = urlsafe_b64decode(sealed)
        except ValueError:
            raise InvalidParams(_INVALID_STATE) from None
        signature, payload = raw[:32], raw[32:]
        # Base64 has several encodings of the same bytes. Accept only the canonical one.
        is_canonical = urlsafe_b64encode(raw).decode() == sealed
        if not is_canonical or not hmac.compare_digest(signature, self._sign(payload)):
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
        # Imported on first use: it loads OpenSSL, which most servers never need.
        import hmac

        return hmac.digest(self._key, payload, "sha256")


def _digest(method: str, params: JsonObject) -> str:
    import hashlib

    bound = {key: value for key, value in params.items() if key not in _UNSIGNED_PARAMS}
    text = msgspec.json.encode([method, bound], order="deterministic")
    return hashlib.sha256(text).hexdigest()
