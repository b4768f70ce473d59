"""Paths inside a library: relative, with "/", and leading nowhere else."""

from __future__ import annotations

import re
from typing import Final

from dittybag.domain.errors import clip
from dittybag.domain.text import one_line

MAX_PATH_DEPTH: Final = 16
MAX_NAME_BYTES: Final = 200
MAX_PATH_BYTES: Final = 1000

#: What version control and file managers leave behind; compared in lower case.
GIT_FOLDER: Final = ".git"
JUNK_FILES: Final = frozenset({".ds_store", "thumbs.db"})

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
    if len(parts) > MAX_PATH_DEPTH:
        return f"is more than {MAX_PATH_DEPTH} levels deep"
    if max(map(len, parts)) > MAX_NAME_BYTES:
        return f"has a name of more than {MAX_NAME_BYTES} bytes"
    if len(encoded) > MAX_PATH_BYTES:
        return f"has a path of more than {MAX_PATH_BYTES} bytes"
    return None


def is_in_git_folder(path: str) -> bool:
    """Whether a path leads into the folder of a version control system."""
    return GIT_FOLDER in path.lower().split("/")


def is_junk_file(name: str) -> bool:
    """Whether a file manager left a file of this name behind."""
    return name.lower() in JUNK_FILES


def replace_surrogates(text: str) -> str:
    """A name as far as it is Unicode: on disk it may be anything."""
    return text.encode("utf-8", "replace").decode()


def shown(text: str, most: int = 120) -> str:
    """A foreign text as a message may show it: one line, not too long, nothing that a terminal obeys."""
    return clip(one_line(replace_surrogates(text), len(text)), most)
