"""Keeps a catalogue as the disk is: reads what is there, and again what has changed."""

from __future__ import annotations

import logging
import os
from asyncio import gather
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Final

from dittybag.domain.libraries import FileProblem
from dittybag.library.catalogue import Catalogue
from dittybag.library.disk_thread import DiskThread
from dittybag.library.library_folders import Directories, LibraryFolder, LibraryFolders, display_path
from dittybag.library.loaded_library import LoadedLibrary
from dittybag.library.loader import FolderScan, LibraryLoader, scan_folder
from dittybag.library.parse_cache import CacheEntry, ParseCache
from dittybag.library.render.child_reader import FileReader
from dittybag.library.render.template_renderer import TemplateRenderer

#: So many folders are looked at in one go; with a few prompts each they fill the first page of a list.
_BATCH: Final = 64
#: In characters: texts beyond this are read when they are needed.
_TEXT_ROOM: Final = 32 * 1024 * 1024
#: In characters: the prompts of all libraries that are not in files of their own.
_FILE_ROOM: Final = 64 * 1024 * 1024
_NO_ROOM: Final = FileProblem("", "is left out: all libraries together have more than 64 MiB of prompts")
#: In characters: what is read before some of it is put to use.
_READING_ROOM: Final = 16 * 1024 * 1024
#: More lines than this at a time are of no use in a log.
_MAX_LINES: Final = 20

_log = logging.getLogger("dittybag.library")


