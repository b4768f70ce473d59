"""A folder whose files are read without following links out of it."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from msgspec import Struct

from dittybag import files
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
    #: Those of the files that are links to other files of the folder.
    links: set[str] = set()


def stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)


class SafeFolder(Struct, frozen=True):
    """A folder on disk. File names are relative to it, with "/" as the separator."""

    path: str

    def stamp(self, file: str) -> Stamp | None:
        """The stamp of a regular file; None if there is no such file."""
        if os.sep not in file and (stamp := self.unlinked_stamp(file)) is not None:
            # A plain name without a link cannot lead out of the folder.
            return stamp
        inside = self._resolve(file)
        return None if inside is None else self.unlinked_stamp(inside)

    def unlinked_stamp(self, file: str) -> Stamp | None:
        """The stamp of a regular file; None if there is none, or if it is a link."""
        try:
            status = os.lstat(os.path.join(self.path, file))
        except (OSError, ValueError):
            return None
        return stamp_of(status) if stat.S_ISREG(status.st_mode) else None

    def list(self) -> FolderListing:
        """List all readable files below the folder."""
        listing = FolderListing({}, {}, {}, {}, set())

        def report(path: str, error: OSError) -> None:
            listing.unreadable[path] = f"cannot be read: {files.describe(error)}"

        def enter(folder: files.WalkedFile) -> bool:
            if _skip_reason(folder) is not None or _limit_reached(listing) is not None:
                return False
            listing.folders[folder.path] = folder.status.st_ino
            return True

        try:
            root = files.open_folder(self.path)
            try:
                listing.folders[""] = os.fstat(root).st_ino
                for entry in files.walk(root, enter=enter, on_error=report):
                    if (limit := _limit_reached(listing)) is not None:
                        listing.skipped[entry.path] = limit
                        break
                    self._add(entry, listing)
            finally:
                os.close(root)
        except FileNotFoundError:
            # It no longer exists.
            pass
        except OSError as error:
            listing.unreadable[""] = f"this folder cannot be read: {files.describe(error)}"
        return listing

    def _add(self, entry: files.WalkedFile, listing: FolderListing) -> None:
        name = entry.path
        if (reason := _skip_reason(entry)) is not None:
            listing.skipped[name if name.isprintable() else ascii(name)] = reason
        elif entry.kind == "file":
            listing.files[name] = stamp_of(entry.status)
        elif (stamp := self.stamp(name)) is not None:
            listing.files[name] = stamp
            listing.links.add(name)
        else:
            listing.skipped[name] = "a link to something other than a file in this library"

    def read(self, file: str, max_bytes: int, *, follow_links: bool = True) -> tuple[Stamp, bytes]:
        """The stamp and content of a file of at most `max_bytes`. Raises `UnreadableFile`.

        `follow_links`: read links to other files of this folder.
        """
        try:
            descriptor = self._open(file) if follow_links else self._open_unlinked(file)
            try:
                status = os.fstat(descriptor)
                if status.st_nlink > 1:
                    # The other name may be outside of the folder.
                    raise UnreadableFile(
                        "a hard link: the file has another name elsewhere; replace it with a copy"
                    )
                return stamp_of(status), files.read_open(descriptor, status.st_size, max_bytes)
            finally:
                os.close(descriptor)
        except files.NotRegularFile:
            raise UnreadableFile("not a regular file") from None
        except files.FileTooLarge:
            raise UnreadableFile(f"larger than {format_size(max_bytes)}") from None
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                raise MissingFile from error
            raise UnreadableFile(f"cannot be read: {files.describe(error)}") from error

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
        folder = files.open_below(self.path, "/".join(parts[:-1]))
        try:
            return files.open_regular(parts[-1], folder)
        finally:
            os.close(folder)

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


def _limit_reached(listing: FolderListing) -> str | None:
    """Why no further entries are listed; None if there is room."""
    if len(listing.files) == MAX_FILES:
        return f"too many files: a library can have at most {MAX_FILES:,}"
    if len(listing.files) + len(listing.skipped) + len(listing.folders) >= MAX_ENTRIES:
        return f"too many entries: at most {MAX_ENTRIES:,} files and folders are scanned"
    return None


def _skip_reason(entry: files.WalkedFile) -> str | None:
    """Why an entry of a folder is skipped; None if it is not."""
    if not entry.name.isprintable():
        return "the name contains unprintable characters"
    if entry.kind == "folder":
        if entry.name.startswith(".") and entry.name != _CLAUDE_FOLDER:
            return "hidden"
        if entry.name in _IGNORED_FOLDERS:
            return "never contains prompts"
        return f"nested more than {MAX_DEPTH} folders deep" if entry.depth > MAX_DEPTH else None
    return "not a regular file" if entry.kind == "special" else None
