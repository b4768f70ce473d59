"""A folder whose files are read without following links out of it."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from msgspec import Struct

from dittybag.domain.display import format_size

#: Modification time, size, inode and change time of a file; differs whenever the file has changed.
Stamp = tuple[int, int, int, int]

#: Limits, in case a library is a whole home directory.
MAX_FILES: Final = 10_000
MAX_ENTRIES: Final = 20_000
MAX_DEPTH: Final = 16

#: Folders that never contain prompts.
_IGNORED_FOLDERS: Final = frozenset({"node_modules", "__pycache__"})
#: The only hidden folder that is read.
_CLAUDE_FOLDER: Final = ".claude"

_OPEN_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
#: Non-blocking: opening a FIFO would otherwise wait for a writer.
_OPEN_FILE: Final = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_CHUNK_BYTES: Final = 1024 * 1024


class UnreadableFile(Exception):
    """A file cannot or must not be read. `problem` is a phrase to follow the file name and a colon."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        self.problem = problem
        self.line = line
        super().__init__(problem)


class MissingFile(UnreadableFile):
    """The file does not exist."""

    def __init__(self) -> None:
        super().__init__("not found")


class FolderListing(Struct, frozen=True):
    """The readable files of a folder, and what was skipped."""

    files: dict[str, Stamp]
    #: Paths and inodes of all folders; the first is the folder itself, with an empty path.
    folders: dict[str, int]
    #: Skipped files and folders, and why.
    skipped: dict[str, str]
    #: Files and folders that cannot be read, and why; an empty path is the folder itself.
    unreadable: dict[str, str] = {}


def stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)


class SafeFolder(Struct, frozen=True):
    """A folder on disk. File names are relative to it, with "/" as the separator."""

    path: str
    #: Whether files may have further names. Dittybag's own updates create them for a moment.
    allows_hard_links: bool = False

    def stamp(self, file: str) -> Stamp | None:
        """The stamp of a regular file; None if there is no such file."""
        if os.sep not in file and (stamp := self._unlinked_stamp(file)) is not None:
            # A plain name without a link cannot lead out of the folder.
            return stamp
        inside = self._resolve(file)
        return None if inside is None else self._unlinked_stamp(inside)

    def _unlinked_stamp(self, file: str) -> Stamp | None:
        try:
            status = os.lstat(os.path.join(self.path, file))
        except (OSError, ValueError):
            return None
        return stamp_of(status) if stat.S_ISREG(status.st_mode) else None

    def list(self) -> FolderListing:
        """List all readable files below the folder."""
        listing = FolderListing({}, {}, {}, {})
        try:
            descriptor = os.open(self.path, _OPEN_FOLDER)
        except FileNotFoundError:
            # It no longer exists.
            return listing
        except OSError as error:
            listing.unreadable[""] = f"this folder cannot be read: {_describe(error)}"
            return listing
        try:
            self._walk(descriptor, "", 0, listing)
        except OSError as error:
            listing.unreadable[""] = f"this folder cannot be read: {_describe(error)}"
        finally:
            os.close(descriptor)
        return listing

    def _walk(self, descriptor: int, inside: str, depth: int, listing: FolderListing) -> None:
        """List an open folder. A descriptor is used because its path could be replaced meanwhile."""
        listing.folders[inside.rstrip("/")] = os.fstat(descriptor).st_ino
        with os.scandir(descriptor) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
        for entry in entries:
            name = inside + entry.name
            if len(listing.files) == MAX_FILES:
                listing.skipped[name] = f"too many files: a library can have at most {MAX_FILES:,}"
                return
            if len(listing.files) + len(listing.skipped) + len(listing.folders) >= MAX_ENTRIES:
                listing.skipped[name] = (
                    f"too many entries: at most {MAX_ENTRIES:,} files and folders are scanned"
                )
                return
            try:
                if (reason := _skip_reason(entry, depth)) is not None:
                    listing.skipped[name if name.isprintable() else ascii(name)] = reason
                elif entry.is_dir(follow_symlinks=False):
                    self._walk_subfolder(descriptor, entry.name, name, depth, listing)
                elif not entry.is_symlink():
                    listing.files[name] = stamp_of(entry.stat(follow_symlinks=False))
                elif (stamp := self.stamp(name)) is not None:
                    listing.files[name] = stamp
                else:
                    listing.skipped[name] = "a link to something other than a file in this library"
            except FileNotFoundError:
                # Deleted during the scan.
                continue
            except OSError as error:
                listing.unreadable[name] = f"cannot be read: {_describe(error)}"

    def _walk_subfolder(self, parent: int, name: str, path: str, depth: int, listing: FolderListing) -> None:
        descriptor = os.open(name, _OPEN_FOLDER | _NO_FOLLOW, dir_fd=parent)
        try:
            self._walk(descriptor, f"{path}/", depth + 1, listing)
        finally:
            os.close(descriptor)

    def read(self, file: str, max_bytes: int) -> tuple[Stamp, bytes]:
        """The stamp and content of a file of at most `max_bytes`. Raises `UnreadableFile`."""
        try:
            descriptor = self._open(file)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                raise MissingFile from error
            raise UnreadableFile(f"cannot be read: {_describe(error)}") from error
        try:
            return _read_all(descriptor, max_bytes, allow_hard_links=self.allows_hard_links)
        except OSError as error:
            raise UnreadableFile(f"cannot be read: {_describe(error)}") from error
        finally:
            os.close(descriptor)

    def read_text(self, file: str, max_bytes: int) -> tuple[Stamp, str]:
        """The stamp and text of a file. Raises `UnreadableFile`."""
        stamp, content = self.read(file, max_bytes)
        return stamp, decode_text(content)

    def _open(self, file: str) -> int:
        """Open a file so that no link can lead out of the folder, even if links change meanwhile."""
        try:
            return self._open_unlinked(file)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                raise
            # The path has a link, which may lead to another file in this folder.
            inside = self._resolve(file)
            if inside is None:
                raise UnreadableFile("outside the library") from error
            if inside == file:
                raise
            return self._open_unlinked(inside)

    def _open_unlinked(self, file: str) -> int:
        parts = file.split("/")
        if any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts):
            raise UnreadableFile("outside the library")
        if os.open not in os.supports_dir_fd:
            if self._resolve(file) is None:
                raise UnreadableFile("outside the library")
            return os.open(os.path.join(self.path, *parts), _OPEN_FILE)
        parent = os.open(self.path, _OPEN_FOLDER)
        try:
            for part in parts[:-1]:
                inner = os.open(part, _OPEN_FOLDER | _NO_FOLLOW, dir_fd=parent)
                os.close(parent)
                parent = inner
            return os.open(parts[-1], _OPEN_FILE, dir_fd=parent)
        finally:
            os.close(parent)

    def _resolve(self, file: str) -> str | None:
        """The path after following links, relative to the folder; None if it is outside."""
        if "\0" in file:
            return None
        try:
            root = os.path.realpath(self.path)
            target = os.path.realpath(os.path.join(root, file))
        except (OSError, ValueError):
            return None
        inside = os.path.join(root, "")
        return target[len(inside) :].replace(os.sep, "/") if target.startswith(inside) else None


