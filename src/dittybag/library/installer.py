"""The installer: add, create, update and remove libraries.

A change is built in a folder below HOME/libraries/.dittybag, on the same file system and without a lock. Only
the last steps need the lock: to update a library, the old and the new folder are swapped, so that a running
server sees one of them, and then the new record takes its place. `finish_interrupted` completes these steps
after a crash.

Edits are never deleted: `update --overwrite` and `remove --yes` move an edited library to
HOME/libraries/.dittybag/kept/NAME/TIME and report that folder.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dittybag import files
from dittybag.domain.errors import (
    Invalid,
    LibrariesBusy,
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
from dittybag.library import starter_library
from dittybag.library.install_records import (
    RECORD_SUFFIX,
    STAGING_PREFIX,
    InstallRecord,
    decode_record,
    digest_of,
    file_digests,
    folders_by_name,
    is_edited,
    libraries_folder,
    library_folder,
    read_record,
    record_file,
    records_folder,
)
from dittybag.library.relative_paths import MAX_NAME_BYTES, path_problem, printable
from dittybag.library.sources.limited_copy import LimitedCopy, SkippedFile
from dittybag.library.sources.source_argument import LibrarySource, parse_source

#: The lock is only held for a few renames, so waiting longer than this means that something is stuck.
_LOCK_SECONDS: Final = 20

#: Inside a staging folder: a file that its process locks, the new library with its record beside it, and the
#: folder for the old library.
_OWNER: Final = "owner"
_NEW: Final = "new"
_OLD: Final = "old"

_RENAME_EXCHANGE: Final = 2  # RENAME_EXCHANGE of renameat2 (Linux), RENAME_SWAP of renamex_np (macOS)
_AT_FDCWD: Final = -100


class AddResult(Struct, frozen=True, kw_only=True):
    """The result of adding or creating a library."""

    name: str
    path: str
    record: InstallRecord
    #: Number of files.
    files: int = 0
    left_out: tuple[SkippedFile, ...] = ()


class UpdateResult(Struct, frozen=True, kw_only=True):
    """The result of updating a library."""

    name: str
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    revision: str | None = None
    #: Where the edited library was moved.
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
    """Add a folder or a Git repository as a library.

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
        with _staging_folder(home) as work:
            copy, revision = _fetch(home, parsed, subfolder, work, progress)
            record = InstallRecord(
                kind=parsed.kind, location=parsed.location, folder=subfolder, revision=revision
            )
            return _install(home, library, work, copy, record)


def create(home: str, name: str) -> AddResult:
    """Create a library with one example prompt."""
    home = str(Path(home).absolute())
    library = _parse_name(name)
    path = library_folder(home, library)
    with _disk_errors(home):
        _check_name_free(home, library)
        with _staging_folder(home) as work:
            copy = LimitedCopy(work / _NEW, path)
            for file, text in starter_library.starter_files(library).items():
                copy.write(file, text.encode())
            return _install(home, library, work, copy, InstallRecord(kind="new", location=path))


def update(
    home: str, name: str, *, overwrite: bool = False, progress: ReportProgress | None = None
) -> UpdateResult:
    """Update a library from its source.

    Raises `LibraryEdited` if it was edited; with `overwrite`, the edited library is moved to another folder.
    """
    home = str(Path(home).absolute())
    library = library_name(name)
    path = folders_by_name(home).get(library)
    if not library or path is None:
        raise LibraryNotFound(name)
    record = read_record(home, library)
    if record is None or record.kind in ("link", "new"):
        return UpdateResult(name=library, note=_why_not_updatable(record))
    kept = None
    with _disk_errors(home), _staging_folder(home) as work:
        copy, revision = _fetch(home, _source_of(record), record.folder, work, progress)
        new_record = replace(record, revision=revision, digest=digest_of(copy.files))
        staged = _stage(work, library, copy, new_record)
        with _locked(home):
            if read_record(home, library) != record or not os.path.isdir(path):
                raise Outdated("library", library)
            before = _digests(path)
            if before != copy.files:
                if not overwrite and digest_of(before) != record.digest:
                    raise LibraryEdited(library)
                kept = _swap(home, Path(path), work, record)
            files.rename(staged, record_file(home, library))
    both = before.keys() & copy.files.keys()
    return UpdateResult(
        name=library,
        added=tuple(sorted(copy.files.keys() - both)),
        changed=tuple(sorted(file for file in both if before[file] != copy.files[file])),
        removed=tuple(sorted(before.keys() - both)),
        revision=revision,
        kept_in=kept,
        left_out=tuple(copy.skipped),
    )


