"""The files of a folder, found without following a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from dittybag.library.relative_paths import MAX_PATH_DEPTH, GIT_FOLDER

#: A tree with more entries than this is not looked through.
MAX_WALK_ENTRIES: Final = 100_000

_PIECE: Final = 256 * 1024

#: `whole`: a folder that is not looked into, because it is a repository's or too deep.
Kind: TypeAlias = Literal["file", "link", "special", "whole"]


class TooManyFiles(Exception):
    """The tree has more entries than anybody should look through."""


class WalkedFile(Struct, frozen=True):
    """Something in a tree. `folder` is the descriptor of the folder it is in, open until the next one."""

    path: str
    name: str
    kind: Kind
    folder: int
    status: os.stat_result


def walk(root: str, *, most: int = MAX_WALK_ENTRIES) -> Iterator[WalkedFile]:
    """Everything below `root` but folders, in the order of names.

    Folders are opened one below the other, so that a link which somebody puts there meanwhile leads nowhere.
    Raises OSError, and `TooManyFiles` beyond `most` entries.
    """
    left = [most]
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield from _below(descriptor, "", 1, left)
    finally:
        os.close(descriptor)


def _below(folder: int, prefix: str, depth: int, left: list[int]) -> Iterator[WalkedFile]:
    for name in _names(folder, left):
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        path = prefix + name
        if stat.S_ISDIR(status.st_mode) and name.lower() != GIT_FOLDER and depth < MAX_PATH_DEPTH:
            below = _open_folder(name, folder)
            if below is None:
                continue
            try:
                yield from _below(below, path + "/", depth + 1, left)
            finally:
                os.close(below)
        else:
            yield WalkedFile(path, name, _kind(status.st_mode), folder, status)


def _names(folder: int, left: list[int]) -> list[str]:
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
        # It has gone or become something else since it was looked at.
        return None


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISLNK(mode):
        return "link"
    return "whole" if stat.S_ISDIR(mode) else "special"


def content(found: WalkedFile) -> Iterator[bytes]:
    """The bytes of a file, as many as there are. Raises OSError, also if it is no file any more."""
    # Opening a FIFO for reading would wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(found.name, flags, dir_fd=found.folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{found.path} is no file any more")
        while piece := os.read(descriptor, _PIECE):
            yield piece
    finally:
        os.close(descriptor)


def digest(found: WalkedFile) -> str:
    """The SHA-256 of a file. Raises OSError."""
    from hashlib import sha256

    total = sha256()
    for piece in content(found):
        total.update(piece)
    return total.hexdigest()
