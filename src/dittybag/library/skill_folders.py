"""The files of skills in a library, and the paths at which the skills are served.

A skill is a folder with a `SKILL.md`; all files below it belong to it, also those of skills inside it. Hidden
files and links are not served. A skill is served below the library's name at the path of its folder, whose
last part is the name in its front matter, as clients require.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping

from msgspec import Struct

from dittybag.domain.skills import SKILL_FILE
from dittybag.library.safe_folder import FolderListing, Stamp


def find_skill_files(listing: FolderListing, formats: Mapping[str, str]) -> dict[str, Stamp]:
    """All files of the skills in a library, given the formats of its prompt files."""
    folders = {folder_of(file) for file, kind in formats.items() if kind == "skill"}
    if not folders:
        return {}
    return {
        file: stamp
        for file, stamp in listing.files.items()
        if file not in listing.links
        and any(not _is_hidden(file, folder) for folder in _around(file, folders))
    }


def folder_of(file: str) -> str:
    """The folder of a file; empty for the top level."""
    return file.rpartition("/")[0]


def files_by_skill(files: Iterable[str]) -> dict[str, list[str]]:
    """The files of each skill, sorted, by the skill's folder. Files of skills inside it are included."""
    ordered = sorted(files)
    folders = {folder_of(file) for file in ordered if file.rpartition("/")[2] == SKILL_FILE}
    found: dict[str, list[str]] = {folder: [] for folder in sorted(folders)}
    for file in ordered:
        for folder in _around(file, folders):
            if not _is_hidden(file, folder):
                found[folder].append(file)
    return found


def _around(file: str, folders: Container[str]) -> Iterator[str]:
    """Those of the folders that contain a file."""
    folder = file
    while folder:
        folder = folder_of(folder)
        if folder in folders:
            yield folder


def _is_hidden(file: str, folder: str) -> bool:
    inside = file[len(folder) :].lstrip("/") if folder else file
    return inside.startswith(".") or "/." in inside


class ServedPaths(Struct, frozen=True):
    """Where the skills of a library are served."""

    #: The folder of each skill, by path.
    folders: dict[str, str]
    #: Why skills are not served, by folder.
    problems: dict[str, str]


def assign_paths(library: str, names: Mapping[str, str]) -> ServedPaths:
    """Assign paths to the skills in these folders, given the names in their front matter."""
    served = ServedPaths({}, {})
    ordered = sorted(names)
    paths: dict[str, str] = {}
    for folder in ordered:
        around = next(_around(folder, paths), None)
        if around is not None:
            inside = folder[len(around) :].lstrip("/")
            path, own = f"{paths[around]}/{inside}", inside.rpartition("/")[2]
            problem = None if own == names[folder] else f"its folder must have its name, '{names[folder]}'"
        else:
            parent = folder_of(folder)
            target = f"{parent}/{names[folder]}" if parent else names[folder]
            path = f"{library}/{target}"
            problem = _conflict(folder, target, ordered)
        if problem is None and path in served.folders:
            problem = f"'{served.folders[path]}' has the same name"
        if problem is None:
            served.folders[path] = folder
            paths[folder] = path
        else:
            served.problems[folder] = problem
    return served


def _conflict(folder: str, target: str, folders: list[str]) -> str | None:
    """Why a skill cannot be served as if its folder were `target`; None if it can."""
    if not folder or target == folder:
        return None
    at = bisect_left(folders, f"{target}/")
    below = at < len(folders) and folders[at].startswith(f"{target}/")
    exact = bisect_left(folders, target)
    if below or (exact < len(folders) and folders[exact] == target):
        return f"its name is that of another folder, '{target}'; rename its folder to its name"
    return None
