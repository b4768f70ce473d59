"""Idempotency keys and the stored results of the calls that used them."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from dittybag.domain.errors import Invalid, Problem

#: How long a key is stored, in microseconds.
RETENTION: Final = 24 * 3600 * 1_000_000
#: Larger results are not stored.
MAX_RESULT_BYTES: Final = 1024 * 1024

_KEY: Final = r"[!-~]{1,128}"


class StoredResult(Struct, frozen=True, kw_only=True):
    """The record of an executed call with an idempotency key."""

    #: Hash of the request.
    digest: bytes
    #: When it was executed, in microseconds since 1970.
    at: int
    #: The `seq` of its first and last change; `None` if it made none.
    first: int | None
    last: int | None
    #: `None` if it is not known yet, was lost or is too large; empty if it was cleared by a purge.
    result: bytes | None

    def is_valid(self, now: int) -> bool:
        return self.at > now - RETENTION


def checked_key(key: object) -> str:
    """Return `key`. Raises `Invalid` if it is not a valid idempotency key."""
    if isinstance(key, str) and re.fullmatch(_KEY, key):
        return key
    problem = "An idempotency key must be 1-128 visible ASCII characters, without spaces"
    raise Invalid([Problem("idempotencyKey", problem)])
