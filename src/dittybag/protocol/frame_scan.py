"""A scan of long JSON texts before they are decoded, which bounds the cost of decoding and checking them.

Decoding runs in one piece and holds the interpreter lock, in any thread. The scan runs in short steps.
"""

from __future__ import annotations

from typing import Final

from dittybag.protocol.wire_errors import InvalidRequest

#: Texts up to this length are not scanned: whatever they contain is decoded soon enough.
SHORT_BYTES: Final = 8 * 1024
MAX_VALUES: Final = 15_000
#: Maximum number of numbers that have an exponent or many digits, which take up to 10 microseconds each.
MAX_SLOW_NUMBERS: Final = 2_000
_MANY_DIGITS: Final = 25
#: Maximum length of a number in characters.
MAX_NUMBER: Final = 500

#: The number of bytes scanned in one step.
_STEP_BYTES: Final = 512 * 1024
#: Each of them begins or separates a value.
_SEPARATORS: Final = b",[{:"
#: Replaces everything that is not part of a number with a space, and `E` with `e`.
_ONLY_NUMBERS: Final = bytes(
    byte if byte in b"0123456789+-.e" else ord("e" if byte == ord("E") else " ") for byte in range(256)
)


def scan(text: bytes) -> int:
    """Return the number of object keys in a JSON text. Raises `InvalidRequest` if it exceeds a limit.

    If the text is not valid JSON, the number is right up to the first error.
    """
    keys = separators = quotes = slow = start = 0
    while start < len(text):
        end = _end_of_step(text, start)
        step = text[start:end]
        start = end
        if b"\\" in step:
            step = step.replace(b"\\\\", b"").replace(b'\\"', b"")
        # The parts of the text are alternately outside and inside of strings.
        is_inside = quotes % 2
        quotes += len(step) - len(step.translate(None, b'"'))
        # A member of an object has at most four quotes and two separators.
        _require_few(quotes // 4)
        outside = b" ".join(step.split(b'"')[is_inside::2])
        separators += len(outside) - len(outside.translate(None, _SEPARATORS))
        _require_few(separators // 2)
        keys += outside.count(b":")
        numbers = outside.translate(_ONLY_NUMBERS).split()
        if max(map(len, numbers), default=0) > MAX_NUMBER:
            raise InvalidRequest(f"Invalid Request: a number must have at most {MAX_NUMBER} characters")
        # The letter alone is a part of `true` or `false`.
        slow += sum(len(number) > _MANY_DIGITS or b"e" in number for number in numbers if len(number) > 1)
        if slow > MAX_SLOW_NUMBERS:
            raise InvalidRequest(
                f"Invalid Request: at most {MAX_SLOW_NUMBERS} numbers may have an exponent or more than "
                f"{_MANY_DIGITS} characters"
            )
    return keys


def _end_of_step(text: bytes, start: int) -> int:
    """Return where a step ends: not between a backslash and the character that it escapes."""
    end = start + _STEP_BYTES
    step = text[start:end]
    backslashes = len(step) - len(step.rstrip(b"\\"))
    return end + backslashes % 2


def _require_few(values: int) -> None:
    if values > MAX_VALUES:
        raise InvalidRequest(f"Invalid Request: a message must have at most {MAX_VALUES} values")
