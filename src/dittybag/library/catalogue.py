"""Loaded libraries, as last read from their files, and the catalogue of them by folder and by name."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dittybag.domain.errors import LibraryPromptNotFound
from dittybag.domain.libraries import FileProblem, LibraryPrompt, LibraryReport
from dittybag.files import display_path
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.library_folders import LibraryFolder
from dittybag.library.parse_cache import CacheEntry
from dittybag.library.safe_folder import Stamp


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


class FileState(Struct, frozen=True, array_like=True):
    """The prompts of a file, from its current or its last good version."""

    format: str
    prompts: tuple[ParsedPrompt, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    #: Whether some prompts are from an earlier version of the file.
    stale: bool = False


class TemplateState(Struct, frozen=True):
    """A file that contains only a template, in its current or its last good version."""

    stamp: Stamp
    #: None if the text is not held in memory; it is then read on demand.
    text: str | None
    problem: FileProblem | None = None


_decoder = msgspec.msgpack.Decoder(dict[str, FileState])


class LoadedLibrary:
    """One library. Immutable: reading it again creates a new object."""

    def __init__(
        self,
        folder: LibraryFolder,
        stamps: Mapping[str, Stamp],
        files: dict[str, FileState] | Raw,
        *,
        templates: Mapping[str, TemplateState] | None = None,
        skipped: Mapping[str, str] | None = None,
        unreadable: Mapping[str, FileProblem] | None = None,
        skill_files: Mapping[str, Stamp] | None = None,
        inodes: Mapping[str, int] | None = None,
        complete: bool = False,
    ) -> None:
        """`complete`: all files were scanned, not only those that define prompts."""
        self.folder = folder
        #: The stamps of the files that define prompts.
        self.stamps = stamps
        self.templates: Mapping[str, TemplateState] = templates or {}
        self.complete = complete
        self._files = files
        self._skipped = skipped or {}
        #: Files that exist but cannot be read.
        self.unreadable: Mapping[str, FileProblem] = unreadable or {}
        #: All files of skills, with their stamps.
        self.skill_files: Mapping[str, Stamp] = skill_files or {}
        self._inodes: Mapping[str, int] = inodes or {}
        self._prompts: dict[str, ParsedPrompt] | None = None
        self._duplicates: list[FileProblem] = []

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def files(self) -> dict[str, FileState]:
        if not isinstance(self._files, dict):
            self._files = _decoder.decode(self._files)
        return self._files

    @property
    def raw_files(self) -> dict[str, FileState] | Raw:
        """The files, decoded or not, for a library that shares them."""
        return self._files

    @property
    def is_parsed(self) -> bool:
        """Whether the files are decoded."""
        return isinstance(self._files, dict)

    @property
    def prompts(self) -> dict[str, ParsedPrompt]:
        """The prompts by key, sorted. If two files define the same key, the first file wins."""
        if self._prompts is None:
            found: dict[str, ParsedPrompt] = {}
            for file, state in sorted(self.files.items()):
                for prompt in state.prompts:
                    first = found.setdefault(prompt.key, prompt)
                    if first is not prompt:
                        problem = f"prompt '{prompt.key}' is already defined in {first.file}; rename one"
                        self._duplicates.append(FileProblem(file, problem))
            self._prompts = dict(sorted(found.items()))
        return self._prompts

    def to_library_prompt(self, prompt: ParsedPrompt) -> LibraryPrompt:
        """A prompt of this library, for lists."""
        return LibraryPrompt(
            library=self.name,
            key=prompt.key,
            title=prompt.title,
            description=prompt.description,
            arguments=prompt.arguments,
        )

    def report(self, *more: FileProblem) -> LibraryReport:
        """A report on this library; `more` are problems found elsewhere."""
        formats: dict[str, int] = {}
        prompts = self.prompts
        for state in self.files.values():
            count = sum(prompts.get(prompt.key) is prompt for prompt in state.prompts)
            formats[state.format] = formats.get(state.format, 0) + count
        skipped = dict(self._skipped)
        problems: list[FileProblem] = []
        for file, state in self.files.items():
            if state.prompts or any(problem.level == "error" for problem in state.problems):
                problems += state.problems
            else:
                # Its path looks like a prompt, but its content is not.
                skipped[file] = (
                    "; ".join(problem.message for problem in state.problems) or "contains no prompt"
                )
        problems += [text.problem for text in self.templates.values() if text.problem is not None]
        return LibraryReport(
            name=self.name,
            folder=self.folder.root.path,
            formats={name: count for name, count in formats.items() if count},
            problems=(*more, *problems, *self.unreadable.values(), *self._duplicates),
            skipped=skipped,
        )

    def watched_folders(self) -> dict[str, int]:
        """The real paths of all folders of this library, with their inodes."""
        real = self.folder.real_path
        return {os.path.join(real, name) if name else real: inode for name, inode in self._inodes.items()}

    @property
    def length(self) -> int:
        """Total length of the prompts and templates that are held in memory."""
        templates = sum(len(state.text or "") for state in self.templates.values())
        if isinstance(self._files, Raw):
            return templates + len(memoryview(self._files))
        prompts = (prompt for state in self._files.values() for prompt in state.prompts)
        return templates + sum(len(prompt.text or "") for prompt in prompts)

    def without_prompts(self, problem: FileProblem) -> LoadedLibrary:
        """The same library without its prompts, which are read again at the next refresh."""
        return LoadedLibrary(
            self.folder, {}, {}, unreadable={"": problem}, inodes=self._inodes, complete=self.complete
        )

    def with_problem(self, problem: FileProblem) -> LoadedLibrary:
        """The same library, whose folder cannot be read at the moment."""
        return self._copy(unreadable={"": problem})

    def with_skill_files(self, files: Mapping[str, Stamp]) -> LoadedLibrary:
        """The same library with these files of skills, which are not in the cache."""
        return self._copy(skill_files=files)

    def _copy(self, **changes: Any) -> LoadedLibrary:
        fields: dict[str, Any] = {
            "templates": self.templates,
            "skipped": self._skipped,
            "unreadable": self.unreadable,
            "skill_files": self.skill_files,
            "inodes": self._inodes,
            "complete": self.complete,
        }
        return LoadedLibrary(self.folder, self.stamps, self._files, **fields | changes)

    def differs_from(self, old: LoadedLibrary | None) -> bool:
        """Whether clients and pages that know the old version must be notified."""
        if old is None:
            return bool(self.stamps)
        if self.stamps != old.stamps:
            return True
        return old.complete and (
            _stamps(self.templates) != _stamps(old.templates) or self.unreadable != old.unreadable
        )

    def changed_skill_files(self, old: LoadedLibrary | None) -> set[str]:
        """The files of skills that were added, changed or removed."""
        known = old.skill_files if old is not None else {}
        files = self.skill_files.keys() | known.keys()
        return {file for file in files if self.skill_files.get(file) != known.get(file)}

    def template_stamps(self) -> dict[str, Stamp]:
        return _stamps(self.templates)

    def cache_entry(self) -> CacheEntry | None:
        """The entry for the cache; None if the library must be parsed again at the next start."""
        if isinstance(self._files, Raw):
            return CacheEntry(dict(self.stamps), self._files)
        if self.unreadable or any(state.stale for state in self._files.values()):
            return None
        return CacheEntry(dict(self.stamps), Raw(msgspec.msgpack.encode(self._files)))


def _stamps(templates: Mapping[str, TemplateState]) -> dict[str, Stamp]:
    return {file: state.stamp for file, state in templates.items()}
