"""Calls that are carried out once and answered as often as they come, because they come with a key."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from dittybag.domain.errors import Problem, require

#: In microseconds: so long is a key remembered.
RETENTION: Final = 24 * 3600 * 1_000_000
#: A longer answer is not kept.
MAX_RESULT_BYTES: Final = 1024 * 1024

_KEY: Final = re.compile(r"[!-~]{1,128}")


class StoredResult(Struct, frozen=True, kw_only=True):
    """What is known of a call that has been carried out."""

    #: Of what was asked.
    digest: bytes
    #: When, in microseconds since 1970.
    at: int
    #: Its changes in the log; nothing if it changed nothing.
    first: int | None
    last: int | None
    #: Nothing if it is not known yet, was lost or is too long.
    result: bytes | None

    def is_valid(self, now: int) -> bool:
        return self.at > now - RETENTION


def checked_key(key: object) -> str:
    """Raises `Invalid` unless `key` may be the key of a call."""
    if isinstance(key, str) and _KEY.fullmatch(key):
        return key
    problem = "An idempotency key has 1-128 visible characters of ASCII, and no spaces"
    require([Problem("idempotencyKey", problem)])
    raise AssertionError("there is a problem")
