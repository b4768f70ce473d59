"""A folder from which nothing leads out: its files, and what is in them."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from msgspec import Struct

#: When a file was changed, in every way that a file system tells.
Stamp = tuple[int, int, int, int]

#: A library is not somebody's whole disk.
MAX_FILES: Final = 10_000
MAX_ENTRIES: Final = 20_000
MAX_DEPTH: Final = 16

#: Folders that hold something else, whatever is in them.
_FOREIGN: Final = frozenset({"node_modules", "__pycache__"})
#: Hidden folders hold what is nobody's business, but for the one in which people keep prompts.
_SHOWN: Final = ".claude"

_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
#: A pipe must not make us wait for somebody to write into it.
_FILE: Final = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_CHUNK: Final = 1024 * 1024


class UnreadableFile(Exception):
    """A file is not to be read; the message ends a sentence that begins with its name."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        self.problem = problem
        self.line = line
        super().__init__(problem)


class MissingFile(UnreadableFile):
    """There is no such file."""

    def __init__(self) -> None:
        super().__init__("is not there")


class FolderListing(Struct, frozen=True):
    """The files of a folder, and what was left out of it."""

    files: dict[str, Stamp]
    #: The folders that hold them, with their inodes; the first is the folder itself, without a name.
    folders: dict[str, int]
    #: Files and folders, and why they are not among the files.
    left_out: dict[str, str]


def stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)


class SafeFolder(Struct, frozen=True):
    """A folder on disk. Names of files in it are relative, with "/"."""

    path: str

    def stamp(self, file: str) -> Stamp | None:
        """When an ordinary file of this name was changed; nothing if there is none."""
        if os.sep not in file and (stamp := self._unlinked_stamp(file)) is not None:
            # There is nothing on the way that could lead elsewhere.
            return stamp
        inside = self._resolved(file)
        return None if inside is None else self._unlinked_stamp(inside)

    def _unlinked_stamp(self, file: str) -> Stamp | None:
        try:
            status = os.lstat(os.path.join(self.path, file))
        except (OSError, ValueError):
            return None
        return stamp_of(status) if stat.S_ISREG(status.st_mode) else None

    def list(self) -> FolderListing:
        """All files below it that can be read."""
        found = FolderListing({}, {}, {})
        try:
            descriptor = os.open(self.path, _DIRECTORY)
        except OSError:
            # It is gone, and so are its files.
            return found
        try:
            self._walk(descriptor, "", 0, found)
        finally:
            os.close(descriptor)
        return found

    def _walk(self, descriptor: int, inside: str, depth: int, found: FolderListing) -> None:
        """Look through an open folder: by its name, it could be another one by now."""
        found.folders[inside.rstrip("/")] = os.fstat(descriptor).st_ino
        with os.scandir(descriptor) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
        for entry in entries:
            name = inside + entry.name
            if len(found.files) == MAX_FILES:
                found.left_out[name] = f"is one too many: a library has at most {MAX_FILES} files"
                return
            if len(found.files) + len(found.left_out) + len(found.folders) >= MAX_ENTRIES:
                found.left_out[name] = (
                    f"is one too many: at most {MAX_ENTRIES} files and folders are looked at"
                )
                return
            try:
                if (reason := _not_taken(entry, depth)) is not None:
                    found.left_out[name if name.isprintable() else ascii(name)] = reason
                elif entry.is_dir(follow_symlinks=False):
                    self._enter(descriptor, entry.name, name, depth, found)
                elif not entry.is_symlink():
                    found.files[name] = stamp_of(entry.stat(follow_symlinks=False))
                elif (stamp := self.stamp(name)) is not None:
                    found.files[name] = stamp
                else:
                    found.left_out[name] = "is a link to something that is no file of this library"
            except FileNotFoundError:
                # It was there a moment ago.
                continue
            except OSError as error:
                found.left_out[name] = f"cannot be read: {_reason(error)}"

    def _enter(self, parent: int, name: str, path: str, depth: int, found: FolderListing) -> None:
        descriptor = os.open(name, _DIRECTORY | _NO_FOLLOW, dir_fd=parent)
        try:
            self._walk(descriptor, f"{path}/", depth + 1, found)
        finally:
            os.close(descriptor)

    def read(self, file: str, most: int) -> tuple[Stamp, bytes]:
        """A file of at most so many bytes. Raises `UnreadableFile`."""
        try:
            descriptor = self._open(file)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                raise MissingFile from error
            raise UnreadableFile(f"cannot be read: {_reason(error)}") from error
        try:
            return _content(descriptor, most)
        except OSError as error:
            raise UnreadableFile(f"cannot be read: {_reason(error)}") from error
        finally:
            os.close(descriptor)

    def text(self, file: str, most: int) -> tuple[Stamp, str]:
        """The text in a file. Raises `UnreadableFile`."""
        stamp, content = self.read(file, most)
        return stamp, decoded(content)

    def _open(self, file: str) -> int:
        """Open a file, step by step, so that no link can lead out of the folder at any moment."""
        try:
            return self._open_unlinked(file)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                raise
            # A link on the way: it may lead to another file in here.
            inside = self._resolved(file)
            if inside is None:
                raise UnreadableFile("leads out of the library") from error
            if inside == file:
                raise
            return self._open_unlinked(inside)

    def _open_unlinked(self, file: str) -> int:
        parts = file.split("/")
        if any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts):
            raise UnreadableFile("leads out of the library")
        if os.open not in os.supports_dir_fd:
            if self._resolved(file) is None:
                raise UnreadableFile("leads out of the library")
            return os.open(os.path.join(self.path, *parts), _FILE)
        at = os.open(self.path, _DIRECTORY)
        try:
            for part in parts[:-1]:
                inner = os.open(part, _DIRECTORY | _NO_FOLLOW, dir_fd=at)
                os.close(at)
                at = inner
            return os.open(parts[-1], _FILE, dir_fd=at)
        finally:
            os.close(at)

    def _resolved(self, file: str) -> str | None:
        """Where a name leads to, seen from the folder; nothing if it leads out of it."""
        if "\0" in file:
            return None
        try:
            root = os.path.realpath(self.path)
            target = os.path.realpath(os.path.join(root, file))
        except (OSError, ValueError):
            return None
        inside = os.path.join(root, "")
        return target[len(inside) :].replace(os.sep, "/") if target.startswith(inside) else None


