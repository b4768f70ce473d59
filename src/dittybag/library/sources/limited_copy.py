"""The intake: files on their way into a library, counted while they come, and written to a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from dittybag.domain.errors import LibraryRefused, SourceFailed
from dittybag.library.file_walk import MAX_WALK_ENTRIES
from dittybag.library.install_records import MAX_FILE_BYTES
from dittybag.library.relative_paths import is_in_git_folder, is_junk_file, path_problem, shown

#: Told from time to time how far it is, in a line for people.
Progress: TypeAlias = Callable[[str], None]

_BETWEEN_REPORTS: Final = 0.1


class CopyLimits(Struct, frozen=True):
    """How much a library may be."""

    files: int = 10_000
    file_bytes: int = MAX_FILE_BYTES
    bytes: int = 64 * 1024 * 1024
    #: Also counting what is left out.
    entries: int = MAX_WALK_ENTRIES


COPY_LIMITS: Final = CopyLimits()


class SkippedFile(Struct, frozen=True):
    """Something that does not belong into a library."""

    file: str
    #: To be read after the file.
    reason: str


class LimitedCopy:
    """Takes the files of one source."""

    def __init__(
        self, folder: Path, source: str, *, limits: CopyLimits = COPY_LIMITS, progress: Progress | None = None
    ) -> None:
        """`source`: as messages name it."""
        self.files: dict[str, str] = {}
        self.left_out: list[SkippedFile] = []
        self.limits = limits
        self.source = source
        self._folder = folder
        self._folders: set[Path] = {folder}
        self._bytes = 0
        self._seen = 0
        self._progress = progress
        self._reported = 0.0
        folder.mkdir()

    def count(self) -> None:
        """Something is there, wanted or not."""
        self._seen += 1
        if self._seen > self.limits.entries:
            raise self.refusal(f"holds more than {self.limits.entries:,} files and folders")

    def wants(self, path: str, kind: str | None = None) -> bool:
        """Whether the file at this path is for a library; if not, that is noted.

        `kind`: what it is, if it is no file, to be read after "is".
        """
        self.count()
        if is_in_git_folder(path):
            reason = "belongs to a Git repository"
        elif is_junk_file(path.rpartition("/")[2]):
            reason = "was left there by a file manager"
        elif kind is not None:
            reason = f"is {kind}"
        elif problem := path_problem(path):
            reason = problem
        else:
            return True
        self.leave_out(path, reason)
        return False

    def fits(self, path: str, size: int) -> bool:
        """Whether a file of this size may come in; if not, that is noted."""
        if size <= self.limits.file_bytes:
            return True
        self.leave_out(path, self._too_large())
        return False

    def leave_out(self, path: str, reason: str) -> None:
        self.left_out.append(SkippedFile(shown(path), reason))

    def take(self, path: str, content: Iterable[bytes]) -> None:
        """Write a file. What `content` announced does not count: it is measured."""
        if len(self.files) >= self.limits.files:
            raise self.refusal(f"holds more than {self.limits.files:,} files")
        target = self._folder / path
        try:
            descriptor = self._create(target)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            # On a file system where names differ by more than case.
            self.leave_out(path, "has the name of another file or folder")
            return
        digest = sha256()
        size = 0
        with os.fdopen(descriptor, "wb") as file:
            for piece in content:
                size += len(piece)
                if size > self.limits.file_bytes:
                    break
                self._bytes += len(piece)
                if self._bytes > self.limits.bytes:
                    raise self.refusal(f"holds more than {self.limits.bytes // 1024 // 1024} MiB")
                digest.update(piece)
                file.write(piece)
        if size > self.limits.file_bytes:
            target.unlink()
            self.leave_out(path, self._too_large())
            return
        self.files[path] = digest.hexdigest()
        self._report()

    def finish(self) -> None:
        """Everything has come. Raises if that is nothing."""
        if not self.files:
            raise self.refusal("holds no files that could be taken")

    def refusal(self, problem: str) -> LibraryRefused:
        return LibraryRefused(self.source, problem)

    def failure(self, problem: str) -> SourceFailed:
        return SourceFailed(self.source, problem)

    def _create(self, target: Path) -> int:
        if target.parent not in self._folders:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._folders.add(target.parent)
        return os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)

    def _too_large(self) -> str:
        return f"is larger than {self.limits.file_bytes // 1024 // 1024} MiB"

    def _report(self) -> None:
        if self._progress is not None and time.monotonic() - self._reported > _BETWEEN_REPORTS:
            self._reported = time.monotonic()
            self._progress(f"{len(self.files):,} files, {self._bytes / 1024 / 1024:.1f} MiB")
