"""A folder whose files are read and written without following symbolic links."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from types import TracebackType
from typing import BinaryIO, Final, Self

from dittybag import files
from dittybag.domain.errors import Invalid, Problem

_CHUNK: Final = 1024 * 1024

#: Name of a file that is not complete yet.
_UNFINISHED: Final = ".dittybag-unfinished"


class FolderTree:
    """A folder. Paths are relative and use "/"; no part of a path may be a symbolic link."""

    def __init__(self, path: str) -> None:
        """Raises `OSError`."""
        self._root = files.open_folder(path)
        self._current = ("", self._root)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_current()
        os.close(self._root)

    def _close_current(self) -> None:
        if self._current[1] != self._root:
            os.close(self._current[1])
        self._current = ("", self._root)

    def _folder(self, path: str, *, make: bool = False) -> int:
        """Return the descriptor of a folder. It stays open until the next call. Raises `OSError`."""
        if self._current[0] == path:
            return self._current[1]
        self._close_current()
        descriptor = files.open_below(self._root, path, make=make) if path else self._root
        self._current = (path, descriptor)
        return descriptor

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """Return the sorted names in a folder, and whether each is a folder; empty if it does not exist.

        Symbolic links, special files and hidden files are omitted.
        """
        try:
            with os.scandir(self._folder(folder)) as entries:
                found = [
                    (entry.name, entry.is_dir(follow_symlinks=False))
                    for entry in entries
                    if not entry.name.startswith(".")
                    and (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False))
                ]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(found)

    def folders(self, folder: str) -> list[str]:
        return [name for name, is_folder in self.entries(folder) if is_folder]

    def files(self, folder: str) -> list[str]:
        return [name for name, is_folder in self.entries(folder) if not is_folder]

    def size(self, path: str) -> int:
        """Return the size of a file in bytes. Raises `OSError`."""
        folder, _, name = path.rpartition("/")
        return os.stat(name, dir_fd=self._folder(folder), follow_symlinks=False).st_size

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
        self._folder(path.rpartition("/")[0], make=True)
        if self._has_content(path, BytesIO(content), len(content)):
            return False
        with self.begin(path) as file:
            file.write(content)
        self._rename(path)
        return True

    def begin(self, path: str) -> BinaryIO:
        """Open a temporary file that `finish` renames to `path`. Raises `OSError`."""
        parent = self._folder(path.rpartition("/")[0], make=True)
        with suppress(FileNotFoundError):
            os.unlink(_UNFINISHED, dir_fd=parent)
        return os.fdopen(os.open(_UNFINISHED, files.NEW_FILE, 0o666, dir_fd=parent), "w+b")

    def finish(self, path: str, file: BinaryIO) -> bool:
        """Rename the temporary file to `path`. Returns whether the content changed. Raises `OSError`."""
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        unchanged = self._has_content(path, file, size)
        file.close()
        if unchanged:
            os.unlink(_UNFINISHED, dir_fd=self._folder(path.rpartition("/")[0]))
        else:
            self._rename(path)
        return not unchanged

    def _rename(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        parent = self._folder(folder)
        os.rename(_UNFINISHED, name, src_dir_fd=parent, dst_dir_fd=parent)

    def _has_content(self, path: str, content: BinaryIO, size: int) -> bool:
        try:
            descriptor = self.open(path)
        except OSError:
            return False
        with os.fdopen(descriptor, "rb") as file:
            if os.fstat(descriptor).st_size != size:
                return False
            while chunk := file.read(_CHUNK):
                if chunk != content.read(len(chunk)):
                    return False
            return True

    def remove(self, path: str) -> None:
        """Delete a file. Raises `OSError`."""
        folder, _, name = path.rpartition("/")
        os.unlink(name, dir_fd=self._folder(folder))

    def remove_empty(self, path: str) -> None:
        """Delete a folder if it is empty."""
        folder, _, name = path.rpartition("/")
        with suppress(OSError):
            os.rmdir(name, dir_fd=self._folder(folder))

    def lines(self, path: str, max_bytes: int) -> Iterator[bytes]:
        """Yield the lines of a file. Raises `Invalid` if a line is longer than `max_bytes`, and `OSError`."""
        with os.fdopen(self.open(path), "rb") as file:
            while line := file.readline(max_bytes + 1):
                if len(line) > max_bytes:
                    raise Invalid([Problem("", f"a line is longer than {max_bytes} bytes")])
                yield line
