"""Rules for names, and names derived from titles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dittybag.domain.errors import clip

NAME_LENGTH: Final = 255

_ALLOWED: Final = r"[A-Za-z0-9._-]*"
_OTHERS: Final = r"[^a-z0-9._-]+"
#: Chinese characters and Korean syllables: each is transliterated to a syllable of its own. Compiling the
#: pattern takes 3 ms, so that is left to its first use.
_SYLLABLE: Final = "[\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]"


def name_problem(kind: str, name: str) -> str | None:
    """Return the problem with the name of a `kind`, or `None`."""
    if not 1 <= len(name) <= NAME_LENGTH:
        return f"{kind} name must be 1-{NAME_LENGTH} characters"
    if not re.fullmatch(_ALLOWED, name):
        return f"{kind} name '{clip(name, 60)}' contains invalid characters. Allowed: a-z, A-Z, 0-9, -, _, ."
    return None


def name_from_title(title: str) -> str:
    """Derive a name from a title: transliterated, in lower case, with `-` for runs of other characters."""
    return re.sub(_OTHERS, "-", transliterate(title).lower()).strip("-")[:NAME_LENGTH] or "prompt"


def transliterate(text: str) -> str:
    """Return a text in ASCII that is readable: `uber` for `über`, `ri ben ` for `日本`."""
    if text.isascii():
        return text
    # Imported here because it is slow to import and most texts do not need it.
    from anyascii import anyascii

    return anyascii(re.sub(_SYLLABLE, r"\g<0> ", text))


def numbered_names(wanted: str, form: str, length: int) -> Iterator[str]:
    """Yield `wanted`, then `wanted` with a number in the format `form`, all up to `length` characters."""
    yield wanted[:length]
    number = 2
    while True:
        suffix = form.format(number)
        yield wanted[: length - len(suffix)] + suffix
        number += 1
