"""The installer: add, create, update and remove libraries.

An update builds the complete new library next to the old one and swaps the two folders in one step. A running
server sees either the old library or the new one, also after a crash. Unchanged files and all local files are
hard-linked into the new folder, so they keep their timestamps, and an editor with an open file still writes
to the same file. Edits made between the scan and the swap are found in the old folder afterwards and backed
up.

Local files and edits are never deleted: `update --overwrite` and `remove --yes` move them to
HOME/libraries/.dittybag/kept/NAME/TIME and report that folder.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from dittybag import files
from dittybag.domain.errors import (
    Invalid,
    LibraryEdited,
    LibraryExists,
    LibraryNotFound,
    LibraryRefused,
    LibraryUnwritable,
    Outdated,
    Problem,
    SourceFailed,
    SourceNotFound,
)
from dittybag.domain.libraries import library_name
from dittybag.domain.progress import ReportProgress
from dittybag.library import atomic_install, starter_library
from dittybag.library.file_walk import walk
from dittybag.library.install_records import (
    InstallRecord,
    edited_files,
    file_digests,
    folders_by_name,
    libraries_folder,
    library_folder,
    read_record,
    records_folder,
)
from dittybag.library.relative_paths import MAX_NAME_BYTES, path_problem, printable, replace_surrogates
from dittybag.library.sources.limited_copy import LimitedCopy, SkippedFile
from dittybag.library.sources.source_argument import LibrarySource, parse_source
from dittybag.library.update_merge import MergePlan, plan_merge

_CHUNK_BYTES: Final = 1024 * 1024


class AddResult(Struct, frozen=True, kw_only=True):
    """The result of adding or creating a library."""

    name: str
    path: str
    record: InstallRecord
    left_out: tuple[SkippedFile, ...] = ()


class UpdateResult(Struct, frozen=True, kw_only=True):
    """The result of updating a library."""

    name: str
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    #: Files with local edits, which were not changed.
    kept: tuple[str, ...] = ()
    #: The kept files that also changed in the source.
    conflicts: tuple[str, ...] = ()
    revision: str | None = None
    #: Files with local edits that were replaced, and the folder they were moved to.
    put_aside: tuple[str, ...] = ()
    kept_in: str | None = None
    left_out: tuple[SkippedFile, ...] = ()
    #: Why the library cannot be updated.
    note: str | None = None


class RemoveResult(Struct, frozen=True, kw_only=True):
    """The result of removing a library."""

    name: str
    #: The library's folder. The folder of a linked library still exists.
    path: str
    link: bool = False
    #: Where its folder was moved, if it had local files or edits.
    kept_in: str | None = None


def add(
    home: str,
    source: str,
    *,
    name: str | None = None,
    folder: str | None = None,
    link: bool = False,
    progress: ReportProgress | None = None,
) -> AddResult:
    """Add a folder, a zip file or a Git repository as a library.

    `folder`: add only this subfolder of the source. `link`: read the folder in place instead of copying it.
    """
    home = str(Path(home).absolute())
    parsed = parse_source(source)
    subfolder = _check_subfolder(folder, parsed)
    library = _parse_name(parsed.name if name is None else name)
    with _disk_errors(home):
        _check_name_free(home, library)
        if link:
            return _link(home, library, parsed, subfolder)
        with atomic_install.staging_folder(home) as work:
            content = _fetch(home, parsed, subfolder, work, progress)
            now = _now()
            record = InstallRecord(
                kind=parsed.kind,
                location=parsed.location,
                folder=subfolder,
                revision=content.revision,
                added_at=now,
                updated_at=now,
                files=content.files,
            )
            _install(home, library, content.folder, record)
    return AddResult(
        name=library, path=library_folder(home, library), record=record, left_out=tuple(content.left_out)
    )


def create(home: str, name: str) -> AddResult:
    """Create a library with one example prompt."""
    home = str(Path(home).absolute())
    library = _parse_name(name)
    path = library_folder(home, library)
    with _disk_errors(home):
        _check_name_free(home, library)
        with atomic_install.staging_folder(home) as work:
            target = LimitedCopy(work / "library", path)
            for file, text in starter_library.starter_files(library).items():
                target.write(file, (text.encode(),))
            now = _now()
            record = InstallRecord(
                kind="new", location=path, added_at=now, updated_at=now, files=target.files
            )
            _install(home, library, work / "library", record)
    return AddResult(name=library, path=path, record=record)


def update(
    home: str, name: str, *, overwrite: bool = False, progress: ReportProgress | None = None
) -> UpdateResult:
    """Update a library from its source and keep local edits.

    `overwrite`: replace edited files with the source's version, after backing them up.
    """
    home = str(Path(home).absolute())
    library = library_name(name)
    record = read_record(home, library) if library else None
    if (note := _why_not_updatable(home, name, record)) is not None:
        return UpdateResult(name=library, note=note)
    assert record is not None
    source = _source_of(record)
    with _disk_errors(home), atomic_install.staging_folder(home) as work:
        content = _fetch(home, source, record.folder, work, progress)
        with atomic_install.locked(home):
            if read_record(home, library) != record:
                raise Outdated("library", library)
            updated_record = msgspec.structs.replace(
                record,
                kind=source.kind,
                revision=content.revision,
                updated_at=max(_now(), record.updated_at + 1),
                files=content.files,
            )
            update = _LibraryUpdate(
                home=home,
                name=library,
                work=work,
                content=content,
                record=record,
                updated_record=updated_record,
            )
            return update.run(overwrite=overwrite)


def remove(home: str, name: str, *, discard_edits: bool = False) -> RemoveResult:
    """Remove a library.

    A library that was edited or added by hand is only removed with `discard_edits`, and its folder is then
    moved to a backup folder. The folder of a linked library is not touched. Raises `LibraryNotFound` or
    `LibraryEdited`.
    """
    home = str(Path(home).absolute())
    library = library_name(name)
    if not library or not Path(libraries_folder(home)).is_dir():
        raise LibraryNotFound(name)
    with _disk_errors(home), atomic_install.staging_folder(home) as work, atomic_install.locked(home):
        record = read_record(home, library)
        if record is not None and record.kind == "link":
            atomic_install.delete_record(home, library)
            return RemoveResult(name=library, path=record.location, link=True)
        # The path comes from the name, never from the record, which anyone could have edited.
        path = library_folder(home, library) if record is not None else folders_by_name(home).get(library)
        if path is None:
            # The record is unreadable or its folder no longer exists.
            atomic_install.delete_record(home, library)
            raise LibraryNotFound(name)
        edited = [] if record is None else edited_files(path, record)
        by_hand = record is None or Path(path).is_symlink()
        if (by_hand or edited) and not discard_edits:
            raise LibraryEdited(
                library, [] if by_hand else [printable(file) or "too many files" for file in edited]
            )
        return _remove_folder(home, library, Path(path), work, record=None if by_hand or edited else record)


def _remove_folder(
    home: str, name: str, path: Path, work: Path, *, record: InstallRecord | None
) -> RemoveResult:
    """Remove a library's folder. It is backed up unless `record` shows that it has no local edits."""
    if path.is_symlink():
        # A symbolic link that the user created: only the link is removed.
        target = str(path.resolve())
        path.unlink()
        atomic_install.delete_record(home, name)
        return RemoveResult(name=name, path=target, link=True)
    kept = None if record is not None else atomic_install.create_backup_folder(home, name)
    aside = kept or work / "removed"
    atomic_install.move_out(home, name, path, aside)
    if record is not None and edited_files(str(aside), record):
        # Edited after it was compared with the record.
        kept = atomic_install.create_backup_folder(home, name)
        aside.rename(kept)
    return RemoveResult(name=name, path=str(path), kept_in=None if kept is None else str(kept))


