"""Results that fit: the size of a result in tokens, lists cut to what fits, and texts in pieces.

A token is estimated as four characters of the JSON of the whole result: clients and models count differently,
and this is near enough. Lists send their rows twice, as text for clients that read only `content`, and as
`structuredContent` for those that read only that; both count. The data of images and audio does not count:
models see it in another way, and it has limits of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final, TypeVar

from msgspec import Meta
from msgspec.structs import replace

from dittybag.contracts.tool_specs import json_result
from dittybag.domain.errors import Problem, require
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.types import Audio, Image, JsonObject, ToolResult

T = TypeVar("T")

#: Maximum size of a result, unless the caller says otherwise.
MAX_TOKENS: Final = 8_000
CHARACTERS_PER_TOKEN: Final = 4
#: What a caller can choose as the maximum size: room for the shortest description, and what clients accept.
TokenLimit = Annotated[int, Meta(ge=1000, le=100_000)]
LONGEST_RESULT: Final = 100_000 * CHARACTERS_PER_TOKEN

#: The members around the rows of a list: totals, and how to go on.
_ROOM_AROUND_ROWS: Final = 2_000
#: A piece of text ends at most this many characters earlier to keep combined characters together.
_MAX_BACK: Final = 32


def count_tokens(result: ToolResult) -> int:
    """Return the size of a result."""
    content = tuple(
        replace(block, data=b"") if isinstance(block, Image | Audio) else block for block in result.content
    )
    return -(-len(encode(replace(result, content=content)).decode()) // CHARACTERS_PER_TOKEN)


def json_length(value: object) -> int:
    """Return the number of characters of a value in JSON."""
    return len(encode(value).decode())


def text_length(value: object) -> int:
    """Return the number of characters of a value as JSON in a text block, which is JSON again."""
    return json_length(encode(value).decode())


def list_result(
    name: str, rows: Sequence[JsonObject], describe: Callable[[int], JsonObject], max_tokens: int = MAX_TOKENS
) -> ToolResult:
    """Return as many rows as fit. `describe`: the other members of the result for a number of rows."""
    room = max_tokens * CHARACTERS_PER_TOKEN - _ROOM_AROUND_ROWS
    shown = 0
    for row in rows:
        room -= json_length(row) + text_length(row)
        if room < 0:
            break
        shown += 1
    return json_result({name: list(rows[:shown]), **describe(shown)})


def rest_of(total: int, offset: int, shown: int) -> JsonObject:
    """Return the members that say how to get the rest of a list."""
    following = offset + shown
    if following >= total:
        return {}
    return {"more": f"{total - following} more; offset={following}", "next_offset": following}


def take_fitting(items: Sequence[T], room: int) -> list[T]:
    """Return the first items that have together at most `room` characters in a text block."""
    taken: list[T] = []
    for item in items:
        room -= text_length(item) + 1
        if room < 0:
            break
        taken.append(item)
    return taken


def piece_members(offset: int, end: int, total: int, unit: str = "characters") -> JsonObject:
    """Return the members of a result that say which piece it has, and how to get the next one."""
    members: JsonObject = {unit: total}
    if offset > 0 or end < total:
        members["offset"] = offset
    if end < total:
        members |= {"next_offset": end, "more": f"{total - end} more {unit}; offset={end}"}
    return members


def text_piece(text: str, offset: int, room: int, measure: Callable[[str], int] = json_length) -> str:
    """Return the piece of a text from `offset` on that needs at most `room` characters.

    `measure`: how many a text needs. A piece has at least one character.
    """
    end = _end_of_piece(text, offset, max(room, 1), measure)
    return text[offset:end]


def require_offset(offset: int, total: int) -> None:
    """Raise `Invalid` for an offset after the end."""
    if offset > total:
        require([Problem("offset", f"offset must be at most {total}, the length of the content")])


def _end_of_piece(text: str, start: int, room: int, measure: Callable[[str], int]) -> int:
    fits, end = start, min(len(text), start + room)
    if measure(text[start:end]) <= room:
        fits = end
    while fits < end:
        middle = (fits + end + 1) // 2
        if measure(text[start:middle]) <= room:
            fits = middle
        else:
            end = middle - 1
    if end == len(text):
        return end
    for candidate in range(end, max(end - _MAX_BACK, start), -1):
        if not _joins(text[candidate - 1], text[candidate]):
            return candidate
    # At least one character, so that a reader who follows the offsets arrives at the end.
    return max(end, start + 1)


def _joins(before: str, after: str) -> bool:
    """Whether two characters look like one."""
    # Imported here because few texts are read in pieces.
    from unicodedata import category

    if after.isascii():
        return before == "\r" and after == "\n"
    # Marks, variation selectors and skin tones follow their base; a zero-width joiner joins both sides; two
    # regional indicators are a flag.
    return (
        _JOINER in (before, after)
        or category(after) in ("Mn", "Mc", "Me")
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or ("\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= after <= "\U0001f1ff")
    )


_JOINER: Final = "\u200d"
