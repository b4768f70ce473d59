"""Folders as library sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dittybag.files import TooManyFiles, WalkedFile
from dittybag.library.file_walk import walk
from dittybag.library.relative_paths import printable
from dittybag.library.sources.limited_copy import LimitedCopy

_SKIP_REASONS: Final = {
    "link": "a symbolic link",
    "special": "not a regular file",
    "folder": "a folder that is nested too deep",
}


def copy_folder(folder: str, target: LimitedCopy) -> None:
    """Copy all files below `folder`.

    Raises `SourceFailed` if a file cannot be read. If it were skipped, the next update would treat it as
    deleted.
    """
    for file in _walk_source(folder, target):
        reason = _SKIP_REASONS.get(file.kind)
        if file.kind == "file" and file.status.st_nlink > 1:
            # Like a symbolic link, it may be a file from elsewhere.
            reason = "a hard link"
        if target.accepts(file.path, reason) and target.fits(file.path, file.status.st_size):
            target.write(file.path, _read_file(file, target))


def _walk_source(folder: str, target: LimitedCopy) -> Iterator[WalkedFile]:
    try:
        yield from walk(folder, limit=target.limits.entries)
    except OSError as error:
        raise target.failure(
            f"{printable(str(error.filename or folder))}: {error.strerror or error}"
        ) from error
    except TooManyFiles:
        raise target.too_many_entries() from None


def _read_file(file: WalkedFile, target: LimitedCopy) -> Iterator[bytes]:
    try:
        yield from file.chunks()
    except OSError as error:
        raise target.failure(f"{printable(file.path)}: {error.strerror or error}") from error
