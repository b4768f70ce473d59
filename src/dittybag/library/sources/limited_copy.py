"""Copy the files of a library source to a folder, within limits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from dittybag import files
from dittybag.domain.display import format_count
from dittybag.domain.errors import LibraryRefused, LibraryTooLarge, SourceFailed
from dittybag.domain.progress import ReportProgress
from dittybag.library.install_records import MAX_FILE_BYTES
from dittybag.library.relative_paths import (
    MAX_WALK_ENTRIES,
    is_in_git_folder,
    is_junk_file,
    path_problem,
    printable,
    walk,
)

_MAX_FILES: Final = 10_000
_MAX_BYTES: Final = 64 * 1024 * 1024
_TOO_LARGE: Final = f"larger than {MAX_FILE_BYTES // 1024 // 1024} MiB"
#: Progress is reported after the first file, and then after this many.
_PROGRESS_FILES: Final = 20

_SKIP_REASONS: Final = {
    "link": "a symbolic link",
    "special": "not a regular file",
    "folder": "a folder that is nested too deep",
}


class SkippedFile(Struct, frozen=True):
    """A file of a source that was not copied."""

    file: str
    reason: str


class LimitedCopy:
    """Copies the files of one source to a new folder, and records skipped files."""

    def __init__(self, folder: Path, source: str, progress: ReportProgress | None = None) -> None:
        """`source`: the name of the source in messages."""
        #: The SHA-256 of each copied file.
        self.files: dict[str, str] = {}
        self.skipped: list[SkippedFile] = []
        self._source = source
        self._folder = folder
        self._bytes = 0
        self._entries = 0
        self._progress = progress
        folder.mkdir()

    def count(self) -> None:
        """Count an entry of the source, skipped or not. Raises `LibraryTooLarge` beyond the limit."""
        self._entries += 1
        if self._entries > MAX_WALK_ENTRIES:
            raise self._too_many_entries()

    def accepts(self, path: str, size: int, special: str | None = None) -> bool:
        """Whether the file at this path may be copied; if not, it is recorded as skipped.

        `special`: what it is, if it is not a regular file.
        """
        self.count()
        if is_in_git_folder(path):
            reason: str | None = "part of a Git repository"
        elif is_junk_file(path.rpartition("/")[2]):
            reason = "created by a file manager"
        else:
            reason = special or path_problem(path) or (_TOO_LARGE if size > MAX_FILE_BYTES else None)
        if reason is not None:
            self.skip(path, reason)
        return reason is None

    def skip(self, path: str, reason: str) -> None:
        self.skipped.append(SkippedFile(printable(path), reason))

    def write(self, path: str, content: bytes) -> None:
        """Write a file. Raises `LibraryTooLarge` if the source has too many files or bytes."""
        self._bytes += len(content)
        if len(self.files) == _MAX_FILES:
            raise self.too_large(f"it has more than {_MAX_FILES:,} files")
        if self._bytes > _MAX_BYTES:
            raise self.too_large(f"its files are larger than {_MAX_BYTES // 1024 // 1024} MiB in total")
        target = self._folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(target, files.NEW_FILE, 0o644), "wb") as file:
                file.write(content)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            # Two names can be the same file, for example on a case-insensitive file system.
            self.skip(path, "another file or folder has this name")
            return
        self.files[path] = sha256(content).hexdigest()
        if self._progress is not None and len(self.files) % _PROGRESS_FILES == 1:
            self._progress(format_count(len(self.files), "file"))

    def add_folder(self, folder: str) -> None:
        """Copy all files below a folder.

        Raises `SourceFailed` if one cannot be read. If it were skipped, an update would delete it.
        """
        for file in self._walk(folder):
            reason = _SKIP_REASONS.get(file.kind)
            if file.kind == "file" and file.status.st_nlink > 1:
                # Like a symbolic link, it may be a file from elsewhere.
                reason = "a hard link"
            if not self.accepts(file.path, file.status.st_size, reason):
                continue
            try:
                content = file.read(MAX_FILE_BYTES)
            except OSError as error:
                raise self._unreadable(file.path, error) from error
            self.write(file.path, content)

    def _walk(self, folder: str) -> Iterator[files.WalkedFile]:
        try:
            yield from walk(folder)
        except files.TooManyFiles:
            raise self._too_many_entries() from None
        except OSError as error:
            raise self._unreadable(str(error.filename or folder), error) from error

    def finish(self) -> None:
        """Raise `LibraryRefused` if no file was copied."""
        if not self.files:
            raise self.refusal("it has no files that can be added")

    def refusal(self, problem: str) -> LibraryRefused:
        return LibraryRefused(self._source, problem)

    def too_large(self, problem: str) -> LibraryTooLarge:
        return LibraryTooLarge(self._source, problem)

    def failure(self, problem: str) -> SourceFailed:
        return SourceFailed(self._source, problem)

    def _too_many_entries(self) -> LibraryTooLarge:
        return self.too_large(f"it has more than {MAX_WALK_ENTRIES:,} files and folders")

    def _unreadable(self, path: str, error: OSError) -> SourceFailed:
        return self.failure(f"{printable(path)}: {files.describe(error)}")
