"""The library indexer: loads libraries into a catalogue and reloads changed ones."""

from __future__ import annotations

import logging
import os
from asyncio import gather
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.libraries import FileProblem
from dittybag.files import display_path
from dittybag.library.catalogue import Catalogue, LoadedLibrary
from dittybag.library.disk_thread import DiskThread
from dittybag.library.library_folders import Directories, LibraryFolder, LibraryFolders
from dittybag.library.loader import FolderScan, LibraryLoader, scan_folder
from dittybag.library.parse_cache import CacheEntry, ParseCache
from dittybag.library.render.child_reader import FileReader
from dittybag.library.render.template_renderer import TemplateRenderer

#: Folders scanned at a time. With a few prompts each, they fill the first page of a list.
_BATCH: Final = 64
#: Maximum total length, in characters, of all prompts and templates.
_MAX_PROMPT_CHARS: Final = 64 * 1024 * 1024
_TOO_LARGE: Final = FileProblem("", "skipped: all libraries together have more than 64 MiB of prompts")
#: Maximum length, in characters, of the content that one batch of scans holds in memory.
_BATCH_CHARS: Final = 16 * 1024 * 1024
#: Maximum number of problems that are logged at a time.
_MAX_LOG_LINES: Final = 20

_log = logging.getLogger("dittybag.library")


class LibraryChanges(Struct, frozen=True):
    """What a refresh has found."""

    #: Whether prompts or the reports on libraries have changed.
    prompts: bool = False
    #: Changed files of skills, as pairs of library and file.
    skill_files: frozenset[tuple[str, str]] = frozenset()

    @property
    def any(self) -> bool:
        return self.prompts or bool(self.skill_files)


