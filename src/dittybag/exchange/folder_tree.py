"""A folder whose files are read and written without following symbolic links."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from dittybag import files
from dittybag.domain.errors import Invalid, Problem
from dittybag.files import WalkedFile

#: Name of a file that is not complete yet.
_UNFINISHED: Final = ".dittybag-unfinished"


class FolderTree:
    """A folder. Paths are relative and use "/"; no part of a path may be a symbolic link."""

    def __init__(self, path: str) -> None:
        """Raises `OSError`."""
        self._root = files.open_folder(path)
        #: The descriptor of the folder that was used last, by its path.
        self._last: dict[str, int] = {}

    def close(self) -> None:
        self._close_last()
        os.close(self._root)

    def _close_last(self) -> None:
        while self._last:
            os.close(self._last.popitem()[1])

    def _folder(self, path: str, *, make: bool = False) -> int:
        """Return the descriptor of a folder. It stays open until the next call. Raises `OSError`."""
        if path not in self._last:
            self._close_last()
            self._last[path] = files.open_below(self._root, path, make=make)
        return self._last[path]

    def folders(self, folder: str) -> list[str]:
        """Return the sorted names of the folders in a folder that are not hidden; none if it is missing."""
        return self._names(folder, os.DirEntry.is_dir)

    def files(self, folder: str) -> list[str]:
        """Return the sorted names of the regular files in a folder; like `folders`."""
        return self._names(folder, os.DirEntry.is_file)

    def _names(self, folder: str, is_wanted: Callable[..., bool]) -> list[str]:
        try:
            with os.scandir(self._folder(folder)) as entries:
                return sorted(
                    entry.name
                    for entry in entries
                    if not entry.name.startswith(".") and is_wanted(entry, follow_symlinks=False)
                )
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(self, enter: Callable[[WalkedFile], bool]) -> Iterator[WalkedFile]:
        """Yield all entries below the folder, like `files.walk`. Raises `OSError`."""
        return files.walk(self._root, enter=enter)

    def open(self, path: str) -> int:
        """Return a descriptor of a regular file. Raises `OSError`."""
        folder, _, name = path.rpartition("/")
        return files.open_regular(name, self._folder(folder))

    def read(self, path: str, max_bytes: int) -> bytes:
        """Return the content of a file. Raises `Invalid` if it is larger than `max_bytes`, and `OSError`."""
        with os.fdopen(self.open(path), "rb") as file:
            try:
                return files.read_open(file.fileno(), os.fstat(file.fileno()).st_size, max_bytes)
            except files.FileTooLarge:
                raise Invalid([Problem("", f"it is larger than {max_bytes} bytes")]) from None

    def write(self, path: str, content: bytes) -> bool:
        """Write a file atomically. Returns whether its content changed. Raises `OSError`."""
        folder, _, name = path.rpartition("/")
        parent = self._folder(folder, make=True)
        if self._has_content(path, content):
            return False
        with suppress(FileNotFoundError):
            os.unlink(_UNFINISHED, dir_fd=parent)
        with os.fdopen(os.open(_UNFINISHED, files.NEW_FILE, 0o666, dir_fd=parent), "wb") as file:
            file.write(content)
        os.rename(_UNFINISHED, name, src_dir_fd=parent, dst_dir_fd=parent)
        return True

    def _has_content(self, path: str, content: bytes) -> bool:
        try:
            return self.read(path, len(content)) == content
        except (Invalid, OSError):
            return False

    def remove(self, path: str) -> None:
        """Delete a file, and the folders that are empty without it. Raises `OSError`."""
        folder, _, name = path.rpartition("/")
        os.unlink(name, dir_fd=self._folder(folder))
        with suppress(OSError):
            while folder:
                folder, _, name = folder.rpartition("/")
                os.rmdir(name, dir_fd=self._folder(folder))
