"""File names for entities: valid on every operating system, and always the same for the same entity name."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from dittybag.domain.names import transliterate

_LENGTH: Final = 100
_SAFE: Final = re.compile(r"[a-z0-9_][a-z0-9._-]*")
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_]+")
#: Device names on Windows, with or without an extension.
_DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


def file_name(name: str, *, digits: int = 8) -> str:
    """Return the file name for an entity name, without an extension.

    A name that some file system rejects, changes or does not distinguish from another gets a hash suffix:
    `Notes` and `notes` are the same file on many disks.
    """
    if (
        _SAFE.fullmatch(name)
        and len(name) <= _LENGTH
        and not name.endswith(".")
        and not _DEVICES.fullmatch(name)
    ):
        return name
    words = _OTHERS.sub("-", name)[: _LENGTH - 20].strip("-") or "x"
    return f"{words}~{sha256(name.encode()).hexdigest()[:digits]}"


def task_file_name(id: int, title: str) -> str:
    """Return the file name of a task: its id, and the beginning of its title for readability."""
    words = _OTHERS.sub("-", transliterate(title[:200]).lower())[:40].strip("-")
    return f"{id:06d}-{words}.md" if words else f"{id:06d}.md"
