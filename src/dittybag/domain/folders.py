"""Names of projects that are made for folders."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

from dittybag.domain.names import numbered_names
from dittybag.domain.projects import AUTOMATIC, NAME_LENGTH
from dittybag.domain.text import one_line

#: For a folder whose name has no character that a project name may have.
_NAMELESS: Final = "project"


def project_names(path: str) -> Iterator[str]:
    """Yield names for the project of a folder: its own name, with its parent's in front, with a number."""
    parts = [part for part in path.split("/") if part]
    own = _valid_name(parts[-1].removesuffix(".git")) if parts else ""
    parent = _valid_name(parts[-2]) if len(parts) > 1 else ""
    own = own or _NAMELESS
    if own != AUTOMATIC:
        yield own
    if parent:
        own = _valid_name(f"{parent}-{own}")
        yield own
    names = numbered_names(own, "-{}", NAME_LENGTH)
    next(names)
    yield from names


def _valid_name(text: str) -> str:
    """Return a text as a valid project name, or an empty text. Some systems decompose accents."""
    return unicodedata.normalize("NFC", one_line(text, NAME_LENGTH)).strip()[:NAME_LENGTH].strip()
