"""The words of texts and queries, as the ranked search compares them: folded, and reduced to their stems."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from dittybag.domain.stemming import stem

#: Longer words are several words: hashes and encoded data would fill the index.
WORD: Final = re.compile(r"[^\W_]{1,40}")
#: The same for folded ASCII texts, in two thirds of the time.
_ASCII_WORD: Final = re.compile(r"[a-z0-9]{1,40}")
_NOT_WORD: Final = re.compile(r"[^\w\s]")
#: Scripts that are written without spaces, and Hangul, whose words have endings: Thai, Lao, Burmese, Khmer,
#: kana, Chinese characters, Hangul.
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def fold_words(text: str) -> str:
    """Fold a text, so that texts that differ only in case, accents, width or composition are equal."""
    if text.isascii():
        return text.lower()
    plain = _NOT_WORD.sub(_without_mark, unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", plain)


def _without_mark(match: re.Match[str]) -> str:
    return "" if unicodedata.category(match[0])[0] == "M" else match[0]


def split_words(text: str) -> list[str]:
    """Return the folded words of a text, in order. Of scripts without spaces, all pairs of characters."""
    folded = fold_words(text)
    if text.isascii():
        return _ASCII_WORD.findall(folded)
    words = WORD.findall(folded)
    return [part for word in words for part in ([word] if word.isascii() else _parts(word))]


def stems_of(text: str) -> list[str]:
    """Return the stems of the words of a text, in order."""
    return list(map(stem, split_words(text))) if text else []


def is_unspaced(word: str) -> bool:
    """Whether a folded word consists of characters of a script without spaces."""
    return _UNSPACED.fullmatch(word) is not None


def _parts(word: str) -> list[str]:
    """Split a word at changes between scripts with and without spaces."""
    parts = []
    end = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > end:
            parts.append(word[end : run.start()])
        text, end = run[0], run.end()
        # The last character alone, so that a search for it finds it as the beginning of a part.
        parts += [text[at : at + 2] for at in range(len(text))]
    return [*parts, word[end:]] if end < len(word) else parts
