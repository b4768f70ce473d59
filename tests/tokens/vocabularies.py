"""Writes `dittybag/domain/token_pieces.py` from the vocabularies: `python -m tests.tokens.vocabularies`."""

from __future__ import annotations

import itertools
import re
import string
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

from tests.interop.environments import ROOT
from tests.tokens.tokenizer_process import count_tokens, read_vocabulary

MODULE: Final = ROOT / "src" / "dittybag" / "domain" / "token_pieces.py"
_WIDTH: Final = 105
_LETTERS_PER_LINE: Final = 50
_PAIRS_PER_CALL: Final = 50_000

_TEXT: Final = '''"""What the vocabularies share. Written by `python -m tests.tokens.vocabularies`."""

from __future__ import annotations

from typing import Final

#: Pieces of words that each vocabulary has as one token, with and without a space before it.
PIECES: Final = """
{pieces}
"""

#: Letters and signs beyond ASCII that are one token each.
SINGLE_LETTERS: Final = (
{letters}
)
'''


def find_pieces() -> list[str]:
    """Return the pieces of words that are one token for all tokenizers, wherever they stand."""
    found = {piece.lstrip("▁") for piece in read_vocabulary() if re.fullmatch("▁?[A-Za-z]{2,}", piece)}
    return _keep(sorted(found), {"{}": 1, " {}": 1, "({}": 2})


def find_single_letters() -> list[str]:
    """Return the letters and signs beyond ASCII that are one token for all tokenizers, beside any other."""
    letters = [
        chr(number)
        for number in range(0x80, 0x10000)
        if unicodedata.category(chr(number))[0] in "LMNPS" and chr(number).isprintable()
    ]
    return _without(_keep(letters, {"{0}x{0}{0}": 4}))


def _without(letters: Sequence[str]) -> list[str]:
    """Leave out the fewest letters, so that none is divided because of another letter beside it.

    Tokenizers join bytes. The end of a letter and the beginning of the next may be such a pair of bytes.
    """
    divided: list[str] = []
    signs = string.ascii_letters + string.digits + string.punctuation
    borders = [*itertools.product((*letters, *signs), letters), *itertools.product(letters, signs)]
    for start in range(0, len(borders), _PAIRS_PER_CALL):
        pairs = ["".join(border) for border in borders[start : start + _PAIRS_PER_CALL]]
        counts = zip(pairs, count_tokens(pairs), strict=True)
        divided += [pair for pair, tokens in counts if max(tokens.values()) > len(pair)]
    left_out = set()
    while divided:
        beside = Counter(letter for pair in divided for letter in set(pair) if letter not in signs)
        [(letter, _)] = beside.most_common(1)
        left_out.add(letter)
        divided = [pair for pair in divided if letter not in pair]
    return [letter for letter in letters if letter not in left_out]


def _keep(candidates: Sequence[str], patterns: dict[str, int]) -> list[str]:
    """Return the candidates that make at most a number of tokens in each pattern."""
    kept = list(candidates)
    for pattern, most in patterns.items():
        counts = count_tokens([pattern.format(candidate) for candidate in kept])
        kept = [
            candidate for candidate, count in zip(kept, counts, strict=True) if max(count.values()) <= most
        ]
    return kept


def main() -> None:
    letters = "".join(find_single_letters())
    lines = [
        letters[start : start + _LETTERS_PER_LINE] for start in range(0, len(letters), _LETTERS_PER_LINE)
    ]
    text = _TEXT.format(
        pieces=textwrap.fill(" ".join(find_pieces()), _WIDTH),
        letters="\n".join(f'    "{line}"' for line in lines),
    )
    MODULE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
