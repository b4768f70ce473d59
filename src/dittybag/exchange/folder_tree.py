"""Trees: folders whose files are read and written without ever following a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from types import TracebackType
from typing import BinaryIO, Final, Self

from dittybag.domain.errors import Invalid, Problem

_CLOSED: Final = getattr(os, "O_CLOEXEC", 0)
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _CLOSED
#: A pipe must not make us wait for somebody to write into it.
_FILE: Final = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | _CLOSED
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _CLOSED

_CHUNK: Final = 1024 * 1024

#: A file that is not there as a whole yet.
_UNFINISHED: Final = ".dittybag-unfinished"


class Tree:
    """A folder. Paths in it are relative, with "/"; none of their parts may be a link."""

    def __init__(self, path: str) -> None:
        """Raises `OSError`."""
        self._root = os.open(path, _FOLDER)
        self._current = ("", self._root)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        os.close(self._root)

    def _leave(self) -> None:
        if self._current[1] != self._root:
            os.close(self._current[1])
        self._current = ("", self._root)

    def _folder(self, path: str, *, make: bool = False) -> int:
        """A descriptor of a folder, which stays open until another one is wanted. Raises `OSError`."""
        if self._current[0] == path:
            return self._current[1]
        self._leave()
        descriptor = self._root
        try:
            for part in path.split("/") if path else ():
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                inner = os.open(part, _FOLDER | _NO_FOLLOW, dir_fd=descriptor)
                if descriptor != self._root:
                    os.close(descriptor)
                descriptor = inner
        except BaseException:
            if descriptor != self._root:
                os.close(descriptor)
            raise
        self._current = (path, descriptor)
        return descriptor

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """The names in a folder in order, and whether each is a folder itself; nothing if it is not there.

        Links, pipes and the like are not listed, nor is what is hidden.
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
        """How many bytes a file has. Raises `OSError`."""
        folder, _, name = path.rpartition("/")
        return os.stat(name, dir_fd=self._folder(folder), follow_symlinks=False).st_size

    def open(self, path: str) -> int:
        """A descriptor of an ordinary file. Raises `OSError`."""
        folder, _, name = path.rpartition("/")
        descriptor = os.open(name, _FILE, dir_fd=self._folder(folder))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(0, "not an ordinary file", path)
        return descriptor

    def read(self, path: str, most: int) -> bytes:
        """The bytes of a file. Raises `Invalid` if there are more than `most`, and `OSError`."""
        descriptor = self.open(path)
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise Invalid([Problem("", f"it has more than {most} bytes")])
        return content

    def write(self, path: str, content: bytes) -> bool:
        """Have a file with this content, never half of it; whether it was not there. Raises `OSError`."""
        self._folder(path.rpartition("/")[0], make=True)
        if self._has(path, BytesIO(content), len(content)):
            return False
        with self.begin(path) as file:
            file.write(content)
        self._rename(path)
        return True

    def begin(self, path: str) -> BinaryIO:
        """What will be a file when it is finished. Raises `OSError`."""
        parent = self._folder(path.rpartition("/")[0], make=True)
        with suppress(FileNotFoundError):
            os.unlink(_UNFINISHED, dir_fd=parent)
        return os.fdopen(os.open(_UNFINISHED, _NEW, 0o666, dir_fd=parent), "w+b")

    def finish(self, path: str, file: BinaryIO) -> bool:
        """Have what was begun as a file; whether it was not there. Raises `OSError`."""
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        known = self._has(path, file, size)
        file.close()
        if known:
            os.unlink(_UNFINISHED, dir_fd=self._folder(path.rpartition("/")[0]))
        else:
            self._rename(path)
        return not known

    def _rename(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        parent = self._folder(folder)
        os.rename(_UNFINISHED, name, src_dir_fd=parent, dst_dir_fd=parent)

    def _has(self, path: str, content: BinaryIO, size: int) -> bool:
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
        """Take away a file. Raises `OSError`."""
        folder, _, name = path.rpartition("/")
        os.unlink(name, dir_fd=self._folder(folder))

    def remove_empty(self, path: str) -> None:
        """Take away a folder, if nothing is in it."""
        folder, _, name = path.rpartition("/")
        with suppress(OSError):
            os.rmdir(name, dir_fd=self._folder(folder))

    def lines(self, path: str, most: int) -> Iterator[bytes]:
        """The lines of a file. Raises `Invalid` if one has more than `most` bytes, and `OSError`."""
        with os.fdopen(self.open(path), "rb") as file:
            while line := file.readline(most + 1):
                if len(line) > most:
                    raise Invalid([Problem("", f"it has a line of more than {most} bytes")])
                yield line
