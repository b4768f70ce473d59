"""Walk the files of a folder without following links."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from dittybag.library.relative_paths import GIT_FOLDER, MAX_PATH_DEPTH

#: Larger trees are not walked.
MAX_WALK_ENTRIES: Final = 100_000

_CHUNK_BYTES: Final = 256 * 1024

#: `folder`: a folder that is not entered, because it is a `.git` folder or too deep.
FileKind: TypeAlias = Literal["file", "link", "special", "folder"]


class TooManyFiles(Exception):
    """The tree has more entries than the limit."""


class WalkedFile(Struct, frozen=True):
    """An entry of a tree. `folder` is the descriptor of its parent, open until the walk continues."""

    path: str
    name: str
    kind: FileKind
    folder: int
    status: os.stat_result


def walk(root: str, *, limit: int = MAX_WALK_ENTRIES) -> Iterator[WalkedFile]:
    """Yield everything below `root` except folders, sorted by name.

    Each folder is opened relative to its parent, so a link that is created during the walk is not followed.
    Raises `OSError`, and `TooManyFiles` beyond `limit` entries.
    """
    left = [limit]
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield from _walk_folder(descriptor, "", 1, left)
    finally:
        os.close(descriptor)


def _walk_folder(folder: int, prefix: str, depth: int, left: list[int]) -> Iterator[WalkedFile]:
    for name in _list_names(folder, left):
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        path = prefix + name
        if stat.S_ISDIR(status.st_mode) and name.lower() != GIT_FOLDER and depth < MAX_PATH_DEPTH:
            subfolder = _open_folder(name, folder)
            if subfolder is None:
                continue
            try:
                yield from _walk_folder(subfolder, path + "/", depth + 1, left)
            finally:
                os.close(subfolder)
        else:
            yield WalkedFile(path, name, _kind(status.st_mode), folder, status)


def _list_names(folder: int, left: list[int]) -> list[str]:
    names = []
    with os.scandir(folder) as entries:
        for entry in entries:
            left[0] -= 1
            if left[0] < 0:
                raise TooManyFiles
            names.append(entry.name)
    return sorted(names)


def _open_folder(name: str, parent: int) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except (FileNotFoundError, NotADirectoryError):
        # It was removed or replaced since it was listed.
        return None


def _kind(mode: int) -> FileKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISLNK(mode):
        return "link"
    return "folder" if stat.S_ISDIR(mode) else "special"


def read_chunks(file: WalkedFile) -> Iterator[bytes]:
    """Yield the content of a file. Raises `OSError`, also if it is no longer a regular file."""
    # Opening a FIFO for reading would wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(file.name, flags, dir_fd=file.folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{file.path} is no longer a regular file")
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            yield chunk
    finally:
        os.close(descriptor)


def digest(file: WalkedFile) -> str:
    """The SHA-256 of a file. Raises `OSError`."""
    from hashlib import sha256

    total = sha256()
    for chunk in read_chunks(file):
        total.update(chunk)
    return total.hexdigest()
