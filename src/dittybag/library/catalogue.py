"""The catalogue of loaded libraries, by folder and by name."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from dittybag.domain.errors import LibraryPromptNotFound
from dittybag.domain.libraries import FileProblem, LibraryPrompt, LibraryReport
from dittybag.files import display_path
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.loaded_library import LoadedLibrary


class Catalogue:
    """All libraries in order of precedence: the first library with a name is used."""

    def __init__(self) -> None:
        #: By folder path.
        self.libraries: dict[str, LoadedLibrary] = {}
        #: The libraries that are served, by name.
        self.by_name: dict[str, LoadedLibrary] = {}
        self._names: list[str] = []
        #: During the first load, all libraries with smaller names are loaded; None when it is finished.
        self._loaded_before: str | None = ""

    def set_libraries(self, libraries: Iterable[LoadedLibrary], loaded_before: str | None = None) -> None:
        """Replace all libraries. During the first load, only those before `loaded_before` are complete."""
        self._loaded_before = loaded_before
        self.libraries = {library.folder.root.path: library for library in libraries}
        self.by_name = {}
        for library in self.libraries.values():
            if library.name and library.stamps:
                self.by_name.setdefault(library.name, library)
        self._names = sorted(self.by_name)

    def page(self, after: str, limit: int) -> list[LibraryPrompt] | None:
        """At most `limit` prompts after the name `after`, sorted by library and key.

        None if too few libraries have been loaded to know.
        """
        name, _, key = after.partition(":")
        found: list[LibraryPrompt] = []
        end = None if self._loaded_before is None else bisect_left(self._names, self._loaded_before)
        for library_name in self._names[bisect_left(self._names, name) : end]:
            library = self.by_name[library_name]
            found += (
                library.to_library_prompt(prompt)
                for prompt in library.prompts.values()
                if library_name != name or prompt.key > key
            )
            if len(found) >= limit:
                return found[:limit]
        return found if end is None else None

    def find(self, name: str) -> tuple[LoadedLibrary, ParsedPrompt]:
        """The library and the prompt with the name `library:key`. Raises `LibraryPromptNotFound`."""
        library_name, _, key = name.partition(":")
        library = self.by_name.get(library_name)
        prompt = library.prompts.get(key) if library is not None else None
        if library is None or prompt is None:
            raise LibraryPromptNotFound(name)
        return library, prompt

    def prompts(self, library: str) -> list[LibraryPrompt]:
        """All prompts of a library, sorted by key."""
        found = self.by_name.get(library)
        return [] if found is None else [found.to_library_prompt(prompt) for prompt in found.prompts.values()]

    def reports(self, paths: Iterable[str] | None = None) -> list[LibraryReport]:
        """Reports on all libraries, including hidden ones, or only on those in the folders `paths`."""
        chosen = self.libraries if paths is None else paths
        return [self._report(self.libraries[path]) for path in chosen]

    def _report(self, library: LoadedLibrary) -> LibraryReport:
        first = self.by_name.get(library.name)
        if not library.name:
            problem = (
                "the folder's name has no letter or digit, so the library has no name; rename the folder"
            )
        elif first is not None and first is not library:
            other = display_path(first.folder.root.path)
            problem = f"hidden by another library with the name '{library.name}': {other}"
        else:
            return library.report()
        return library.report(FileProblem("", problem))
