"""Relative paths inside a library, with "/" as the separator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dittybag import files
from dittybag.domain.errors import clip
from dittybag.domain.text import one_line

MAX_PATH_DEPTH: Final = 16
MAX_NAME_BYTES: Final = 200
MAX_PATH_BYTES: Final = 1000

#: Compared in lower case.
GIT_FOLDER: Final = ".git"
#: Files that file managers create; compared in lower case.
JUNK_FILES: Final = frozenset({".ds_store", "thumbs.db"})

_CONTROL: Final = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"
_DRIVE: Final = r"[A-Za-z]:"


def path_problem(path: str) -> str | None:
    """Why a path is not valid inside a library; None if it is valid."""
    if not path:
        return "the path is empty"
    if re.search(_CONTROL, path):
        return "the name contains a control character"
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return "the name is not valid UTF-8"
    if path.startswith("/"):
        return "the path is absolute"
    if "\\" in path:
        return "the name contains a backslash"
    if re.match(_DRIVE, path):
        return "the path starts with a drive letter"
    parts = encoded.split(b"/")
    if b".." in parts:
        return "the path contains '..'"
    if b"" in parts or b"." in parts:
        return "the path has an empty component"
    return _size_problem(encoded, parts)


def _size_problem(encoded: bytes, parts: list[bytes]) -> str | None:
    if len(parts) > MAX_PATH_DEPTH:
        return f"the path is more than {MAX_PATH_DEPTH} levels deep"
    if max(map(len, parts)) > MAX_NAME_BYTES:
        return f"the name is longer than {MAX_NAME_BYTES} bytes"
    if len(encoded) > MAX_PATH_BYTES:
        return f"the path is longer than {MAX_PATH_BYTES} bytes"
    return None


def is_in_git_folder(path: str) -> bool:
    """Whether a path is inside a `.git` folder."""
    return GIT_FOLDER in path.lower().split("/")


def is_junk_file(name: str) -> bool:
    """Whether a file of this name is created by a file manager."""
    return name.lower() in JUNK_FILES


def replace_surrogates(text: str) -> str:
    """Replace what cannot be encoded as UTF-8: a file name on disk can be any bytes."""
    return text.encode("utf-8", "replace").decode()


def printable(text: str, max_length: int = 120) -> str:
    """Make untrusted text safe for messages: one line, clipped, without control characters."""
    return clip(one_line(replace_surrogates(text), len(text)), max_length)


# Walking


#: Larger trees are not walked.
MAX_WALK_ENTRIES: Final = 100_000


def walk(root: files.AnyPath, *, limit: int = MAX_WALK_ENTRIES) -> Iterator[files.WalkedFile]:
    """Yield everything below `root`, without entering `.git` folders and folders that are nested too deep.

    Raises `OSError`, and `TooManyFiles` beyond `limit` entries.
    """
    return files.walk(root, enter=_is_entered, limit=limit)


def _is_entered(folder: files.WalkedFile) -> bool:
    return folder.name.lower() != GIT_FOLDER and folder.depth < MAX_PATH_DEPTH