def remove(home: str, name: str, *, discard_edits: bool = False) -> RemoveResult:
    """Remove a library.

    A library that was edited or added by hand is only removed with `discard_edits`, and its folder is then
    moved to another folder. The folder of a linked library is not touched. Raises `LibraryNotFound` or
    `LibraryEdited`.
    """
    home = str(Path(home).absolute())
    library = library_name(name)
    path = folders_by_name(home).get(library)
    if not library or path is None:
        raise LibraryNotFound(name)
    with _disk_errors(home), _staging_folder(home) as work, _locked(home):
        record = read_record(home, library)
        if record is not None and record.kind == "link":
            os.unlink(path)
            return RemoveResult(name=library, path=record.location, link=True)
        is_only_copy = record is None or is_edited(path, record)
        if is_only_copy and not discard_edits:
            raise LibraryEdited(library, by_hand=record is None)
        if is_only_copy:
            kept: str | None = _keep(home, library, Path(path))
        else:
            kept = _keep_edited(home, library, _move_away(Path(path), work), record)
        Path(record_file(home, library)).unlink(missing_ok=True)
        files.sync_folder(records_folder(home))
    return RemoveResult(name=library, path=path, kept_in=kept)


def finish_interrupted(home: str) -> None:
    """Complete the changes of processes that were killed. Raises `LibrariesBusy` and `LibraryUnwritable`."""
    with _disk_errors(home), _locked(home):
        pass


# The steps of a change


@contextmanager
def _locked(home: str) -> Iterator[None]:
    """Hold the lock for changes to libraries, after completing interrupted changes."""
    folder = records_folder(home)
    files.make_folders(folder)
    try:
        with files.locked(f"{folder}/lock", _LOCK_SECONDS):
            for work in sorted(Path(folder).iterdir()):
                is_staging = work.name.startswith(STAGING_PREFIX) and not work.is_symlink()
                if is_staging and work.is_dir() and not _is_owned(work):
                    _finish(home, work)
                    shutil.rmtree(work, ignore_errors=True)
            yield
    except files.LockTimeout:
        raise LibrariesBusy from None


@contextmanager
def _staging_folder(home: str) -> Iterator[Path]:
    """A temporary folder in which to build a change. A locked file in it marks its process as alive."""
    with _locked(home):
        work = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=records_folder(home)))
        owner = os.open(work / _OWNER, files.NEW_FILE, 0o600)
        files.try_lock(owner)
        (work / _OLD).mkdir()
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        os.close(owner)


def _is_owned(work: Path) -> bool:
    """Whether the process that created this staging folder is alive."""
    try:
        descriptor = os.open(work / _OWNER, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return not files.try_lock(descriptor)
    finally:
        os.close(descriptor)


def _stage(work: Path, name: str, copy: LimitedCopy, record: InstallRecord) -> Path:
    """Write the record of a new library, and flush both to disk. Return the file of the record."""
    staged = work / f"{name}{RECORD_SUFFIX}"
    staged.write_bytes(msgspec.json.encode(record))
    for file in (staged, *(work / _NEW / file for file in copy.files)):
        files.sync(str(file), is_last=False)
    files.sync_tree(work)
    return staged


def _install(home: str, name: str, work: Path, copy: LimitedCopy, record: InstallRecord) -> AddResult:
    record = replace(record, digest=digest_of(copy.files))
    staged = _stage(work, name, copy, record)
    path = library_folder(home, name)
    with _locked(home):
        _check_name_free(home, name)
        files.rename(work / _NEW, path)
        files.rename(staged, record_file(home, name))
    return AddResult(name=name, path=path, record=record, files=len(copy.files), left_out=tuple(copy.skipped))


def _swap(home: str, library: Path, work: Path, record: InstallRecord) -> str | None:
    """Replace a library with the new one; return where the old one is kept if it was edited."""
    if _exchange(old := work / _NEW, library):
        files.sync_folder(libraries_folder(home))
    else:
        # For an instant there is no library of this name.
        old = _move_away(library, work)
        files.rename(work / _NEW, library)
    return _keep_edited(home, library_name(library.name), old, record)


def _move_away(library: Path, work: Path) -> Path:
    old = work / _OLD / library.name
    files.rename(library, old)
    return old


def _keep_edited(home: str, name: str, old: Path, record: InstallRecord | None) -> str | None:
    """Keep a library that was moved away if it was edited, maybe only a moment ago; return where it is."""
    return _keep(home, name, old) if record is None or is_edited(str(old), record) else None


def _keep(home: str, name: str, library: Path) -> str:
    folder = Path(records_folder(home), "kept", name)
    folder.mkdir(parents=True, exist_ok=True)
    kept = next(path for path in files.timestamped_names(f"{folder}/") if not os.path.lexists(path))
    files.rename(library, kept)
    return kept


def _finish(home: str, work: Path) -> None:
    """Complete the change of a killed process. Requires the lock.

    With a staged record, that is an installation or an update, which counts once the new library has left the
    staging folder or the old one was moved away. Without one, it is a removal, which counts once the record
    was deleted.
    """
    staged = next(work.glob(f"*{RECORD_SUFFIX}"), None)
    old = next((work / _OLD).glob("*"), None)
    new = work / _NEW
    if old is not None and not os.path.lexists(library := library_folder(home, old.name)):
        if staged is not None:
            files.rename(new, library)
        elif os.path.lexists(record_file(home, library_name(old.name))):
            files.rename(old, library)
    record = None if staged is None else decode_record(staged)
    if staged is None or record is None or (new.exists() and not is_edited(str(new), record)):
        return
    if (replaced := new if new.exists() else old) is not None:
        _keep_edited(home, staged.stem, replaced, read_record(home, staged.stem))
    files.rename(staged, record_file(home, staged.stem))


def _exchange(new: Path, library: Path) -> bool:
    """Swap two folders in one step; return False if the system does not support it."""
    import ctypes

    libc = _load_libc()
    paths = os.fsencode(new), os.fsencode(library)
    try:
        if str(sys.platform) == "darwin":
            status = libc.renamex_np(*paths, ctypes.c_uint(_RENAME_EXCHANGE))
        else:
            status = libc.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], ctypes.c_uint(_RENAME_EXCHANGE))
    except AttributeError:
        return False
    code = ctypes.get_errno()
    if status and code not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP):
        raise OSError(code, os.strerror(code), str(library))
    return not status


