"""Reads libraries: looks at the folders, and has what has changed since the last time parsed and checked.

A file that was in order and no longer is keeps its last good version, and the problem is reported.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Container, Iterable, Mapping
from typing import Final

from msgspec import Raw, Struct

from dittybag.domain.errors import RenderingFailed
from dittybag.domain.libraries import FILE_BYTES, SOURCE_BYTES, FileProblem
from dittybag.library.formats import detect_formats
from dittybag.library.formats.parsed_prompt import ParsedFile, ParsedPrompt
from dittybag.library.library_folders import LibraryFolder
from dittybag.library.loaded_library import FileState, LoadedLibrary, TextState
from dittybag.library.render.child_reader import FileReader
from dittybag.library.render.template_renderer import TemplateRenderer
from dittybag.library.safe_folder import FolderListing, MissingFile, SafeFolder, Stamp, UnreadableFile

MANIFEST: Final = "twig.toml"

#: What the files of a library may take to read: this, and so much for each of them.
_PATIENCE_SECONDS: Final = 0.3
_FILE_SECONDS: Final = 0.005
#: So many are on their way to the child at a time: it is never without work, and soon stopped.
_AT_ONCE: Final = 4

#: The files of a library that are read have at most so many bytes together.
LIBRARY_BYTES: Final = 16 * 1024 * 1024

_STILL_SERVED: Final = "; its last good version is still served"


class FolderScan(Struct, frozen=True):
    """What was found in a folder. Only what has changed was read."""

    place: LibraryFolder
    #: The files that say which prompts there are, and how to read each.
    formats: dict[str, str]
    stamps: dict[str, Stamp]
    contents: dict[str, str]
    unread: dict[str, FileProblem]
    skipped: dict[str, str]
    #: The files that are nothing but templates.
    text_stamps: dict[str, Stamp]
    texts: dict[str, str]
    #: Where its files are, with inodes; nothing unless it is complete.
    folders: dict[str, int]
    complete: bool


def scan_folder(
    place: LibraryFolder, known: Mapping[str, Stamp], texts: Mapping[str, Stamp], *, complete: bool
) -> FolderScan:
    """Look at a folder; what has other stamps than those known is read.

    `complete`: also look at files that are nothing but templates.
    """
    folder = place.folder
    if not complete and (stamp := folder.stamp(MANIFEST)) is not None:
        # It alone says which prompts there are.
        listing = FolderListing({MANIFEST: stamp}, {}, {})
    else:
        listing = folder.list()
    files = listing.files
    formats, skipped = detect_formats(list(files))
    stamps = {file: files[file] for file in formats}
    fitting = _fitting(stamps)
    contents, unread = _changed(folder, stamps, known, FILE_BYTES, fitting)
    for file in stamps.keys() - fitting:
        mib = LIBRARY_BYTES // 1024 // 1024
        unread[file] = FileProblem(file, f"is left out: the prompts of a library have at most {mib} MiB")
    text_stamps = {}
    if complete and MANIFEST in formats:
        text_stamps = {file: stamp for file, stamp in files.items() if is_text(file)}
    new_texts, bad_texts = _changed(folder, text_stamps, texts, SOURCE_BYTES, _fitting(text_stamps))
    for file in text_stamps:
        skipped.pop(file, None)
    return FolderScan(
        place=place,
        formats=formats,
        stamps=stamps,
        contents=contents,
        unread=unread | bad_texts,
        skipped=skipped | listing.left_out,
        text_stamps=text_stamps,
        texts=new_texts,
        folders=listing.folders,
        complete=complete,
    )


def is_text(file: str) -> bool:
    """Whether a file of a library with a manifest is the template of a prompt."""
    return file.startswith("prompts/") and file.endswith(".md") and file.count("/") == 1


def _fitting(stamps: Mapping[str, Stamp]) -> set[str]:
    """The files that are read, because there is room for them."""
    fitting = set()
    room = LIBRARY_BYTES
    for file, (_, size, _, _) in stamps.items():
        # One that is too large is refused before it is read.
        room -= min(size, FILE_BYTES)
        if room >= 0:
            fitting.add(file)
    return fitting


def _changed(
    folder: SafeFolder,
    stamps: dict[str, Stamp],
    known: Mapping[str, Stamp],
    most: int,
    fitting: Container[str],
) -> tuple[dict[str, str], dict[str, FileProblem]]:
    """The texts of the files that have changed, with their stamps put right, and what cannot be read."""
    contents: dict[str, str] = {}
    unread: dict[str, FileProblem] = {}
    for file, stamp in list(stamps.items()):
        if known.get(file) == stamp or file not in fitting:
            continue
        try:
            stamps[file], contents[file] = folder.text(file, most)
        except MissingFile:
            del stamps[file]
        except UnreadableFile as error:
            unread[file] = FileProblem(file, error.problem, error.line)
    return contents, unread


class LibraryLoader:
    """Makes libraries of what was found in folders."""

    def __init__(self, reader: FileReader, renderer: TemplateRenderer) -> None:
        self._reader = reader
        self._renderer = renderer

    async def load(self, found: FolderScan, old: LoadedLibrary | None, *, served: bool) -> LoadedLibrary:
        """The library in a folder, given what it was when it was last read.

        `served`: somebody has seen it as it was, and should not lose it to a slip of its author's.
        """
        unread = dict(found.unread)
        if old is not None and found.stamps == old.stamps and not (unread or old.unread):
            files: dict[str, FileState] | Raw = old.unparsed
        else:
            files = await self._files(found, old, unread, served=served)
        return LoadedLibrary(
            found.place,
            found.stamps,
            files,
            texts=await self._texts(found, old, unread),
            skipped=found.skipped,
            unread=unread,
            folders=found.folders,
            complete=found.complete,
        )

    async def _files(
        self, found: FolderScan, old: LoadedLibrary | None, unread: dict[str, FileProblem], *, served: bool
    ) -> dict[str, FileState]:
        files: dict[str, FileState] = {}
        said = await self._said(found, unread)
        for file, kind in found.formats.items():
            if file not in found.stamps:
                continue
            before = old.files.get(file) if old is not None else None
            if file in said:
                files[file] = await self._in_order(kind, said[file], before if served else None)
            elif file in unread:
                if served and before is not None and before.drafts:
                    files[file] = _stale(before, (unread.pop(file),))
            elif before is not None:
                files[file] = before
            elif old is not None and file in old.unread:
                unread[file] = old.unread[file]
        return files

    async def _said(self, found: FolderScan, unread: dict[str, FileProblem]) -> dict[str, ParsedFile]:
        """What the files say now that have changed; those that take too long together are left unread."""
        said: dict[str, ParsedFile] = {}
        waiting = list(found.contents)
        spent = 0.0
        while waiting and spent <= _PATIENCE_SECONDS + len(said) * _FILE_SECONDS:
            some, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
            answers = await gather(
                *(self._reader.read(found.formats[file], file, found.contents[file]) for file in some)
            )
            for file, (reading, seconds) in zip(some, answers, strict=True):
                said[file] = reading
                spent += seconds
        for file in waiting:
            unread[file] = FileProblem(file, "is left out: the files of this library take too long to read")
        return said

    async def _in_order(self, format: str, reading: ParsedFile, before: FileState | None) -> FileState:
        """What a file says now, or what it said before if it says nothing useful any more."""
        state = FileState(format, reading.drafts, reading.problems)
        if before is None or not before.drafts:
            return state
        if not reading.drafts and any(problem.level == "error" for problem in reading.problems):
            return _stale(before, reading.problems)
        good = {draft.key: draft for draft in before.drafts}
        drafts: list[ParsedPrompt] = []
        stale = False
        problems = list(reading.problems)
        for draft in reading.drafts:
            problem = await self._template_problem(draft.file, draft.text, draft)
            if problem is not None and draft.key in good:
                stale = True
                drafts.append(good[draft.key])
                problems.append(_still_served(problem))
            else:
                drafts.append(draft)
        return FileState(format, tuple(drafts), tuple(problems), stale=stale)

    async def _texts(
        self, found: FolderScan, old: LoadedLibrary | None, unread: dict[str, FileProblem]
    ) -> dict[str, TextState]:
        if not found.complete:
            return dict(old.texts) if old is not None else {}
        before = old.texts if old is not None else {}
        texts: dict[str, TextState] = {}
        for file, stamp in found.text_stamps.items():
            known = before.get(file)
            problem = unread.get(file)
            if problem is None and (text := found.texts.get(file)) is not None:
                problem = None if known is None else await self._template_problem(file, text, None)
                if problem is None:
                    texts[file] = TextState(stamp, text)
            elif problem is None:
                # As it was, or there is no room for it.
                texts[file] = known if known is not None and known.stamp == stamp else TextState(stamp, None)
            if problem is not None and known is not None and known.text is not None:
                unread.pop(file, None)
                texts[file] = TextState(stamp, known.text, _still_served(problem))
        return texts

    async def _template_problem(
        self, file: str, text: str | None, draft: ParsedPrompt | None
    ) -> FileProblem | None:
        if text is None or (draft is not None and not draft.template):
            return None
        try:
            await self._renderer.variables(text, file=file)
        except RenderingFailed as error:
            before = draft.lines_before if draft is not None else 0
            return FileProblem(file, error.problem, None if error.line is None else error.line + before)
        return None


def _stale(state: FileState, problems: Iterable[FileProblem]) -> FileState:
    return FileState(state.format, state.drafts, tuple(map(_still_served, problems)), stale=True)


def _still_served(problem: FileProblem) -> FileProblem:
    return FileProblem(problem.file, problem.message + _STILL_SERVED, problem.line, problem.level)
