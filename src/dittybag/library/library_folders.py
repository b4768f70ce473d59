"""Where libraries are: the folders in some directories, and folders elsewhere that were linked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from dittybag.domain.libraries import library_name
from dittybag.library import install_records
from dittybag.library.safe_folder import SafeFolder

#: More folders than this are not looked at.
MAX_LIBRARIES: Final = 10_000


class LibraryFolder(Struct, frozen=True):
    """A folder that may be a library, and what it would be called."""

    #: Nothing if no character of the folder's name can be used.
    name: str
    folder: SafeFolder
    #: Where the folder is when all links have been followed.
    real: str


class Directories(Struct, frozen=True):
    """Where to look for libraries."""

    #: Dittybag's own data folder.
    home: str
    #: Directories of others, which come first.
    others: tuple[str, ...] = ()
    #: Only this folder, which is a library itself.
    alone: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.others, install_records.libraries_folder(self.home))

    def exist(self) -> bool:
        """Whether any of them is there, readable or not."""
        return any(map(os.path.lexists, self.all))

    def look(self) -> LibraryFolders:
        """What is there now."""
        if self.alone is not None:
            real = os.path.realpath(self.alone)
            return LibraryFolders(
                (), (LibraryFolder(library_name(os.path.basename(real)), SafeFolder(self.alone), real),)
            )
        roots = tuple(dict.fromkeys(map(os.path.realpath, self.all)))
        problems: dict[str, str] = {}
        found = [place for root in roots for place in _inside(root, problems)]
        links = sorted(install_records.linked_folders(self.home, {place.name for place in found}).items())
        found += [LibraryFolder(name, SafeFolder(path), os.path.realpath(path)) for name, path in links]
        return LibraryFolders(roots, tuple(found), problems)


class LibraryFolders(Struct, frozen=True):
    """All places, in the order in which the first of a name wins."""

    #: The directories in which every folder is a place.
    roots: tuple[str, ...]
    all: tuple[LibraryFolder, ...]
    #: Directories that cannot be read, and why.
    problems: dict[str, str] = {}

    def tops(self) -> tuple[str, ...]:
        """The directories, and the places that are not really in them."""
        prefixes = tuple(os.path.join(root, "") for root in self.roots)
        elsewhere = (place.real for place in self.all if not place.real.startswith(prefixes))
        return tuple(dict.fromkeys((*self.roots, *elsewhere)))

    def touched(self, paths: Iterable[str]) -> set[str]:
        """The places, by where they really are, that these paths lead into."""
        prefixes = [(os.path.join(folder, ""), folder in self.roots) for folder in self.tops()]
        found = set()
        for path in paths:
            for prefix, is_root in prefixes:
                if path.startswith(prefix):
                    inside = path[len(prefix) :].partition(os.sep)[0]
                    found.add(prefix + inside if is_root else prefix[: -len(os.sep)])
        return found


def _inside(root: str, problems: dict[str, str]) -> list[LibraryFolder]:
    try:
        with os.scandir(root) as entries:
            found = sorted((entry.name, entry.is_symlink()) for entry in entries if _may_be_library(entry))
    except FileNotFoundError:
        # Nobody has put anything there yet.
        return []
    except OSError as error:
        problems[root] = f"the libraries in it cannot be read: {(error.strerror or 'unknown reason').lower()}"
        return []
    return [_place(root, name, is_link=is_link) for name, is_link in found[:MAX_LIBRARIES]]


def _place(root: str, name: str, *, is_link: bool) -> LibraryFolder:
    path = os.path.join(root, name)
    return LibraryFolder(library_name(name), SafeFolder(path), os.path.realpath(path) if is_link else path)


def _may_be_library(entry: os.DirEntry[str]) -> bool:
    try:
        return not entry.name.startswith(".") and entry.name.isprintable() and entry.is_dir()
    except OSError:
        return False


def display_path(path: str) -> str:
    """A path as people write it, with `~` for their own folder."""
    own = os.path.expanduser("~")
    return f"~{path[len(own) :]}" if own != os.sep and path.startswith(os.path.join(own, "")) else path