class _FetchedSource(Struct, frozen=True, kw_only=True):
    """A source's files, copied to a folder."""

    folder: Path
    files: dict[str, str]
    left_out: list[SkippedFile]
    revision: str | None = None


class _LibraryUpdate(Struct, kw_only=True):
    """One update of a library after its source was fetched. Requires the lock."""

    home: str
    name: str
    work: Path
    content: _FetchedSource
    record: InstallRecord
    updated_record: InstallRecord
    #: Where local files and edits were moved, if there were any.
    backup: Path | None = None
    #: Files of the source whose names are taken by local files or folders.
    blocked: list[str] = []

    @property
    def library(self) -> Path:
        return Path(library_folder(self.home, self.name))

    def run(self, *, overwrite: bool) -> UpdateResult:
        if self.library.is_symlink():
            raise LibraryRefused(
                str(self.library), "the library is now a symbolic link; remove it and add it again"
            )
        try:
            before = _file_stats(self.library)
            plan = plan_merge(
                self.record.files, file_digests(str(self.library)), self.content.files, overwrite=overwrite
            )
        except files.TooManyFiles:
            raise LibraryRefused(
                str(self.library), "the library now has too many files to be updated"
            ) from None
        late: list[str] = []
        if plan.added or plan.changed or plan.removed:
            new = self._build(before, plan)
            self._back_up(plan.replaced)
            old = atomic_install.replace(self.home, self.name, new, self.updated_record)
            try:
                late = self._back_up_late_edits(old, before)
            except files.TooManyFiles:
                old.rename(_unused_path(self._backup_folder() / "library"))
        else:
            atomic_install.write_record(self.home, self.name, self.updated_record)
        blocked = set(self.blocked)
        return UpdateResult(
            name=self.name,
            added=tuple(file for file in plan.added if file not in blocked),
            changed=plan.changed,
            removed=plan.removed,
            kept=_printable_sorted({*plan.kept, *blocked}),
            conflicts=_printable_sorted({*plan.conflicts, *blocked}),
            revision=self.updated_record.revision,
            put_aside=_printable_sorted({*plan.replaced, *late}),
            kept_in=None if self.backup is None else str(self.backup),
            left_out=tuple(self.content.left_out),
        )

    def _build(self, before: dict[str, os.stat_result], plan: MergePlan) -> Path:
        """Build the updated library: link the files that stay, then add those of the source."""
        new = self.work / "new"
        new.mkdir(mode=self.library.stat().st_mode & 0o777)
        taken = {*plan.added, *plan.changed}
        for file in before:
            if file not in taken and file not in plan.removed:
                _link_or_copy_tree(self.library / file, new / file)
        for file in sorted(taken):
            target = new / file
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                # Not a rename: on a case-insensitive file system that could replace a different file.
                _link_or_copy(self.content.folder / file, target)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                # A local file has the name of a folder in the source, or the other way round.
                self.blocked.append(file)
        atomic_install.sync_files(new, (file for file in taken if file not in self.blocked))
        return new

    def _back_up(self, files: Iterable[str]) -> None:
        for file in files:
            _link_or_copy_tree(self.library / file, self._backup_folder() / file)

    def _back_up_late_edits(self, old: Path, before: dict[str, os.stat_result]) -> list[str]:
        """Back up files that were edited in the old folder after the scan; return their paths."""
        late = []
        for file, state in _file_stats(old).items():
            if file in before and _is_unchanged(before[file], state):
                continue
            try:
                if _same_file((self.library / file).lstat(), state):
                    continue
            except (FileNotFoundError, NotADirectoryError):
                pass
            _link_or_copy_tree(old / file, _unused_path(self._backup_folder() / file))
            late.append(file)
        return late

    def _backup_folder(self) -> Path:
        if self.backup is None:
            self.backup = atomic_install.create_backup_folder(self.home, self.name)
        return self.backup


