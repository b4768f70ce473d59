"""Paths inside a library: relative, with "/", and leading nowhere else."""

from __future__ import annotations

import re
from typing import Final

from dittybag.domain.errors import clipped
from dittybag.domain.text import one_line

DEPTH: Final = 16
NAME_BYTES: Final = 200
PATH_BYTES: Final = 1000

#: What version control and file managers leave behind; compared in lower case.
REPOSITORY: Final = ".git"
DROPPINGS: Final = frozenset({".ds_store", "thumbs.db"})

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_DRIVE: Final = re.compile(r"[A-Za-z]:")


def path_problem(path: str) -> str | None:
    """What is wrong with a path, to be said after it; nothing if it stays inside and fits."""
    if not path:
        return "is empty"
    if _CONTROL.search(path):
        return "has a NUL or another control character in its name"
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    if path.startswith("/"):
        return "is an absolute path"
    if "\\" in path:
        return "has a backslash in its name"
    if _DRIVE.match(path):
        return "begins with a drive letter"
    parts = encoded.split(b"/")
    if b".." in parts:
        return "leads out of its folder with '..'"
    if b"" in parts or b"." in parts:
        return "has an empty part in its path"
    return _size_problem(encoded, parts)


def _size_problem(encoded: bytes, parts: list[bytes]) -> str | None:
    if len(parts) > DEPTH:
        return f"is more than {DEPTH} levels deep"
    if max(map(len, parts)) > NAME_BYTES:
        return f"has a name of more than {NAME_BYTES} bytes"
    if len(encoded) > PATH_BYTES:
        return f"has a path of more than {PATH_BYTES} bytes"
    return None


def in_repository(path: str) -> bool:
    """Whether a path leads into the folder of a version control system."""
    return REPOSITORY in path.lower().split("/")


def is_dropping(name: str) -> bool:
    """Whether a file manager left a file of this name behind."""
    return name.lower() in DROPPINGS


def encodable(text: str) -> str:
    """A name as far as it is Unicode: on disk it may be anything."""
    return text.encode("utf-8", "replace").decode()


def shown(text: str, most: int = 120) -> str:
    """A foreign text as a message may show it: one line, not too long, nothing that a terminal obeys."""
    return clipped(one_line(encodable(text), len(text)), most)
