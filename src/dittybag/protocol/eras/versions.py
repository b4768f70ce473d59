"""The version strings of the protocol revisions, oldest first."""

from __future__ import annotations

from typing import Final

V2024_11_05: Final = "2024-11-05"
V2025_03_26: Final = "2025-03-26"
V2025_06_18: Final = "2025-06-18"
V2025_11_25: Final = "2025-11-25"
V2026_07_28: Final = "2026-07-28"

#: Revisions that a client opens with `initialize`.
HANDSHAKE_VERSIONS: Final = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25)

#: Revisions in which every request carries its own version in `_meta`.
STATELESS_VERSIONS: Final = (V2026_07_28,)

VERSIONS: Final = HANDSHAKE_VERSIONS + STATELESS_VERSIONS

NEWEST_HANDSHAKE: Final = HANDSHAKE_VERSIONS[-1]


def versions_between(since: str = VERSIONS[0], until: str = VERSIONS[-1]) -> tuple[str, ...]:
    """Return the versions from `since` to `until`, inclusive."""
    return VERSIONS[VERSIONS.index(since) : VERSIONS.index(until) + 1]