class LibraryIndexer:
    """Reads libraries into a catalogue."""

    def __init__(
        self,
        directories: Directories,
        catalogue: Catalogue,
        renderer: TemplateRenderer,
        *,
        quiet: bool,
    ) -> None:
        """`quiet`: log nothing; somebody will look at the reports."""
        self._quiet = quiet
        self._directories = directories
        self._catalogue = catalogue
        # Of its own: whoever asks for a prompt does not wait while folders are looked through.
        self._disk = DiskThread()
        self._reader = FileReader()
        self._loader = LibraryLoader(self._reader, renderer)
        self._cache = ParseCache(directories.home, directories.all)
        self._kept: dict[str, CacheEntry] = {}
        self._logged: set[tuple[str, FileProblem]] = set()
        self._logged_directories: set[tuple[str, str]] = set()
        self.places = LibraryFolders((), ())

    async def begin(self, step: Callable[[], object]) -> None:
        """Find out which prompts there are, as quickly as possible: what has not changed is not read.

        `step` is called when some more libraries can be listed. They come in the order of their names.
        """
        self._kept = await self._disk.run(self._cache.load)
        self.places = places = await self._disk.run(self._directories.look)
        order = sorted(places.all, key=lambda place: place.name)
        found: dict[str, LoadedLibrary] = {}
        async for library in self._libraries(order, complete=False):
            found[library.place.folder.path] = library
            if len(found) % _BATCH == 0:
                ordered = (found[place.folder.path] for place in places.all if place.folder.path in found)
                self._catalogue.arrange(ordered, library.name)
                step()
        self._catalogue.arrange(found[place.folder.path] for place in places.all)
        # What was kept has been reported when it was read.
        self._report(path for path, library in found.items() if library.is_parsed)

    async def refresh(self, touched: set[str] | None) -> bool:
        """Look again at the places that were touched, or at all; whether anything is different now."""
        return await self._read(await self._disk.run(self._directories.look), touched)

    async def keep(self) -> None:
        """Have what is known at hand for the next start."""
        known = {path: library.kept() for path, library in self._catalogue.libraries.items()}
        kept = {path: entry for path, entry in known.items() if entry is not None}
        if _stamps(kept) != _stamps(self._kept):
            self._kept = kept
            await self._disk.run(lambda: self._cache.save(kept))

    def folders(self) -> dict[str, int]:
        """All folders in which something could change, with their inodes."""
        found = {top: inode for top in self.places.tops() if (inode := _inode(top)) is not None}
        for library in self._catalogue.libraries.values():
            found |= library.folders()
        return found

    def close(self) -> None:
        self._reader.close()
        self._disk.close()

    async def _read(self, places: LibraryFolders, touched: set[str] | None) -> bool:
        self.places = places
        self._report_directories()
        known = self._catalogue.libraries
        different = bool(known.keys() - {place.folder.path for place in places.all})
        libraries = {place.folder.path: known.get(place.folder.path) for place in places.all}
        to_read = [
            place
            for place in places.all
            if libraries[place.folder.path] is None or touched is None or place.real in touched
        ]
        changed: list[str] = []
        room = _TEXT_ROOM - sum(library.text_length for library in known.values())
        async for library in self._libraries(to_read, complete=True):
            path = library.place.folder.path
            old = libraries[path]
            if library.differs(old):
                different = True
                changed.append(path)
            elif library.unread:
                changed.append(path)
            room += (old.text_length if old is not None else 0) - library.text_length
            libraries[path] = library if room >= 0 else library.without_texts()
            room += 0 if room >= 0 else library.text_length
        self._catalogue.arrange(library for library in libraries.values() if library is not None)
        self._report(changed)
        return different

    async def _libraries(
        self, places: Sequence[LibraryFolder], *, complete: bool
    ) -> AsyncIterator[LoadedLibrary]:
        """The libraries in these places, read some at a time."""
        known = self._catalogue.libraries
        chosen = {place.folder.path for place in places}
        room = _FILE_ROOM - sum(item.file_length for path, item in known.items() if path not in chosen)
        start = 0
        while start < len(places):
            some = places[start : start + _BATCH]
            old = [known.get(place.folder.path) or self._remembered(place) for place in some]
            surveys = await self._disk.run(lambda: _surveys(some, old, complete=complete))  # noqa: B023  # awaited
            start += len(surveys)
            loading = (
                self._library(found, before, served=found.place.folder.path in known)
                for found, before in zip(surveys, old, strict=False)
            )
            for library in await gather(*loading):
                room -= library.file_length
                yield library if room >= 0 else library.without_prompts(_NO_ROOM)
                room += 0 if room >= 0 else library.file_length

    def _remembered(self, place: LibraryFolder) -> LoadedLibrary | None:
        kept = self._kept.get(place.folder.path)
        return None if kept is None else LoadedLibrary(place, kept.stamps, kept.files)

    async def _library(self, found: FolderScan, old: LoadedLibrary | None, *, served: bool) -> LoadedLibrary:
        if old is not None and not found.complete and found.stamps == old.stamps:
            return old
        return await self._loader.load(found, old, served=served)

    def _report_directories(self) -> None:
        for directory, problem in self.places.problems.items():
            if not self._quiet and (directory, problem) not in self._logged_directories:
                self._logged_directories.add((directory, problem))
                _log.warning("%s: %s", display_path(directory), problem)

    def _report(self, paths: Iterable[str]) -> None:
        """Log the errors in these folders that have not been logged before."""
        if self._quiet:
            return
        news = [
            (report.folder, problem)
            for report in self._catalogue.reports(paths)
            for problem in report.problems
            if problem.level == "error" and (report.folder, problem) not in self._logged
        ]
        self._logged.update(news)
        for folder, problem in news[:_MAX_LINES]:
            line = "" if problem.line is None else f":{problem.line}"
            where = f"{display_path(folder)}/{problem.file}{line}".rstrip("/")
            _log.warning("%s: %s", where, problem.message)
        if len(news) > _MAX_LINES:
            more = len(news) - _MAX_LINES
            _log.warning("and %d more problems with libraries; dittybag library check shows them all", more)


def _inode(folder: str) -> int | None:
    try:
        return os.stat(folder).st_ino
    except OSError:
        return None


def _surveys(
    places: Sequence[LibraryFolder], old: Sequence[LoadedLibrary | None], *, complete: bool
) -> list[FolderScan]:
    """Surveys of the first of these places, as many as fit into memory, at least one."""
    surveys: list[FolderScan] = []
    room = _READING_ROOM
    for place, before in zip(places, old, strict=True):
        if room < 0:
            break
        found = scan_folder(
            place,
            before.stamps if before is not None else {},
            before.text_stamps() if before is not None else {},
            complete=complete,
        )
        room -= sum(map(len, found.contents.values())) + sum(map(len, found.texts.values()))
        surveys.append(found)
    return surveys


def _stamps(kept: Mapping[str, CacheEntry]) -> dict[str, object]:
    return {path: entry.stamps for path, entry in kept.items()}
