"""Opaque cursors for paged lists."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

from dittybag.protocol.wire_errors import InvalidParams

Position = str | int


def write(method: str, position: Position) -> str:
    """Return a cursor for the next page of `method`."""
    return urlsafe_b64encode(msgspec.json.encode([method, position])).rstrip(b"=").decode()


def read(method: str, cursor: object) -> Position | None:
    """Return the position in a cursor, or `None` for the first page.

    Raises `InvalidParams` for a cursor that was not issued for `method`.
    """
    if cursor is None:
        return None
    if not isinstance(cursor, str) or len(cursor) > 4096:
        raise InvalidParams("Invalid cursor: it must be the `nextCursor` of an earlier page")
    try:
        text = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        written_for, position = msgspec.json.decode(text, type=tuple[str, Position])
    except (ValueError, msgspec.MsgspecError):
        written_for, position = "", ""
    if written_for != method:
        raise InvalidParams("Invalid cursor: restart the list without a cursor")
    return position