def _content(descriptor: int, most: int) -> tuple[Stamp, bytes]:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableFile("is not an ordinary file")
    chunks = []
    # What the system says of its size is only as true as it was a moment ago.
    room = most + 1 if status.st_size <= most else 0
    while room > 0 and (chunk := os.read(descriptor, min(room, _CHUNK))):
        chunks.append(chunk)
        room -= len(chunk)
    if room <= 0:
        raise UnreadableFile(f"is larger than {most // 1024} KiB")
    return stamp_of(status), b"".join(chunks)


def decoded(content: bytes) -> str:
    """The text of a file's content. Raises `UnreadableFile`."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableFile("is not a text in UTF-8", line) from error
    if "\0" in text:
        raise UnreadableFile("is not a text", text.count("\n", 0, text.index("\0")) + 1)
    return text


def _not_taken(entry: os.DirEntry[str], depth: int) -> str | None:
    """Why something in a folder is not looked at, if it is not."""
    if not entry.name.isprintable():
        return "has a name that cannot be shown"
    if entry.is_dir(follow_symlinks=False):
        if entry.name.startswith(".") and entry.name != _SHOWN:
            return "is hidden"
        if entry.name in _FOREIGN:
            return "holds no prompts"
        return f"is deeper than {MAX_DEPTH} folders" if depth >= MAX_DEPTH else None
    return None if entry.is_symlink() or entry.is_file() else "is not an ordinary file"


def _reason(error: OSError) -> str:
    return (error.strerror or "unknown reason").lower()
