"""Adjustment of imported names and texts to the rules of Dittybag."""

from __future__ import annotations

import re
from typing import Final

from dittybag.domain.names import NAME_LENGTH, transliterate
from dittybag.domain.prompts import DESCRIPTION_LENGTH, TAG_LENGTH, TITLE_LENGTH

_INVALID_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")
_INVALID_IN_TAGS: Final = re.compile(r"[^a-z0-9_-]+")


def sanitise_name(name: str, fallback: str) -> str:
    """Transliterate a name, with `-` for other invalid characters. Returns `fallback` if nothing is left."""
    return _INVALID_IN_NAMES.sub("-", transliterate(name)).strip("-")[:NAME_LENGTH] or fallback


def sanitise_title(title: str) -> str:
    """Return a title without NUL, truncated to the maximum length."""
    return title.replace("\0", "")[:TITLE_LENGTH]


def sanitise_tag(tag: str) -> str:
    """Transliterate a tag, with `-` for other invalid characters. The result may be empty."""
    return _INVALID_IN_TAGS.sub("-", transliterate(tag).lower()).strip("-")[:TAG_LENGTH]


def sanitise_description(text: str | None) -> str | None:
    """Return a description without NUL, truncated to the maximum length; `None` if it is empty."""
    return text.replace("\0", "")[:DESCRIPTION_LENGTH] if text else None
