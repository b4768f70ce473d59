"""Find library folders: those in the library directories. A symbolic link there is a linked library."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from dittybag import files
from dittybag.domain.libraries import library_name
from dittybag.library import install_records
from dittybag.library.relative_paths import replace_surrogates
from dittybag.library.safe_folder import SafeFolder

#: Further folders of a directory are not read.
MAX_LIBRARIES: Final = 10_000


class LibraryFolder(Struct, frozen=True):
    """A folder that may be a library, and the library's name."""

    #: Empty if the folder's name has no letter or digit.
    name: str
    root: SafeFolder
    #: The path of the folder with all links resolved.
    real_path: str


class Directories(Struct, frozen=True):
    """The directories that contain library folders."""

    #: Dittybag's data folder.
    home: str
    #: Additional directories, which take precedence.
    extra: tuple[str, ...] = ()
    #: If set, only this folder is read, as one library.
    single: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.extra, install_records.libraries_folder(self.home))

    def exist(self) -> bool:
        """Whether any directory exists, readable or not."""
        return any(map(os.path.lexists, self.all))

    def scan(self) -> LibraryFolders:
        """Find the library folders that exist now."""
        if self.single is not None:
            real = os.path.realpath(self.single)
            return LibraryFolders(
                (), (LibraryFolder(library_name(os.path.basename(real)), SafeFolder(self.single), real),)
            )
        roots = tuple(dict.fromkeys(map(os.path.realpath, self.all)))
        problems: dict[str, str] = {}
        found = (folder for root in roots for folder in _scan_directory(root, problems))
        return LibraryFolders(roots, tuple(found), problems, self.all)


class LibraryFolders(Struct, frozen=True):
    """All library folders in order of precedence: the first with a name is used."""

    #: The directories in which every folder is a library.
    roots: tuple[str, ...]
    all: tuple[LibraryFolder, ...]
    #: Directories and folders that are not there or cannot be read, and why.
    problems: dict[str, str] = {}
    #: The directories as they were given; a part of their paths may be a link.
    directories: tuple[str, ...] = ()

    def polled(self) -> tuple[str, ...]:
        """The paths that can lead to another folder without a change in a watched one.

        They are not resolved: a link in them may be replaced.
        """
        prefixes = tuple(os.path.join(root, "") for root in self.roots)
        elsewhere = (folder.root.path for folder in self.all if not folder.real_path.startswith(prefixes))
        return tuple(dict.fromkeys((*self.directories, *elsewhere)))

    def watch_roots(self) -> tuple[str, ...]:
        """The directories, and the library folders outside of them."""
        prefixes = tuple(os.path.join(root, "") for root in self.roots)
        elsewhere = (folder.real_path for folder in self.all if not folder.real_path.startswith(prefixes))
        return tuple(dict.fromkeys((*self.roots, *elsewhere)))

    def containing(self, paths: Iterable[str]) -> set[str] | None:
        """The real paths of the library folders that contain these paths; `None` if one is in none of them.

        macOS reports paths as they are on disk, which may differ in case or Unicode form from those given.
        """
        prefixes = [(os.path.join(folder, ""), folder in self.roots) for folder in self.watch_roots()]
        known = {prefix for prefix, _ in prefixes}
        found = set()
        for path in paths:
            outer = [(prefix, is_root) for prefix, is_root in prefixes if path.startswith(prefix)]
            if not outer and os.path.join(path, "") not in known:
                return None
            for prefix, is_root in outer:
                inside = path[len(prefix) :].partition(os.sep)[0]
                found.add(prefix + inside if is_root else prefix[: -len(os.sep)])
        return found


def _scan_directory(root: str, problems: dict[str, str]) -> list[LibraryFolder]:
    try:
        with os.scandir(root) as entries:
            found = sorted(
                (entry.name, entry.is_symlink()) for entry in entries if _is_folder(entry, problems)
            )
    except FileNotFoundError:
        # No library was added yet.
        return []
    except OSError as error:
        problems[root] = f"cannot read this directory of libraries: {files.describe(error)}"
        return []
    if len(found) > MAX_LIBRARIES:
        problems[root] = f"only the first {MAX_LIBRARIES:,} of its {len(found):,} folders are read"
    return [_library_folder(root, name, is_link=is_link) for name, is_link in found[:MAX_LIBRARIES]]


def _library_folder(root: str, name: str, *, is_link: bool) -> LibraryFolder:
    path = os.path.join(root, name)
    return LibraryFolder(library_name(name), SafeFolder(path), os.path.realpath(path) if is_link else path)


def _is_folder(entry: os.DirEntry[str], problems: dict[str, str]) -> bool:
    """Whether an entry of a directory may be a library.

    A link that leads nowhere is a problem, and so is a name that cannot be shown or stored.
    """
    if entry.name.startswith("."):
        return False
    try:
        if entry.is_dir():
            if replace_surrogates(entry.name) == entry.name:
                return True
            problems[replace_surrogates(entry.path)] = "the folder's name is not valid UTF-8; rename it"
            return False
        if entry.is_symlink():
            entry.stat()
    except FileNotFoundError:
        if entry.is_symlink():
            problems[entry.path] = "a link to a folder that does not exist"
    except OSError as error:
        problems[entry.path] = f"cannot read this folder: {files.describe(error)}"
    return False