def _load_libc() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _digests(path: str) -> dict[str, str]:
    """The digests of the files of a library; none if there are too many to be those that were installed."""
    try:
        return file_digests(path)
    except files.TooManyFiles:
        return {}


# Sources


@contextmanager
def _disk_errors(home: str) -> Iterator[None]:
    """Turn `OSError` into `LibraryUnwritable`. Errors of sources are raised as `SourceFailed`."""
    try:
        yield
    except OSError as error:
        raise LibraryUnwritable(libraries_folder(home), error.strerror or str(error)) from error


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
    """Normalise the subfolder. Raises `LibraryRefused` if it is not a path inside the source."""
    if not folder:
        return ""
    subfolder = folder.removeprefix("./").rstrip("/")
    if problem := path_problem(subfolder):
        raise LibraryRefused(source.location, f"invalid folder '{printable(subfolder)}': {problem}")
    return subfolder


def _check_name_free(home: str, name: str) -> None:
    if name in folders_by_name(home) or os.path.lexists(library_folder(home, name)):
        raise LibraryExists(name)


def _link(home: str, name: str, source: LibrarySource, subfolder: str) -> AddResult:
    if source.kind != "folder":
        raise LibraryRefused(source.location, "only a folder can be linked; omit --link to copy it")
    folder = _subfolder(source, subfolder)
    inside = Path(libraries_folder(home)).resolve()
    if inside == folder or inside in folder.parents or folder in inside.parents:
        raise LibraryRefused(source.location, "Dittybag stores its libraries there; link another folder")
    location = os.path.normpath(Path(source.location, subfolder))
    with _locked(home):
        _check_name_free(home, name)
        os.symlink(location, library_folder(home, name))
        files.sync_folder(libraries_folder(home))
    return AddResult(name=name, path=location, record=InstallRecord(kind="link", location=location))


def _fetch(
    home: str, source: LibrarySource, subfolder: str, work: Path, progress: ReportProgress | None
) -> tuple[LimitedCopy, str | None]:
    """Copy the files of a source to the staging folder; return the copy and the Git commit."""
    copy = LimitedCopy(work / _NEW, source.location, progress=progress)
    revision = None
    if source.remote is not None:
        from dittybag.library.sources.git_repositories import fetch

        revision = fetch(source.remote, subfolder, work, copy, progress=progress)
    else:
        copied = _subfolder(source, subfolder)
        inside = Path(libraries_folder(home)).resolve()
        if copied == inside or copied in inside.parents or Path(records_folder(home)).resolve() == copied:
            raise copy.refusal("the folder contains Dittybag's libraries; give a folder inside it")
        copy.add_folder(str(copied))
    copy.finish()
    return copy, revision


def _subfolder(source: LibrarySource, subfolder: str) -> Path:
    """The subfolder of a source folder. Raises `LibraryRefused` if a link on its path leads out."""
    missing = LibraryRefused(source.location, f"there is no folder '{printable(subfolder)}' in it")
    try:
        whole = Path(source.location).resolve(strict=True)
        folder = (whole / subfolder).resolve(strict=True)
    except FileNotFoundError:
        raise missing from None
    except OSError as error:
        raise SourceFailed(source.location, error.strerror or str(error)) from error
    if not folder.is_dir() or (folder != whole and whole not in folder.parents):
        raise missing
    return folder


def _why_not_updatable(record: InstallRecord | None) -> str:
    """Why a library cannot be updated, as the end of a sentence."""
    if record is None:
        return "was added by hand and has no source to update from"
    if record.kind == "link":
        return f"is linked to {printable(record.location, 1000)} and is always up to date"
    return "was created with dittybag library new and has no source to update from"


def _source_of(record: InstallRecord) -> LibrarySource:
    """The source that a library was installed from. Raises `SourceNotFound`."""
    try:
        return parse_source(record.location)
    except SourceNotFound:
        raise SourceNotFound(printable(record.location), "the library's source no longer exists") from None
