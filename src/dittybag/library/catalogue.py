"""The catalogue: which libraries there are, under which names."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from dittybag.domain.errors import LibraryPromptNotFound
from dittybag.domain.libraries import FileProblem, LibraryPrompt, LibraryReport
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.library_folders import display_path
from dittybag.library.loaded_library import LoadedLibrary


class Catalogue:
    """All libraries, in the order in which the first of a name wins."""

    def __init__(self) -> None:
        #: By the path of their folder.
        self.libraries: dict[str, LoadedLibrary] = {}
        self._named: dict[str, LoadedLibrary] = {}
        self._names: list[str] = []
        #: While they are being read for the first time: all with smaller names are there.
        self._frontier: str | None = ""

    def arrange(self, libraries: Iterable[LoadedLibrary], frontier: str | None = None) -> None:
        """These are all libraries from now on, or all with names before `frontier`."""
        self._frontier = frontier
        self.libraries = {library.place.folder.path: library for library in libraries}
        self._named = {}
        for library in self.libraries.values():
            if library.name and library.stamps:
                self._named.setdefault(library.name, library)
        self._names = sorted(self._named)

    def page(self, after: str, limit: int) -> list[LibraryPrompt] | None:
        """Prompts in the order of their libraries and keys, from the one after `after` on.

        Nothing if not enough libraries have been read to say so.
        """
        name, _, key = after.partition(":")
        found: list[LibraryPrompt] = []
        end = None if self._frontier is None else bisect_left(self._names, self._frontier)
        for library_name in self._names[bisect_left(self._names, name) : end]:
            library = self._named[library_name]
            found += (
                library.prompt(draft)
                for draft in library.drafts.values()
                if library_name != name or draft.key > key
            )
            if len(found) >= limit:
                return found[:limit]
        return found if end is None else None

    def find(self, name: str) -> tuple[LoadedLibrary, ParsedPrompt]:
        """The prompt called `library:key`. Raises `LibraryPromptNotFound`."""
        library_name, _, key = name.partition(":")
        library = self._named.get(library_name)
        draft = library.drafts.get(key) if library is not None else None
        if library is None or draft is None:
            raise LibraryPromptNotFound(name)
        return library, draft

    def prompts(self, library: str) -> list[LibraryPrompt]:
        """All prompts of the library of this name."""
        found = self._named.get(library)
        return [] if found is None else [found.prompt(draft) for draft in found.drafts.values()]

    def reports(self, paths: Iterable[str] | None = None) -> list[LibraryReport]:
        """How libraries are doing, also those that nobody can ask for; with `paths`, only those in them."""
        chosen = self.libraries if paths is None else paths
        return [self._report(self.libraries[path]) for path in chosen]

    def _report(self, library: LoadedLibrary) -> LibraryReport:
        first = self._named.get(library.name)
        if not library.name:
            problem = "the folder's name has no letter or digit that could name a library"
        elif first is not None and first is not library:
            other = display_path(first.place.folder.path)
            problem = f"is hidden by another library called '{library.name}': {other}"
        else:
            return library.report()
        return library.report(FileProblem("", problem))