def _read_all(descriptor: int, max_bytes: int, *, allow_hard_links: bool) -> tuple[Stamp, bytes]:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableFile("not a regular file")
    if status.st_nlink > 1 and not allow_hard_links:
        # The other name may be outside of the folder.
        raise UnreadableFile("a hard link: the file has another name elsewhere; replace it with a copy")
    chunks = []
    # The file may grow while it is read, so the size is also checked while reading.
    room = max_bytes + 1 if status.st_size <= max_bytes else 0
    while room > 0 and (chunk := os.read(descriptor, min(room, _CHUNK_BYTES))):
        chunks.append(chunk)
        room -= len(chunk)
    if room <= 0:
        raise UnreadableFile(f"larger than {format_size(max_bytes)}")
    return stamp_of(status), b"".join(chunks)


def decode_text(content: bytes) -> str:
    """Decode the content of a file. Raises `UnreadableFile`."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableFile("not valid UTF-8", line) from error
    if "\0" in text:
        raise UnreadableFile(
            "not a text file (it contains a NUL byte)", text.count("\n", 0, text.index("\0")) + 1
        )
    return text


def _skip_reason(entry: os.DirEntry[str], depth: int) -> str | None:
    """Why an entry of a folder is skipped; None if it is not."""
    if not entry.name.isprintable():
        return "the name contains unprintable characters"
    if entry.is_dir(follow_symlinks=False):
        if entry.name.startswith(".") and entry.name != _CLAUDE_FOLDER:
            return "hidden"
        if entry.name in _IGNORED_FOLDERS:
            return "never contains prompts"
        return f"nested more than {MAX_DEPTH} folders deep" if depth >= MAX_DEPTH else None
    return None if entry.is_symlink() or entry.is_file() else "not a regular file"


def _describe(error: OSError) -> str:
    return (error.strerror or "unknown reason").lower()
