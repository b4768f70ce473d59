"""Load libraries: scan their folders, then parse and check the files that have changed.

If a served file becomes invalid, its last good version stays in use and the problem is reported.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Container, Iterable, Mapping
from typing import Final

from msgspec import Raw, Struct

from dittybag.domain.errors import RenderingFailed
from dittybag.domain.libraries import SOURCE_BYTES, FileProblem
from dittybag.library.catalogue import FileState, LoadedLibrary, TemplateState
from dittybag.library.formats.format_detection import detect_formats
from dittybag.library.formats.parsed_prompt import ParsedFile, ParsedPrompt
from dittybag.library.library_folders import LibraryFolder
from dittybag.library.render.child_reader import FileReader
from dittybag.library.render.template_renderer import TemplateRenderer
from dittybag.library.safe_folder import FolderListing, MissingFile, SafeFolder, Stamp, UnreadableFile
from dittybag.library.skill_folders import find_skill_files

MANIFEST: Final = "twig.toml"

#: The time limit for parsing the files of a library: a base, plus this much per file.
_BASE_SECONDS: Final = 0.3
_SECONDS_PER_FILE: Final = 0.005
#: Enough to keep the child process busy, and few enough to stop soon after the time limit.
_PARALLEL_FILES: Final = 4

#: Maximum total size of the files that are read in a library.
MAX_LIBRARY_BYTES: Final = 16 * 1024 * 1024

_STILL_SERVED: Final = "; its last good version is still served"


class FolderScan(Struct, frozen=True):
    """The files found in a library folder, with the content of those that have changed."""

    folder: LibraryFolder
    #: The format of each file that defines prompts.
    formats: dict[str, str]
    stamps: dict[str, Stamp]
    contents: dict[str, str]
    unreadable: dict[str, FileProblem]
    skipped: dict[str, str]
    #: Files that contain only a template (`prompts/KEY.md` next to a manifest).
    template_stamps: dict[str, Stamp]
    templates: dict[str, str]
    #: The files of skills.
    skill_files: dict[str, Stamp]
    #: Paths and inodes of all folders; empty unless the scan is complete.
    folders: dict[str, int]
    complete: bool


def scan_folder(
    folder: LibraryFolder, known: Mapping[str, Stamp], templates: Mapping[str, Stamp], *, complete: bool
) -> FolderScan:
    """List a folder and read the files whose stamps differ from `known` and `templates`.

    `complete`: include files that contain only a template.
    """
    root = folder.root
    if not complete and (stamp := root.stamp(MANIFEST)) is not None:
        # The manifest alone defines the prompts.
        listing = FolderListing({MANIFEST: stamp}, {}, {}, {})
    else:
        listing = root.list()
    files = listing.files
    formats, skipped = detect_formats(list(files))
    stamps = {file: files[file] for file in formats}
    fitting = _within_limit(stamps)
    contents, unreadable = _read_changed(root, stamps, known, SOURCE_BYTES, fitting)
    unreadable |= {name: FileProblem(name, problem) for name, problem in listing.unreadable.items()}
    for file in stamps.keys() - fitting:
        mib = MAX_LIBRARY_BYTES // 1024 // 1024
        unreadable[file] = FileProblem(
            file, f"skipped: the prompt files of a library can have at most {mib} MiB in total"
        )
    template_stamps = {}
    if complete and MANIFEST in formats:
        template_stamps = {file: stamp for file, stamp in files.items() if is_prompt_template(file)}
    new_templates, bad_templates = _read_changed(
        root, template_stamps, templates, SOURCE_BYTES, _within_limit(template_stamps)
    )
    for file in template_stamps:
        skipped.pop(file, None)
    return FolderScan(
        folder=folder,
        formats=formats,
        stamps=stamps,
        contents=contents,
        unreadable=unreadable | bad_templates,
        skipped=skipped | listing.skipped,
        template_stamps=template_stamps,
        templates=new_templates,
        skill_files=find_skill_files(listing, formats),
        folders=listing.folders,
        complete=complete,
    )


def is_prompt_template(file: str) -> bool:
    """Whether a file next to a manifest can be the template of a prompt."""
    return file.startswith("prompts/") and file.endswith(".md") and file.count("/") == 1


def _within_limit(stamps: Mapping[str, Stamp]) -> set[str]:
    """The files that fit into `MAX_LIBRARY_BYTES`, in order."""
    fitting = set()
    room = MAX_LIBRARY_BYTES
    for file, (_, size, _, _) in stamps.items():
        # A larger file is refused before it is read.
        room -= min(size, SOURCE_BYTES)
        if room >= 0:
            fitting.add(file)
    return fitting


def _read_changed(
    folder: SafeFolder,
    stamps: dict[str, Stamp],
    known: Mapping[str, Stamp],
    max_bytes: int,
    fitting: Container[str],
) -> tuple[dict[str, str], dict[str, FileProblem]]:
    """The texts of the changed files, and the problems of unreadable ones. Updates `stamps`."""
    contents: dict[str, str] = {}
    unreadable: dict[str, FileProblem] = {}
    for file, stamp in list(stamps.items()):
        if known.get(file) == stamp or file not in fitting:
            continue
        try:
            stamps[file], contents[file] = folder.read_text(file, max_bytes)
        except MissingFile:
            del stamps[file]
        except UnreadableFile as error:
            unreadable[file] = FileProblem(file, error.problem, error.line)
    return contents, unreadable


class LibraryLoader:
    """Creates libraries from scanned folders."""

    def __init__(self, reader: FileReader, renderer: TemplateRenderer) -> None:
        self._reader = reader
        self._renderer = renderer

    async def load(self, scan: FolderScan, old: LoadedLibrary | None, *, served: bool) -> LoadedLibrary:
        """Load the library of a scanned folder, reusing unchanged parts of `old`.

        `served`: the old version is in use, so its good files are kept if the new ones are invalid.
        """
        unreadable = dict(scan.unreadable)
        if served and old is not None and (old.stamps or old.files) and "" in unreadable:
            return old.with_problem(_with_still_served(unreadable[""]))
        if old is not None and scan.stamps == old.stamps and not (unreadable or old.unreadable):
            files: dict[str, FileState] | Raw = old.raw_files
        else:
            files = await self._load_files(scan, old, unreadable, served=served)
        return LoadedLibrary(
            scan.folder,
            scan.stamps,
            files,
            templates=await self._load_templates(scan, old, unreadable),
            skipped=scan.skipped,
            unreadable=unreadable,
            skill_files=scan.skill_files,
            inodes=scan.folders,
            complete=scan.complete,
        )

    async def _load_files(
        self, scan: FolderScan, old: LoadedLibrary | None, unreadable: dict[str, FileProblem], *, served: bool
    ) -> dict[str, FileState]:
        files: dict[str, FileState] = {}
        parsed = await self._parse_changed(scan, unreadable)
        for file, kind in scan.formats.items():
            if file not in scan.stamps:
                continue
            previous = old.files.get(file) if old is not None else None
            if file in parsed:
                files[file] = await self._with_last_good(kind, parsed[file], previous if served else None)
            elif file in unreadable:
                if served and previous is not None and previous.prompts:
                    files[file] = _mark_stale(previous, (unreadable.pop(file),))
            elif previous is not None:
                files[file] = previous
            elif old is not None and file in old.unreadable:
                unreadable[file] = old.unreadable[file]
        if served and old is not None:
            files |= _files_below(scan.unreadable, old, unreadable)
        return files

    async def _parse_changed(
        self, scan: FolderScan, unreadable: dict[str, FileProblem]
    ) -> dict[str, ParsedFile]:
        """Parse the changed files; files beyond the time limit are added to `unreadable`."""
        parsed: dict[str, ParsedFile] = {}
        waiting = list(scan.contents)
        spent = 0.0
        while waiting and spent <= _BASE_SECONDS + len(parsed) * _SECONDS_PER_FILE:
            batch, waiting = waiting[:_PARALLEL_FILES], waiting[_PARALLEL_FILES:]
            results = await gather(
                *(self._reader.read(scan.formats[file], file, scan.contents[file]) for file in batch)
            )
            for file, (parsed_file, seconds) in zip(batch, results, strict=True):
                parsed[file] = parsed_file
                spent += seconds
        for file in waiting:
            unreadable[file] = FileProblem(file, "skipped: the files of this library take too long to parse")
        return parsed

    async def _with_last_good(
        self, format: str, parsed_file: ParsedFile, previous: FileState | None
    ) -> FileState:
        """The new state of a file, with the previous prompts in place of invalid ones."""
        state = FileState(format, parsed_file.prompts, parsed_file.problems)
        if previous is None or not previous.prompts:
            return state
        if not parsed_file.prompts and any(problem.level == "error" for problem in parsed_file.problems):
            return _mark_stale(previous, parsed_file.problems)
        good = {prompt.key: prompt for prompt in previous.prompts}
        prompts: list[ParsedPrompt] = []
        stale = False
        problems = list(parsed_file.problems)
        for prompt in parsed_file.prompts:
            problem = await self._template_problem(prompt.file, prompt.text, prompt)
            if problem is not None and prompt.key in good:
                stale = True
                prompts.append(good[prompt.key])
                problems.append(_with_still_served(problem))
            else:
                prompts.append(prompt)
        return FileState(format, tuple(prompts), tuple(problems), stale=stale)

    async def _load_templates(
        self, scan: FolderScan, old: LoadedLibrary | None, unreadable: dict[str, FileProblem]
    ) -> dict[str, TemplateState]:
        if not scan.complete:
            return dict(old.templates) if old is not None else {}
        previous = old.templates if old is not None else {}
        templates: dict[str, TemplateState] = {}
        for file, stamp in scan.template_stamps.items():
            known = previous.get(file)
            problem = unreadable.get(file)
            if problem is None and (text := scan.templates.get(file)) is not None:
                problem = None if known is None else await self._template_problem(file, text, None)
                if problem is None:
                    templates[file] = TemplateState(stamp, text)
            elif problem is None:
                # Unchanged, or without its text because of the size limit.
                templates[file] = (
                    known if known is not None and known.stamp == stamp else TemplateState(stamp, None)
                )
            if problem is not None and known is not None and known.text is not None:
                unreadable.pop(file, None)
                templates[file] = TemplateState(stamp, known.text, _with_still_served(problem))
        return templates

    async def _template_problem(
        self, file: str, text: str | None, prompt: ParsedPrompt | None
    ) -> FileProblem | None:
        if text is None or (prompt is not None and not prompt.template):
            return None
        try:
            await self._renderer.variables(text, file=file)
        except RenderingFailed as error:
            offset = prompt.lines_before if prompt is not None else 0
            return FileProblem(file, error.problem, None if error.line is None else error.line + offset)
        return None


def _files_below(
    paths: Iterable[str], old: LoadedLibrary, unreadable: dict[str, FileProblem]
) -> dict[str, FileState]:
    """The last good versions of files that could not be listed. Marks their problems as still served."""
    kept: dict[str, FileState] = {}
    for path in paths:
        below = {
            file: state
            for file, state in old.files.items()
            if state.prompts and (file == path or file.startswith(f"{path}/"))
        }
        if below and path in unreadable:
            unreadable[path] = _with_still_served(unreadable[path])
            kept |= below
    return kept


def _mark_stale(state: FileState, problems: Iterable[FileProblem]) -> FileState:
    return FileState(state.format, state.prompts, tuple(map(_with_still_served, problems)), stale=True)


def _with_still_served(problem: FileProblem) -> FileProblem:
    return FileProblem(problem.file, problem.message + _STILL_SERVED, problem.line, problem.level)
