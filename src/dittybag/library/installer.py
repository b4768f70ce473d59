"""Installing: add, update, make and remove libraries.

An update builds the whole library anew beside the old one and exchanges the two folders in one step, rather
than replacing file by file: a running server sees the old library or the new one, and so does whoever comes
after a kill. Files that stay as they are, and everything that was made or edited here, are linked into the
new folder, so that they keep their times, and an editor that has one open writes to the same file. What is
edited in the instant between looking and exchanging is found in the old folder afterwards, and put aside
instead of being deleted.

Nothing that was made or edited here is ever erased: `update --overwrite` and `remove --yes` move it to
HOME/libraries/.dittybag/kept/NAME/TIME and say so.
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
from dittybag.library import atomic_install, starter_library
from dittybag.library.file_walk import TooManyFiles, walk
from dittybag.library.install_records import (
    InstallRecord,
    file_digests,
    compare_with_record,
    folders_by_name,
    libraries_folder,
    library_folder,
    read_record,
    records_folder,
)
from dittybag.library.relative_paths import MAX_NAME_BYTES, replace_surrogates, path_problem, shown
from dittybag.library.sources import LibrarySource, recognise
from dittybag.library.sources.limited_copy import LimitedCopy, Progress, SkippedFile
from dittybag.library.update_merge import MergePlan, merge

_PIECE: Final = 1024 * 1024


class AddResult(Struct, frozen=True, kw_only=True):
    """A library that is new on this machine."""

    name: str
    path: str
    origin: InstallRecord
    left_out: tuple[SkippedFile, ...] = ()


class UpdateResult(Struct, frozen=True, kw_only=True):
    """What an update did to a library."""

    name: str
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    #: Files with local edits that were left alone.
    kept: tuple[str, ...] = ()
    #: Those of them that the source has changed too.
    conflicts: tuple[str, ...] = ()
    revision: str | None = None
    #: Files with local edits that were put aside, and the folder they are in now.
    put_aside: tuple[str, ...] = ()
    kept_in: str | None = None
    left_out: tuple[SkippedFile, ...] = ()
    #: Why there is nothing to update from.
    note: str | None = None


class RemoveResult(Struct, frozen=True, kw_only=True):
    """A library that is gone from this machine."""

    name: str
    #: Where it was. The folder of a link is still there.
    path: str
    link: bool = False
    #: Where its folder is now, if there was work in it.
    kept_in: str | None = None


def add(
    home: str,
    source: str,
    *,
    name: str | None = None,
    folder: str | None = None,
    link: bool = False,
    progress: Progress | None = None,
) -> AddResult:
    """Make a library of a folder, a zip file or a Git repository.

    `folder`: the part of the source to take. `link`: read the folder where it is, instead of copying it.
    """
    home = str(Path(home).absolute())
    found = recognise(source)
    part = _part(folder, found)
    called = _name(found.name if name is None else name)
    with _writing(home):
        _check_free(home, called)
        if link:
            return _link(home, called, found, part)
        with atomic_install.workplace(home) as work:
            content = _fetched(home, found, part, work, progress)
            now = _now()
            origin = InstallRecord(
                kind=found.kind,
                location=found.location,
                folder=part,
                revision=content.revision,
                added_at=now,
                updated_at=now,
                files=content.files,
            )
            _install(home, called, content.folder, origin)
    return AddResult(
        name=called, path=library_folder(home, called), origin=origin, left_out=tuple(content.left_out)
    )


def new(home: str, name: str) -> AddResult:
    """Make a small library to begin with."""
    home = str(Path(home).absolute())
    called = _name(name)
    path = library_folder(home, called)
    with _writing(home):
        _check_free(home, called)
        with atomic_install.workplace(home) as work:
            intake = LimitedCopy(work / "library", path)
            for file, text in starter_library.files(called).items():
                intake.take(file, (text.encode(),))
            now = _now()
            origin = InstallRecord(
                kind="new", location=path, added_at=now, updated_at=now, files=intake.files
            )
            _install(home, called, work / "library", origin)
    return AddResult(name=called, path=path, origin=origin)


def update(
    home: str, name: str, *, overwrite: bool = False, progress: Progress | None = None
) -> UpdateResult:
    """Bring a library up to date with its source, keeping what was edited here.

    `overwrite`: take the source's version of every file that it has, and put the edited ones aside.
    """
    home = str(Path(home).absolute())
    called = library_name(name)
    origin = read_record(home, called) if called else None
    if (note := _nothing_to_update(home, name, origin)) is not None:
        return UpdateResult(name=called, note=note)
    assert origin is not None
    source = _again(origin)
    with _writing(home), atomic_install.workplace(home) as work:
        content = _fetched(home, source, origin.folder, work, progress)
        with atomic_install.locked(home):
            if read_record(home, called) != origin:
                raise Outdated("library", called)
            fresh = msgspec.structs.replace(
                origin,
                kind=source.kind,
                revision=content.revision,
                updated_at=max(_now(), origin.updated_at + 1),
                files=content.files,
            )
            return _Update(home, called, work=work, content=content, origin=origin, fresh=fresh).run(
                overwrite=overwrite
            )


def remove(home: str, name: str, *, discard_edits: bool = False) -> RemoveResult:
    """Take a library away.

    One that was edited, or put there by hand, is refused unless `discard_edits`; and then its folder is moved
    aside rather than erased. The folder of a link is never touched.
    """
    home = str(Path(home).absolute())
    called = library_name(name)
    if not called or not Path(libraries_folder(home)).is_dir():
        raise LibraryNotFound(name)
    with _writing(home), atomic_install.workplace(home) as work, atomic_install.locked(home):
        origin = read_record(home, called)
        if origin is not None and origin.kind == "link":
            atomic_install.forget(home, called)
            return RemoveResult(name=called, path=origin.location, link=True)
        # Only the name says what goes: a record can say anything.
        place = library_folder(home, called) if origin is not None else folders_by_name(home).get(called)
        if place is None:
            # A record that outlived its folder, or that says nothing, is of no use to anybody.
            atomic_install.forget(home, called)
            raise LibraryNotFound(name)
        edited = [] if origin is None else [edit.file for edit in compare_with_record(place, origin)]
        by_hand = origin is None or Path(place).is_symlink()
        if (by_hand or edited) and not discard_edits:
            raise LibraryEdited(
                called, [] if by_hand else [shown(file) or "too many files" for file in edited]
            )
        return _take_away(home, called, Path(place), work, origin=None if by_hand or edited else origin)


def _take_away(
    home: str, name: str, place: Path, work: Path, *, origin: InstallRecord | None
) -> RemoveResult:
    """Take a folder away. `origin`: what it is a mere copy of."""
    if place.is_symlink():
        # Somebody put a link there by hand: it goes, and what it leads to stays.
        target = str(place.resolve())
        place.unlink()
        atomic_install.forget(home, name)
        return RemoveResult(name=name, path=target, link=True)
    kept = None if origin is not None else atomic_install.keeping_place(home, name)
    aside = kept or work / "removed"
    atomic_install.take_away(home, name, place, aside)
    if origin is not None and compare_with_record(str(aside), origin):
        # Edited since we looked.
        kept = atomic_install.keeping_place(home, name)
        aside.rename(kept)
    return RemoveResult(name=name, path=str(place), kept_in=None if kept is None else str(kept))


class _Content(Struct, frozen=True, kw_only=True):
    """What a source holds, in a folder."""

    folder: Path
    files: dict[str, str]
    left_out: list[SkippedFile]
    revision: str | None = None


class _Update:
    """One update, once the source has been fetched. The caller holds the lock."""

    def __init__(
        self,
        home: str,
        name: str,
        *,
        work: Path,
        content: _Content,
        origin: InstallRecord,
        fresh: InstallRecord,
    ) -> None:
        self._home = home
        self._name = name
        self._work = work
        self._content = content
        self._origin = origin
        self._fresh = fresh
        self._place = Path(library_folder(home, name))
        self._kept: Path | None = None
        self._blocked: list[str] = []

    def run(self, *, overwrite: bool) -> UpdateResult:
        if self._place.is_symlink():
            raise LibraryRefused(
                str(self._place), "is a symbolic link by now; remove the library and add it again"
            )
        try:
            before = _states(self._place)
            decided = merge(
                self._origin.files, file_digests(str(self._place)), self._content.files, overwrite=overwrite
            )
        except TooManyFiles:
            raise LibraryRefused(str(self._place), "holds too many files by now to be updated") from None
        late: list[str] = []
        if decided.added or decided.changed or decided.removed:
            new = self._build(before, decided)
            self._put_aside(decided.replaced)
            old = atomic_install.exchange(self._home, self._name, new, self._fresh)
            try:
                late = self._rescue(old, before)
            except TooManyFiles:
                old.rename(_unused(self._keeping() / "library"))
        else:
            atomic_install.write_record(self._home, self._name, self._fresh)
        blocked = set(self._blocked)
        return UpdateResult(
            name=self._name,
            added=tuple(file for file in decided.added if file not in blocked),
            changed=decided.changed,
            removed=decided.removed,
            kept=_told({*decided.kept, *blocked}),
            conflicts=_told({*decided.conflicts, *blocked}),
            revision=self._fresh.revision,
            put_aside=_told({*decided.replaced, *late}),
            kept_in=None if self._kept is None else str(self._kept),
            left_out=tuple(self._content.left_out),
        )

    def _build(self, before: dict[str, os.stat_result], decided: MergePlan) -> Path:
        """The library as it will be: first what stays, then what is new where nothing is in the way."""
        new = self._work / "new"
        new.mkdir(mode=self._place.stat().st_mode & 0o777)
        taken = {*decided.added, *decided.changed}
        for file in before:
            if file not in taken and file not in decided.removed:
                _carry(self._place / file, new / file)
        for file in sorted(taken):
            target = new / file
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                # Not a rename: where case makes no difference, that would replace a file of another name.
                _link_or_copy(self._content.folder / file, target)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                # A file here has the name of a folder of the source, or the other way round.
                self._blocked.append(file)
        atomic_install.sync_files(new, (file for file in taken if file not in self._blocked))
        return new

    def _put_aside(self, files: Iterable[str]) -> None:
        for file in files:
            _carry(self._place / file, self._keeping() / file)

    def _rescue(self, old: Path, before: dict[str, os.stat_result]) -> list[str]:
        """Put aside what was edited after we had looked, and is only in the old folder."""
        late = []
        for file, state in _states(old).items():
            if file in before and _same(before[file], state):
                continue
            try:
                if _same_file((self._place / file).lstat(), state):
                    continue
            except (FileNotFoundError, NotADirectoryError):
                pass
            _carry(old / file, _unused(self._keeping() / file))
            late.append(file)
        return late

    def _keeping(self) -> Path:
        if self._kept is None:
            self._kept = atomic_install.keeping_place(self._home, self._name)
        return self._kept


@contextmanager
def _writing(home: str) -> Iterator[None]:
    """What goes wrong with our own files is a matter of the disk. Sources word their failures themselves."""
    try:
        yield
    except OSError as error:
        raise LibraryUnwritable(libraries_folder(home), error.strerror or str(error)) from error


def _now() -> int:
    return time.time_ns() // 1000


def _name(wanted: str) -> str:
    name = library_name(wanted)
    if not name:
        raise Invalid(
            [Problem("name", f"'{shown(wanted)}' leaves no name for a library; give one with --name")]
        )
    if len(name.encode()) > MAX_NAME_BYTES:
        raise Invalid([Problem("name", f"The name of a library must be at most {MAX_NAME_BYTES} bytes")])
    return name


def _part(folder: str | None, source: LibrarySource) -> str:
    part = (folder or "").strip("/")
    while part.startswith("./"):
        part = part[2:].strip("/")
    if part in ("", "."):
        return ""
    if problem := path_problem(part):
        raise LibraryRefused(source.location, f"the folder '{shown(part)}' {problem}")
    return part


def _check_free(home: str, name: str) -> None:
    if name in folders_by_name(home) or read_record(home, name) is not None or os.path.lexists(library_folder(home, name)):
        raise LibraryExists(name)


def _install(home: str, name: str, folder: Path, origin: InstallRecord) -> None:
    atomic_install.sync_files(folder, origin.files)
    with atomic_install.locked(home):
        _check_free(home, name)
        atomic_install.put_into_place(home, name, folder, origin)


def _link(home: str, name: str, source: LibrarySource, part: str) -> AddResult:
    if source.kind != "folder":
        raise LibraryRefused(source.location, "only a folder can be linked; leave --link out to copy it")
    folder = _subfolder(source, part)
    inside = Path(libraries_folder(home)).resolve()
    if inside == folder or inside in folder.parents or folder in inside.parents:
        raise LibraryRefused(
            source.location, "is where Dittybag keeps its libraries; it cannot be one of them"
        )
    location = os.path.normpath(Path(source.location, part))
    now = _now()
    origin = InstallRecord(kind="link", location=location, added_at=now, updated_at=now)
    with atomic_install.locked(home):
        _check_free(home, name)
        atomic_install.write_record(home, name, origin)
    return AddResult(name=name, path=location, origin=origin)


def _fetched(home: str, source: LibrarySource, part: str, work: Path, progress: Progress | None) -> _Content:
    """The files of a source, in a folder of ours."""
    folder = work / "library"
    intake = LimitedCopy(folder, source.location, progress=progress)
    revision = None
    if source.kind == "git":
        from dittybag.library.sources.git_repositories import fetch

        assert source.repository is not None
        revision = fetch(source.repository, part, work, intake, progress=progress)
    elif source.kind == "zip":
        from dittybag.library.sources.zip_archives import unpack

        unpack(_own_copy(Path(source.location), work / "archive", intake), part, intake)
    else:
        from dittybag.library.sources.folder_source import copy

        copied = _subfolder(source, part)
        inside = Path(libraries_folder(home)).resolve()
        if copied == inside or copied in inside.parents or Path(records_folder(home)).resolve() == copied:
            raise intake.refusal("holds Dittybag's own libraries; give a folder inside it")
        copy(str(copied), intake)
    intake.finish()
    return _Content(folder=folder, files=intake.files, left_out=intake.left_out, revision=revision)


def _own_copy(archive: Path, copy: Path, intake: LimitedCopy) -> Path:
    """A copy of an archive that nobody changes while it is read."""
    from dittybag.library.sources.zip_archives import ARCHIVE_BYTES

    size = 0
    with copy.open("xb") as target:
        for piece in _pieces(archive, intake):
            size += len(piece)
            if size > ARCHIVE_BYTES:
                raise intake.refusal(f"is an archive of more than {ARCHIVE_BYTES // 1024 // 1024} MiB")
            target.write(piece)
    return copy


def _pieces(path: Path, intake: LimitedCopy) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece
    except OSError as error:
        raise intake.failure(error.strerror or str(error)) from error


def _subfolder(source: LibrarySource, part: str) -> Path:
    """A folder of a folder. A link in between must not lead out of it."""
    try:
        whole = Path(source.location).resolve(strict=True)
        folder = (whole / part).resolve(strict=True)
    except FileNotFoundError:
        raise LibraryRefused(source.location, f"has no folder '{shown(part)}'") from None
    except OSError as error:
        raise SourceFailed(source.location, error.strerror or str(error)) from error
    if not folder.is_dir() or (folder != whole and whole not in folder.parents):
        raise LibraryRefused(source.location, f"has no folder '{shown(part)}'")
    return folder


def _nothing_to_update(home: str, name: str, origin: InstallRecord | None) -> str | None:
    """Why there is nothing to update from, if there is not."""
    if origin is None:
        if library_name(name) not in folders_by_name(home):
            raise LibraryNotFound(name)
        return "was put there by hand; there is nothing to update it from"
    if origin.kind == "link":
        return f"is read where it is, in {shown(origin.location, 1000)}; there is nothing to update"
    if origin.kind == "new":
        return "was made here; there is nothing to update it from"
    return None


def _again(origin: InstallRecord) -> LibrarySource:
    """The source of a library that is there already."""
    try:
        return recognise(origin.location)
    except SourceNotFound:
        raise SourceNotFound(
            shown(origin.location), "this is where the library is from, and it is not there any more"
        ) from None


def _told(files: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(map(replace_surrogates, files)))


def _unused(path: Path) -> Path:
    """The path, or one like it that nothing is at."""
    number = 2
    unused = path
    while os.path.lexists(unused):
        unused = path.with_name(f"{path.name}.{number}")
        number += 1
    return unused


def _states(folder: Path) -> dict[str, os.stat_result]:
    return {found.path: found.status for found in walk(str(folder))}


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return _same_file(one, other) and (one.st_mtime_ns, one.st_size) == (other.st_mtime_ns, other.st_size)


def _same_file(one: os.stat_result, other: os.stat_result) -> bool:
    return one.st_ino == other.st_ino


def _carry(old: Path, new: Path) -> None:
    """Have at `new` what is at `old`, be it a file, a link or a whole folder."""
    new.parent.mkdir(parents=True, exist_ok=True)
    if old.is_symlink() or not old.is_dir():
        _link_or_copy(old, new)
        return
    for parent, _, names in os.walk(old):
        inside = new / Path(parent).relative_to(old)
        inside.mkdir(parents=True, exist_ok=True)
        for name in names:
            _link_or_copy(Path(parent, name), inside / name)


def _link_or_copy(old: Path, new: Path) -> None:
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS):
            raise
        shutil.copy2(old, new, follow_symlinks=False)