@contextmanager
def _disk_errors(home: str) -> Iterator[None]:
    """Turn `OSError` into `LibraryUnwritable`. Errors of sources are raised as `SourceFailed`."""
    try:
        yield
    except OSError as error:
        raise LibraryUnwritable(libraries_folder(home), error.strerror or str(error)) from error


def _now() -> int:
    return time.time_ns() // 1000


def _parse_name(text: str) -> str:
    name = library_name(text)
    if not name:
        raise Invalid(
            [
                Problem(
                    "name",
                    f"'{printable(text)}' is not a valid library name; use at least one letter or digit",
                )
            ]
        )
    if len(name.encode()) > MAX_NAME_BYTES:
        raise Invalid([Problem("name", f"name must be at most {MAX_NAME_BYTES} bytes")])
    return name


def _check_subfolder(folder: str | None, source: LibrarySource) -> str:
    subfolder = (folder or "").strip("/")
    while subfolder.startswith("./"):
        subfolder = subfolder[2:].strip("/")
    if subfolder in ("", "."):
        return ""
    if problem := path_problem(subfolder):
        raise LibraryRefused(source.location, f"invalid folder '{printable(subfolder)}': {problem}")
    return subfolder


def _check_name_free(home: str, name: str) -> None:
    if (
        name in folders_by_name(home)
        or read_record(home, name) is not None
        or os.path.lexists(library_folder(home, name))
    ):
        raise LibraryExists(name)


def _install(home: str, name: str, folder: Path, record: InstallRecord) -> None:
    atomic_install.sync_files(folder, record.files)
    with atomic_install.locked(home):
        _check_name_free(home, name)
        atomic_install.install_new(home, name, folder, record)


def _link(home: str, name: str, source: LibrarySource, subfolder: str) -> AddResult:
    if source.kind != "folder":
        raise LibraryRefused(source.location, "only a folder can be linked; omit --link to copy it")
    folder = _subfolder(source, subfolder)
    inside = Path(libraries_folder(home)).resolve()
    if inside == folder or inside in folder.parents or folder in inside.parents:
        raise LibraryRefused(source.location, "Dittybag stores its libraries there; link another folder")
    location = os.path.normpath(Path(source.location, subfolder))
    now = _now()
    record = InstallRecord(kind="link", location=location, added_at=now, updated_at=now)
    with atomic_install.locked(home):
        _check_name_free(home, name)
        atomic_install.write_record(home, name, record)
    return AddResult(name=name, path=location, record=record)


