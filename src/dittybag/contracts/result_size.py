"""Results that fit: lists cut to what fits into a number of tokens, and texts in pieces.

Tokens are those that `dittybag.domain.token_estimate` finds in the text of a result. The structured content
says the same again, for clients that read only that. The data of images and audio does not count: models see
it in another way, and it has limits of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final, TypeVar

from msgspec import Meta

from dittybag.contracts.tool_specs import json_result
from dittybag.domain.errors import Problem, require
from dittybag.domain.token_estimate import estimate_tokens, fits_into
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.types import JsonObject, ToolResult

T = TypeVar("T")

#: Maximum size of a result, unless the caller says otherwise.
MAX_TOKENS: Final = 8_000
#: What a caller can choose as the maximum size: room for the shortest description, and what clients accept.
TokenLimit = Annotated[int, Meta(ge=1000, le=100_000)]
#: A piece of text has at most this many characters for each token, so that clients accept it.
_CHARACTERS: Final = 4
LONGEST_RESULT: Final = 100_000 * _CHARACTERS

#: The tokens of the members around the rows of a list: totals, and how to go on.
_ROOM_AROUND_ROWS: Final = 300
#: A piece of text ends at most this many characters earlier to keep combined characters together.
_MAX_BACK: Final = 32


def json_tokens(value: object) -> int:
    """Return the number of tokens of a value in JSON."""
    return estimate_tokens(encode(value).decode())


def json_fits(value: object, room: int) -> bool:
    """Return whether a value has at most `room` tokens in JSON."""
    return fits_into(encode(value).decode(), room)


def list_result(
    name: str, rows: Sequence[JsonObject], describe: Callable[[int], JsonObject], max_tokens: int = MAX_TOKENS
) -> ToolResult:
    """Return as many rows as fit. `describe`: the other members of the result for a number of rows."""
    shown = take_fitting(rows, max_tokens - _ROOM_AROUND_ROWS)
    return json_result({name: shown, **describe(len(shown))})


def rest_of(total: int, offset: int, shown: int) -> JsonObject:
    """Return the members that say how to get the rest of a list."""
    following = offset + shown
    if following >= total:
        return {}
    return {"more": f"{total - following} more; offset={following}", "next_offset": following}


def take_fitting(items: Sequence[T], room: int) -> list[T]:
    """Return the first items that have together at most `room` tokens in JSON."""
    sizes = [len(encode(item)) + 1 for item in items]
    if sum(sizes) <= room:
        # No text has more tokens than bytes.
        return list(items)
    taken: list[T] = []
    for item in items:
        room -= json_tokens(item) + 1
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


def text_piece(text: str, offset: int, room: int, fits: Callable[[str, int], bool] = json_fits) -> str:
    """Return the piece of a text from `offset` on that has at most `room` tokens.

    `fits`: whether a text does. A piece has at least one character.
    """
    end = _end_of_piece(text, offset, max(room, 1), fits)
    return text[offset:end]


def require_offset(offset: int, total: int) -> None:
    """Raise `Invalid` for an offset after the end."""
    if offset > total:
        require([Problem("offset", f"offset must be at most {total}, the length of the content")])


def _end_of_piece(text: str, start: int, room: int, fits: Callable[[str, int], bool]) -> int:
    known, end = start, min(len(text), start + room * _CHARACTERS)
    if fits(text[start:end], room):
        known = end
    while known < end:
        middle = (known + end + 1) // 2
        if fits(text[start:middle], room):
            known = middle
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
