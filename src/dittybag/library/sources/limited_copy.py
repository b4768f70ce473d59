"""Copy the files of a library source to a folder, within limits."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from dittybag import files
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

_PROGRESS_INTERVAL_SECONDS: Final = 0.1

_SKIP_REASONS: Final = {
    "link": "a symbolic link",
    "special": "not a regular file",
    "folder": "a folder that is nested too deep",
}


class CopyLimits(Struct, frozen=True):
    """The maximum size of a library."""

    files: int = 10_000
    file_bytes: int = MAX_FILE_BYTES
    bytes: int = 64 * 1024 * 1024
    #: Including skipped files and folders.
    entries: int = MAX_WALK_ENTRIES


COPY_LIMITS: Final = CopyLimits()


class SkippedFile(Struct, frozen=True):
    """A file of a source that was not copied."""

    file: str
    reason: str


class LimitedCopy:
    """Copies the files of one source to a new folder, and records skipped files."""

    def __init__(
        self,
        folder: Path,
        source: str,
        *,
        limits: CopyLimits = COPY_LIMITS,
        progress: ReportProgress | None = None,
    ) -> None:
        """`source`: the name of the source in messages."""
        self.files: dict[str, str] = {}
        self.skipped: list[SkippedFile] = []
        self.limits = limits
        self.source = source
        self._folder = folder
        self._folders: set[Path] = {folder}
        self._bytes = 0
        self._entries = 0
        self._progress = progress
        self._reported_at = 0.0
        folder.mkdir()

    def count(self) -> None:
        """Count an entry of the source. Raises `LibraryTooLarge` beyond the limit."""
        self._entries += 1
        if self._entries > self.limits.entries:
            raise self.too_many_entries()

    def accepts(self, path: str, special: str | None = None) -> bool:
        """Whether the file at this path may be copied; if not, it is recorded as skipped.

        `special`: what it is, if it is not a regular file.
        """
        self.count()
        if is_in_git_folder(path):
            reason = "part of a Git repository"
        elif is_junk_file(path.rpartition("/")[2]):
            reason = "created by a file manager"
        elif special is not None:
            reason = special
        elif problem := path_problem(path):
            reason = problem
        else:
            return True
        self.skip(path, reason)
        return False

    def fits(self, path: str, size: int) -> bool:
        """Whether a file of this size may be copied; if not, it is recorded as skipped."""
        if size <= self.limits.file_bytes:
            return True
        self.skip(path, self._too_large())
        return False

    def skip(self, path: str, reason: str) -> None:
        self.skipped.append(SkippedFile(printable(path), reason))

    def write(self, path: str, content: Iterable[bytes]) -> None:
        """Write a file. The limits apply to the bytes actually read.

        Raises `LibraryTooLarge` if the source has too many files or bytes.
        """
        if len(self.files) >= self.limits.files:
            raise self.too_large(f"it has more than {self.limits.files:,} files")
        target = self._folder / path
        try:
            descriptor = self._create(target)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            # Two names can be the same file, for example on a case-insensitive file system.
            self.skip(path, "another file or folder has this name")
            return
        digest = sha256()
        size = 0
        with os.fdopen(descriptor, "wb") as file:
            for chunk in content:
                size += len(chunk)
                if size > self.limits.file_bytes:
                    break
                self._bytes += len(chunk)
                if self._bytes > self.limits.bytes:
                    raise self.too_large(
                        f"its files are larger than {self.limits.bytes // 1024 // 1024} MiB in total"
                    )
                digest.update(chunk)
                file.write(chunk)
        if size > self.limits.file_bytes:
            target.unlink()
            self.skip(path, self._too_large())
            return
        self.files[path] = digest.hexdigest()
        self._report_progress()

    def add_folder(self, folder: str) -> None:
        """Copy all files below a folder. Raises `SourceFailed` if one cannot be read."""
        for file in self._walk(folder):
            reason = _SKIP_REASONS.get(file.kind)
            if file.kind == "file" and file.status.st_nlink > 1:
                # Like a symbolic link, it may be a file from elsewhere.
                reason = "a hard link"
            if self.accepts(file.path, reason) and self.fits(file.path, file.status.st_size):
                self.write(file.path, self._read(file))

    def _walk(self, folder: str) -> Iterator[files.WalkedFile]:
        try:
            yield from walk(folder, limit=self.limits.entries)
        except files.TooManyFiles:
            raise self.too_many_entries() from None
        except OSError as error:
            raise self._unreadable(str(error.filename or folder), error) from error

    def _read(self, file: files.WalkedFile) -> Iterator[bytes]:
        try:
            yield from file.chunks()
        except OSError as error:
            raise self._unreadable(file.path, error) from error

    def _unreadable(self, path: str, error: OSError) -> SourceFailed:
        return self.failure(f"{printable(path)}: {error.strerror or error}")

    def finish(self) -> None:
        """Raise `LibraryRefused` if no file was copied."""
        if not self.files:
            raise self.refusal("it has no files that can be added")

    def refusal(self, problem: str) -> LibraryRefused:
        return LibraryRefused(self.source, problem)

    def too_large(self, problem: str) -> LibraryTooLarge:
        return LibraryTooLarge(self.source, problem)

    def too_many_entries(self) -> LibraryTooLarge:
        return self.too_large(f"it has more than {self.limits.entries:,} files and folders")

    def failure(self, problem: str) -> SourceFailed:
        return SourceFailed(self.source, problem)

    def _create(self, target: Path) -> int:
        if target.parent not in self._folders:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._folders.add(target.parent)
        return os.open(target, files.NEW_FILE, 0o644)

    def _too_large(self) -> str:
        return f"larger than {self.limits.file_bytes // 1024 // 1024} MiB"

    def _report_progress(self) -> None:
        if self._progress is not None and time.monotonic() - self._reported_at > _PROGRESS_INTERVAL_SECONDS:
            self._reported_at = time.monotonic()
            self._progress(f"{len(self.files):,} files, {self._bytes / 1024 / 1024:.1f} MiB")