def _fetch(
    home: str, source: LibrarySource, subfolder: str, work: Path, progress: ReportProgress | None
) -> _FetchedSource:
    """Copy the files of a source to a folder inside `work`."""
    folder = work / "library"
    target = LimitedCopy(folder, source.location, progress=progress)
    revision = None
    if source.kind == "git":
        from dittybag.library.sources.git_repositories import fetch

        assert source.remote is not None
        revision = fetch(source.remote, subfolder, work, target, progress=progress)
    elif source.kind == "zip":
        from dittybag.library.sources.zip_archives import unpack

        unpack(_copy_archive(Path(source.location), work / "archive", target), subfolder, target)
    else:
        from dittybag.library.sources.folder_source import copy_folder

        copied = _subfolder(source, subfolder)
        inside = Path(libraries_folder(home)).resolve()
        if copied == inside or copied in inside.parents or Path(records_folder(home)).resolve() == copied:
            raise target.refusal("the folder contains Dittybag's libraries; give a folder inside it")
        copy_folder(str(copied), target)
    target.finish()
    return _FetchedSource(folder=folder, files=target.files, left_out=target.skipped, revision=revision)


def _copy_archive(archive: Path, copy: Path, target: LimitedCopy) -> Path:
    """Copy an archive, so that it cannot change while it is read."""
    from dittybag.library.sources.zip_archives import ARCHIVE_BYTES

    size = 0
    with copy.open("xb") as file:
        for chunk in _read_chunks(archive, target):
            size += len(chunk)
            if size > ARCHIVE_BYTES:
                raise target.too_large(f"the archive is larger than {ARCHIVE_BYTES // 1024 // 1024} MiB")
            file.write(chunk)
    return copy


def _read_chunks(path: Path, target: LimitedCopy) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise target.failure(error.strerror or str(error)) from error


def _subfolder(source: LibrarySource, subfolder: str) -> Path:
    """The subfolder of a source folder. Raises `LibraryRefused` if a link on its path leads out."""
    try:
        whole = Path(source.location).resolve(strict=True)
        folder = (whole / subfolder).resolve(strict=True)
    except FileNotFoundError:
        raise LibraryRefused(source.location, f"there is no folder '{printable(subfolder)}' in it") from None
    except OSError as error:
        raise SourceFailed(source.location, error.strerror or str(error)) from error
    if not folder.is_dir() or (folder != whole and whole not in folder.parents):
        raise LibraryRefused(source.location, f"there is no folder '{printable(subfolder)}' in it")
    return folder


def _why_not_updatable(home: str, name: str, record: InstallRecord | None) -> str | None:
    """Why a library cannot be updated, as the end of a sentence; None if it can."""
    if record is None:
        if library_name(name) not in folders_by_name(home):
            raise LibraryNotFound(name)
        return "was added by hand and has no source to update from"
    if record.kind == "link":
        return f"is linked to {printable(record.location, 1000)} and is always up to date"
    if record.kind == "new":
        return "was created with dittybag library new and has no source to update from"
    return None


def _source_of(record: InstallRecord) -> LibrarySource:
    """The source that a library was installed from. Raises `SourceNotFound`."""
    try:
        return parse_source(record.location)
    except SourceNotFound:
        raise SourceNotFound(printable(record.location), "the library's source no longer exists") from None


def _printable_sorted(files: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(map(replace_surrogates, files)))


def _unused_path(path: Path) -> Path:
    """The path, or with a number appended if it exists."""
    number = 2
    unused = path
    while os.path.lexists(unused):
        unused = path.with_name(f"{path.name}.{number}")
        number += 1
    return unused


def _file_stats(folder: Path) -> dict[str, os.stat_result]:
    return {file.path: file.status for file in walk(folder)}


def _is_unchanged(one: os.stat_result, other: os.stat_result) -> bool:
    return _same_file(one, other) and (one.st_mtime_ns, one.st_size) == (other.st_mtime_ns, other.st_size)


def _same_file(one: os.stat_result, other: os.stat_result) -> bool:
    return one.st_ino == other.st_ino


def _link_or_copy_tree(old: Path, new: Path) -> None:
    """Hard-link or copy a file, a symbolic link or a whole folder from `old` to `new`."""
    new.parent.mkdir(parents=True, exist_ok=True)
    if old.is_symlink() or not old.is_dir():
        _link_or_copy(old, new)
        return
    shutil.copytree(old, new, symlinks=True, copy_function=_link_or_copy, dirs_exist_ok=True)


def _link_or_copy(old: files.AnyPath, new: files.AnyPath) -> None:
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EXDEV, *files.NO_HARD_LINKS):
            raise
        shutil.copy2(old, new, follow_symlinks=False)
