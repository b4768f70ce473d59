"""The estimate of how many tokens a text has for a language model: one for the whole product.

Models have different tokenizers, most of which are not public. The estimate counts kinds of characters, and
is rather too high than too low: a budget then holds for most models. It is no bound.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_WORD: Final = re.compile("[A-Za-z0-9]+")
#: The parts of a word of several, as in `getUserName`.
_PART: Final = re.compile("[A-Z]?[a-z]+|[A-Z]+")
#: A space that is one token with what follows it.
_JOINED_SPACE: Final = re.compile(r"(?<! ) (?=[A-Za-z\"'`(\[{<]|[^\x00-\x7f])")
_SPACES: Final = re.compile("  +")
#: A token stands for this many spaces in a row.
_SPACES_PER_TOKEN: Final = 8
#: Longer rows of letters are hardly words.
_LONGEST_WORD: Final = 11
_LONGEST_CAPITALS: Final = 7


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has, rather too many than too few."""
    words = _WORD.findall(text)
    # A sign or a line break is a token.
    total = len(text) - sum(map(len, words)) - len(_JOINED_SPACE.findall(text)) + sum(map(_of_word, words))
    total -= sum(len(spaces) - 1 - len(spaces) // _SPACES_PER_TOKEN for spaces in _SPACES.findall(text))
    if not text.isascii():
        # Four bytes of other letters and signs are three tokens.
        foreign = len(text) - len(text.encode("ascii", "ignore"))
        size = len(text.encode("utf-8", "replace")) - len(text) + foreign
        total += -(-3 * size // 4) - foreign
    return total


def fits_into(text: str, room: int) -> bool:
    """Return whether a text has about `room` tokens at most. It has no more than bytes, which count first."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return size <= room or estimate_tokens(text) <= room


@lru_cache(16_384)
def _of_word(word: str) -> int:
    if not word.isalpha():
        # Some models read digits one by one; base64 and hexadecimal numbers have hardly any longer tokens.
        return len(word)
    return sum(map(_of_part, _PART.findall(word)))


def _of_part(letters: str) -> int:
    length = len(letters)
    if letters.isupper():
        return (length + 1) // 2 if length <= _LONGEST_CAPITALS else length * 3 // 4
    return max(1, length // 2 if length <= _LONGEST_WORD else length * 2 // 3) if length > 4 else 1
