"""What a library holds, as it was last read from its files."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from dittybag.domain.libraries import FileProblem, LibraryPrompt, LibraryReport
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.library_folders import LibraryFolder
from dittybag.library.parse_cache import CacheEntry
from dittybag.library.safe_folder import Stamp


class FileState(Struct, frozen=True, array_like=True):
    """What a file says, or said when it was last in order."""

    format: str
    drafts: tuple[ParsedPrompt, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    #: Some of it is what it said before.
    stale: bool = False


class TextState(Struct, frozen=True):
    """A file that is nothing but a template, as it is or was when it was last in order."""

    stamp: Stamp
    #: Nothing if there is no room for it; then it is read when it is needed.
    text: str | None
    problem: FileProblem | None = None


_files = msgspec.msgpack.Decoder(dict[str, FileState])


class LoadedLibrary:
    """One library. It is never changed: a library that was read again is another one."""

    def __init__(
        self,
        place: LibraryFolder,
        stamps: Mapping[str, Stamp],
        files: dict[str, FileState] | Raw,
        *,
        texts: Mapping[str, TextState] | None = None,
        skipped: Mapping[str, str] | None = None,
        unread: Mapping[str, FileProblem] | None = None,
        folders: Mapping[str, int] | None = None,
        complete: bool = False,
    ) -> None:
        """`complete`: all files have been looked at, not only those that say which prompts there are."""
        self.place = place
        #: Of the files that say which prompts there are.
        self.stamps = stamps
        self.texts: Mapping[str, TextState] = texts or {}
        self.complete = complete
        self._files = files
        self._skipped = skipped or {}
        #: Files that are there, but cannot be read.
        self.unread: Mapping[str, FileProblem] = unread or {}
        self._folders: Mapping[str, int] = folders or {}
        self._drafts: dict[str, ParsedPrompt] | None = None
        self._clashes: list[FileProblem] = []

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def files(self) -> dict[str, FileState]:
        if not isinstance(self._files, dict):
            self._files = _files.decode(self._files)
        return self._files

    @property
    def unparsed(self) -> dict[str, FileState] | Raw:
        """The files as they are at hand, for a library that differs in something else."""
        return self._files

    @property
    def is_parsed(self) -> bool:
        """Whether anybody has asked yet what is in the files."""
        return isinstance(self._files, dict)

    @property
    def drafts(self) -> dict[str, ParsedPrompt]:
        """The prompts by their keys, in order. Of two with one key, the first file's is taken."""
        if self._drafts is None:
            found: dict[str, ParsedPrompt] = {}
            for file, state in sorted(self.files.items()):
                for draft in state.drafts:
                    first = found.setdefault(draft.key, draft)
                    if first is not draft:
                        problem = f"is another prompt called '{draft.key}', and {first.file} comes first"
                        self._clashes.append(FileProblem(file, problem))
            self._drafts = dict(sorted(found.items()))
        return self._drafts

    def prompt(self, draft: ParsedPrompt) -> LibraryPrompt:
        """A prompt of this library as lists show it."""
        return LibraryPrompt(
            library=self.name,
            key=draft.key,
            title=draft.title,
            description=draft.description,
            arguments=draft.arguments,
        )

    def report(self, *more: FileProblem) -> LibraryReport:
        """How it is doing; `more` is what only others know."""
        formats: dict[str, int] = {}
        drafts = self.drafts
        for state in self.files.values():
            given = sum(drafts.get(draft.key) is draft for draft in state.drafts)
            formats[state.format] = formats.get(state.format, 0) + given
        skipped = dict(self._skipped)
        problems: list[FileProblem] = []
        for file, state in self.files.items():
            if state.drafts or any(problem.level == "error" for problem in state.problems):
                problems += state.problems
            else:
                # It looked like a prompt from outside, and is none.
                skipped[file] = "; ".join(problem.message for problem in state.problems) or "holds no prompt"
        problems += [text.problem for text in self.texts.values() if text.problem is not None]
        return LibraryReport(
            name=self.name,
            folder=self.place.folder.path,
            formats={name: count for name, count in formats.items() if count},
            problems=(*more, *problems, *self.unread.values(), *self._clashes),
            skipped=skipped,
        )

    def folders(self) -> dict[str, int]:
        """Where its files really are: the paths of folders, with their inodes."""
        real = self.place.real
        return {os.path.join(real, name) if name else real: inode for name, inode in self._folders.items()}

    @property
    def text_length(self) -> int:
        """How much room the texts take that it holds."""
        return sum(len(text.text) for text in self.texts.values() if text.text is not None)

    @property
    def file_length(self) -> int:
        """How much room its prompts take that are not in files of their own."""
        if isinstance(self._files, Raw):
            return len(memoryview(self._files))
        return sum(len(draft.text or "") for state in self._files.values() for draft in state.drafts)

    def without_prompts(self, problem: FileProblem) -> LoadedLibrary:
        """The same library, if there is no room for it. Nothing is known of its files: it is read again."""
        return LoadedLibrary(
            self.place, {}, {}, unread={"": problem}, folders=self._folders, complete=self.complete
        )

    def without_texts(self) -> LoadedLibrary:
        """The same library, if there is no room for its texts."""
        texts = {file: TextState(state.stamp, None, state.problem) for file, state in self.texts.items()}
        return LoadedLibrary(
            self.place,
            self.stamps,
            self._files,
            texts=texts,
            skipped=self._skipped,
            unread=self.unread,
            folders=self._folders,
            complete=self.complete,
        )

    def differs(self, old: LoadedLibrary | None) -> bool:
        """Whether somebody who knows the old one should be told."""
        if old is None:
            return bool(self.stamps)
        if self.stamps != old.stamps:
            return True
        return old.complete and _stamps(self.texts) != _stamps(old.texts)

    def text_stamps(self) -> dict[str, Stamp]:
        return _stamps(self.texts)

    def kept(self) -> CacheEntry | None:
        """What a cache needs to know of it; nothing if it is to be read again at the next start."""
        if isinstance(self._files, Raw):
            return CacheEntry(dict(self.stamps), self._files)
        if self.unread or any(state.stale for state in self._files.values()):
            return None
        return CacheEntry(dict(self.stamps), Raw(msgspec.msgpack.encode(self._files)))


def _stamps(texts: Mapping[str, TextState]) -> dict[str, Stamp]:
    return {file: state.stamp for file, state in texts.items()}
