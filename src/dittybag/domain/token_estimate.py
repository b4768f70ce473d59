"""Estimates how many tokens a text has for a language model: never too few, whichever model reads it.

Models have different tokenizers, most of which are not public. The estimate is an upper bound for the public
ones that `tests/tokens/` measures, on texts of all kinds. It follows how they work: they split a text into
words, numbers, signs and spaces, and each of these into pieces of a vocabulary.

- A word of ASCII letters is cut into the longest pieces that all vocabularies have. Tokenizers may choose
  other pieces, so a word of several pieces counts for more than their number.
- A digit, a sign or a line break counts as one token. So does a space, unless a word follows it.
- A letter or sign beyond ASCII counts as its bytes in UTF-8, which no tokenizer exceeds, unless all
  vocabularies have it as one token.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from unicodedata import normalize

from dittybag.domain.token_pieces import PIECES, SINGLE_LETTERS

_PIECES: Final = frozenset(PIECES.split())
_LONGEST_PIECE: Final = max(map(len, _PIECES))
_SINGLE_LETTERS: Final = frozenset(SINGLE_LETTERS)
#: Longer runs of letters are hardly words, and are cut into shorter pieces.
_LONGEST_WORD: Final = 10
#: A token stands for at least this many spaces, if there are many in a row.
_SPACES_PER_TOKEN: Final = 8

#: A word, with the space before it.
_WORD: Final = re.compile(" ?[A-Za-z]+")
#: Spaces that no token shares with a word.
_SPACES: Final = re.compile("  +(?![A-Za-z])|  +(?= [A-Za-z])")
_FOREIGN: Final = re.compile(r"[^\x00-\x7f]+")


def estimate_tokens(text: str) -> int:
    """Return at least as many tokens as a tokenizer makes of a text."""
    words = _WORD.findall(text)
    # All other characters count as one token each, unless there is more to say about them.
    total = len(text) - sum(map(len, words)) + sum(map(_count_word, words))
    if "  " in text:
        for spaces in map(len, _SPACES.findall(text)):
            total -= spaces - min(spaces, 2 + spaces // _SPACES_PER_TOKEN)
    if not text.isascii():
        total += sum(_count_foreign(foreign) - len(foreign) for foreign in _FOREIGN.findall(text))
    return total


@lru_cache(16_384)
def _count_word(word: str) -> int:
    word = word.lstrip(" ")
    pieces = start = 0
    length = len(word)
    while start < length:
        end = min(length, start + _LONGEST_PIECE)
        while end > start + 1 and word[start:end] not in _PIECES:
            end -= 1
        start = end
        pieces += 1
    if pieces == 1:
        return 1
    most = 3 * pieces if length > _LONGEST_WORD else pieces + 2 + pieces // 3
    # Where long pieces meet, a tokenizer may find several short ones instead.
    return min(length, max(most, length // 2 + 1))


def _count_foreign(text: str) -> int:
    # Some tokenizers normalise a text first, which can make it longer.
    letters = max(sum(map(_count_letter, form)) for form in {text, normalize("NFKC", text)})
    # A space before them, or a border between two of them, can divide them into their bytes.
    return letters + min(len(text), 2) + len(text) // 10


def _count_letter(letter: str) -> int:
    return 1 if letter in _SINGLE_LETTERS else len(letter.encode())
