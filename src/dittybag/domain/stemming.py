"""The stems of English words, by the algorithm of M. F. Porter: https://tartarus.org/martin/PorterStemmer/."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

#: Longer tokens are hashes and encoded data rather than words.
_MAX_LENGTH: Final = 30
_MIN_LENGTH: Final = 3
#: Texts repeat their words, and a lookup takes a tenth of the time of the algorithm.
_CACHED_WORDS: Final = 32_768

_CONSONANT: Final = "[^aeiou]"
_VOWEL: Final = "[aeiouy]"
_CONSONANTS: Final = f"{_CONSONANT}[^aeiouy]*"
_VOWELS: Final = f"{_VOWEL}[aeiou]*"
_BEGINNING: Final = f"^(?:{_CONSONANTS})?"

#: The measure of a stem is the number of vowels that a consonant follows.
_MEASURE_ABOVE_0: Final = re.compile(f"{_BEGINNING}{_VOWELS}{_CONSONANTS}").search
_MEASURE_1: Final = re.compile(f"{_BEGINNING}{_VOWELS}{_CONSONANTS}(?:{_VOWELS})?$").search
_MEASURE_ABOVE_1: Final = re.compile(f"{_BEGINNING}(?:{_VOWELS}{_CONSONANTS}){{2}}").search
_HAS_VOWEL: Final = re.compile(f"{_BEGINNING}{_VOWEL}").search
#: As in `hop`, but not in `snow`, `box` and `tray`.
_SHORT: Final = re.compile(f"^{_CONSONANTS}{_VOWEL}[^aeiouwxy]$").search
#: As in `try`. Words such as `deploy` keep their y, so that `deployment` has the same stem.
_AFTER_CONSONANT: Final = re.compile(r".[^aeiou]y$").search
_DOUBLED: Final = re.compile(r"([^aeiouylsz])\1$").search

_STEP_2: Final = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "logi": "log",
    "bli": "ble",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
}
_STEP_3: Final = {
    "icate": "ic",
    "ative": "",
    "alize": "al",
    "iciti": "ic",
    "ical": "ic",
    "ful": "",
    "ness": "",
}
_STEP_4: Final = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion"),
    *("ou", "ism", "ate", "iti", "ous", "ive", "ize"),
)


def _suffix_pattern(suffixes: tuple[str, ...] | dict[str, str]) -> re.Pattern[str]:
    """Return a pattern for the longest of some suffixes."""
    return re.compile(f"^(.+?)({'|'.join(sorted(suffixes, key=len, reverse=True))})$")


_SUFFIX_2: Final = _suffix_pattern(_STEP_2)
_SUFFIX_3: Final = _suffix_pattern(_STEP_3)
_SUFFIX_4: Final = _suffix_pattern(_STEP_4)


@lru_cache(_CACHED_WORDS)
def stem(word: str) -> str:
    """Return the stem of a folded word. Words of other alphabets stay as they are."""
    if not (_MIN_LENGTH <= len(word) <= _MAX_LENGTH and word.isascii() and word.isalpha()):
        return word
    # An initial y is a consonant.
    marked = "Y" + word[1:] if word[0] == "y" else word
    for endings, step in _STEPS:
        if marked.endswith(endings):
            marked = step(marked)
    return marked.lower()


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _MEASURE_ABOVE_0(word[:-3]) else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return _completed(rest) if _HAS_VOWEL(rest) else word
    return word


def _completed(rest: str) -> str:
    """Restore the end of a word that has lost `ed` or `ing`."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if _DOUBLED(rest):
        return rest[:-1]
    return rest + "e" if _SHORT(rest) else rest


def _with_final_i(word: str) -> str:
    return word[:-1] + "i" if _AFTER_CONSONANT(word) else word


def _step_2(word: str) -> str:
    found = _SUFFIX_2.match(word)
    return found[1] + _STEP_2[found[2]] if found and _MEASURE_ABOVE_0(found[1]) else word


def _step_3(word: str) -> str:
    found = _SUFFIX_3.match(word)
    return found[1] + _STEP_3[found[2]] if found and _MEASURE_ABOVE_0(found[1]) else word


def _step_4(word: str) -> str:
    found = _SUFFIX_4.match(word)
    if not found:
        return word
    # Of `sion` and `tion`, only `ion` is removed.
    rest = found[1] + found[2][0] if found[2].endswith("ion") else found[1]
    return rest if _MEASURE_ABOVE_1(rest) else word


def _step_5(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        if _MEASURE_ABOVE_1(rest) or (_MEASURE_1(rest) and not _SHORT(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _MEASURE_ABOVE_1(word) else word


#: The steps of the algorithm, each with the ends of the words that it can change.
_STEPS: Final[tuple[tuple[str | tuple[str, ...], Callable[[str], str]], ...]] = (
    ("s", _without_plural),
    (("ed", "ing"), _without_past),
    ("y", _with_final_i),
    (tuple(_STEP_2), _step_2),
    (tuple(_STEP_3), _step_3),
    (_STEP_4, _step_4),
    (("e", "ll"), _step_5),
)
