"""Folders as sources of libraries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dittybag.library.file_walk import TooManyFiles, WalkedFile, content, walk
from dittybag.library.relative_paths import shown
from dittybag.library.sources.limited_copy import LimitedCopy

_KINDS: Final = {
    "link": "a symbolic link",
    "special": "neither a file nor a folder",
    "whole": "a folder that is too deep inside others",
}


def copy(folder: str, intake: LimitedCopy) -> None:
    """Take all files below `folder`.

    Raises `SourceFailed` if one of them cannot be read: to leave it out would look like its deletion to the
    next update.
    """
    for found in _found(folder, intake):
        kind = _KINDS.get(found.kind)
        if intake.wants(found.path, kind) and intake.fits(found.path, found.status.st_size):
            intake.take(found.path, _content(found, intake))


def _found(folder: str, intake: LimitedCopy) -> Iterator[WalkedFile]:
    try:
        yield from walk(folder, most=intake.limits.entries)
    except OSError as error:
        raise intake.failure(f"{shown(str(error.filename or folder))}: {error.strerror or error}") from error
    except TooManyFiles:
        raise intake.refusal(f"holds more than {intake.limits.entries:,} files and folders") from None


def _content(found: WalkedFile, intake: LimitedCopy) -> Iterator[bytes]:
    try:
        yield from content(found)
    except OSError as error:
        raise intake.failure(f"{shown(found.path)}: {error.strerror or error}") from error
