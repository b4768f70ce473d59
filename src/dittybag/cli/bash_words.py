"""Words of a bash command line, and names quoted so that they continue it."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

_BLANKS: Final = " \t\n"
#: Only before these, a backslash in double quotes is not a character of the word.
_ESCAPED_IN_QUOTES: Final = '$`"\\\n'
#: ASCII characters that can stand in a word without quotes.
_PLAIN: Final = r"[^\w@%+=:,./\x80-\U0010ffff-]"


class BashLine(Struct, frozen=True):
    """A command line up to the cursor."""

    #: The complete words, without quotes.
    words: tuple[str, ...]
    #: The word at the cursor, without quotes.
    current: str
    #: The quote that is open at the cursor; empty for none.
    quote: str
    #: Bash replaces what follows this many characters of the word at the cursor.
    kept: int

    def reply(self, name: str) -> str:
        """Return what bash inserts for a name, instead of the part of the word that it replaces."""
        rest = name[self.kept :]
        if self.quote == "'":
            return rest.replace("'", r"'\''")
        if self.quote:
            return re.sub(r'[$`"\\]', r"\\\g<0>", rest)
        return re.sub(_PLAIN, r"\\\g<0>", rest, flags=re.ASCII)


def parse_bash_line(line: str, breaks: str) -> BashLine:
    """Parse a command line up to the cursor. `breaks`: the value of COMP_WORDBREAKS."""
    words: list[str] = []
    word, quote, kept, is_escaped = "", "", 0, False
    is_word = False
    for letter in line:
        if is_escaped:
            word += letter if not quote or letter in _ESCAPED_IN_QUOTES else f"\\{letter}"
            is_escaped = False
        elif letter == "\\" and quote != "'":
            is_word = is_escaped = True
        elif letter == quote or (not quote and letter in "\"'"):
            quote, kept, is_word = "" if quote else letter, len(word), True
        elif not quote and letter in _BLANKS:
            if is_word:
                words.append(word)
            word, kept, is_word = "", 0, False
        else:
            word, is_word = word + letter, True
            if not quote and letter in breaks:
                kept = len(word)
    return BashLine(tuple(words), word, quote, kept)