class LibraryIndexer:
    """Loads libraries into a catalogue."""

    def __init__(
        self,
        directories: Directories,
        catalogue: Catalogue,
        renderer: TemplateRenderer,
        *,
        quiet: bool,
    ) -> None:
        """`quiet`: do not log problems, because the caller reads the reports."""
        self._quiet = quiet
        self._directories = directories
        self._catalogue = catalogue
        # A separate thread, so that requests for prompts do not wait for a scan.
        self._disk = DiskThread()
        self._reader = FileReader()
        self._loader = LibraryLoader(self._reader, renderer)
        self._cache = ParseCache(directories.home, directories.all)
        self._cached: dict[str, CacheEntry] = {}
        self._logged: set[tuple[str, FileProblem]] = set()
        self._logged_directories: set[tuple[str, str]] = set()
        self.folders = LibraryFolders((), ())

    async def load_first(self, progress: Callable[[], object]) -> None:
        """Load all libraries for the first time, from the cache where files have not changed.

        Libraries are loaded in the order of their names. `progress` is called after each batch.
        """
        self._cached = await self._disk.run(self._cache.load)
        self.folders = folders = await self._disk.run(self._directories.scan)
        self._log_directory_problems()
        order = sorted(folders.all, key=lambda folder: folder.name)
        found: dict[str, LoadedLibrary] = {}
        async for library in self._load_all(order, complete=False):
            found[library.folder.root.path] = library
            if len(found) % _BATCH == 0:
                ordered = (found[folder.root.path] for folder in folders.all if folder.root.path in found)
                self._catalogue.set_libraries(ordered, library.name)
                progress()
        self._catalogue.set_libraries(found[folder.root.path] for folder in folders.all)
        # Problems of cached libraries were logged when they were parsed.
        self._log_problems(path for path, library in found.items() if library.is_parsed)

    async def read_skill_header(self, content: str) -> dict[str, Any]:
        """The front matter of a `SKILL.md`. Raises `InvalidHeader`."""
        return await self._reader.read_header(content)

    async def refresh(self, changed_folders: set[str] | None) -> LibraryChanges:
        """Reload the changed folders, or all if None; return what has changed."""
        return await self._refresh(await self._disk.run(self._directories.scan), changed_folders)

    async def save_cache(self) -> None:
        """Write the parsed libraries to the cache if they have changed."""
        known = {path: library.cache_entry() for path, library in self._catalogue.libraries.items()}
        entries = {path: entry for path, entry in known.items() if entry is not None}
        if _stamps(entries) != _stamps(self._cached):
            self._cached = entries
            await self._disk.run(lambda: self._cache.save(entries))

    def watched_folders(self) -> dict[str, int]:
        """All folders to watch for changes, with their inodes."""
        found = {top: inode for top in self.folders.watch_roots() if (inode := _inode(top)) is not None}
        for library in self._catalogue.libraries.values():
            found |= library.watched_folders()
        return found

    def close(self) -> None:
        self._reader.close()
        self._disk.close()

    async def _refresh(self, folders: LibraryFolders, changed_folders: set[str] | None) -> LibraryChanges:
        different = folders.problems != self.folders.problems
        self.folders = folders
        self._log_directory_problems()
        known = self._catalogue.libraries
        removed = known.keys() - {folder.root.path for folder in folders.all}
        different |= bool(removed)
        skill_files = {(known[path].name, file) for path in removed for file in known[path].skill_files}
        libraries = {folder.root.path: known.get(folder.root.path) for folder in folders.all}
        to_read = [
            folder
            for folder in folders.all
            if (old := libraries[folder.root.path]) is None
            or changed_folders is None
            or folder.real_path in changed_folders
            # The folder is a link, which now leads to another folder.
            or folder.real_path != old.folder.real_path
        ]
        changed: list[str] = []
        async for library in self._load_all(to_read, complete=True):
            path = library.folder.root.path
            previous = libraries[path]
            if library.differs_from(previous):
                different = True
                changed.append(path)
            elif library.unreadable:
                changed.append(path)
            skill_files |= {(library.name, file) for file in library.changed_skill_files(previous)}
            libraries[path] = library
        self._catalogue.set_libraries(library for library in libraries.values() if library is not None)
        self._log_problems(changed)
        return LibraryChanges(different, frozenset(skill_files))

    async def _load_all(
        self, folders: Sequence[LibraryFolder], *, complete: bool
    ) -> AsyncIterator[LoadedLibrary]:
        """Load the libraries in these folders in batches."""
        known = self._catalogue.libraries
        paths = {folder.root.path for folder in folders}
        room = _MAX_PROMPT_CHARS - sum(library.length for path, library in known.items() if path not in paths)
        start = 0
        while start < len(folders):
            batch = folders[start : start + _BATCH]
            old = [known.get(folder.root.path) or self._from_cache(folder) for folder in batch]
            scans = await self._disk.run(lambda: _scan_folders(batch, old, complete=complete))  # noqa: B023  # awaited
            start += len(scans)
            loading = (
                self._load_one(scan, previous, served=scan.folder.root.path in known)
                for scan, previous in zip(scans, old, strict=False)
            )
            for library in await gather(*loading):
                kept = library if library.length <= room else library.without_prompts(_TOO_LARGE)
                room -= kept.length
                yield kept

    def _from_cache(self, folder: LibraryFolder) -> LoadedLibrary | None:
        entry = self._cached.get(folder.root.path)
        return None if entry is None else LoadedLibrary(folder, entry.stamps, entry.files)

    async def _load_one(self, scan: FolderScan, old: LoadedLibrary | None, *, served: bool) -> LoadedLibrary:
        if old is not None and not scan.complete and scan.stamps == old.stamps:
            return old.with_skill_files(scan.skill_files)
        return await self._loader.load(scan, old, served=served)

    def _log_directory_problems(self) -> None:
        for directory, problem in self.folders.problems.items():
            if not self._quiet and (directory, problem) not in self._logged_directories:
                self._logged_directories.add((directory, problem))
                _log.warning("%s: %s", display_path(directory), problem)

    def _log_problems(self, paths: Iterable[str]) -> None:
        """Log the errors in these folders that have not been logged before."""
        if self._quiet:
            return
        new_problems = [
            (report.folder, problem)
            for report in self._catalogue.reports(paths)
            for problem in report.problems
            if problem.level == "error" and (report.folder, problem) not in self._logged
        ]
        self._logged.update(new_problems)
        for folder, problem in new_problems[:_MAX_LOG_LINES]:
            line = "" if problem.line is None else f":{problem.line}"
            where = f"{display_path(folder)}/{problem.file}{line}".rstrip("/")
            _log.warning("%s: %s", where, problem.message)
        if len(new_problems) > _MAX_LOG_LINES:
            rest = len(new_problems) - _MAX_LOG_LINES
            _log.warning(
                "and %d more problems in libraries; run dittybag library check to see them all", rest
            )


def _inode(folder: str) -> int | None:
    try:
        return os.stat(folder).st_ino
    except OSError:
        return None


def _scan_folders(
    folders: Sequence[LibraryFolder], old: Sequence[LoadedLibrary | None], *, complete: bool
) -> list[FolderScan]:
    """Scan the first of these folders, as many as fit into `_BATCH_CHARS`, at least one."""
    scans: list[FolderScan] = []
    room = _BATCH_CHARS
    for folder, previous in zip(folders, old, strict=True):
        if room < 0:
            break
        scan = scan_folder(
            folder,
            previous.stamps if previous is not None else {},
            previous.template_stamps() if previous is not None else {},
            complete=complete,
        )
        room -= sum(map(len, scan.contents.values())) + sum(map(len, scan.templates.values()))
        scans.append(scan)
    return scans


def _stamps(entries: Mapping[str, CacheEntry]) -> dict[str, object]:
    return {path: entry.stamps for path, entry in entries.items()}
