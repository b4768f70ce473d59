"""Export a workspace to files, and import files into it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

from dittybag.protocol.lazy_tls import asyncio  # isort: skip  # first: it imports asyncio without TLS

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dittybag.assembly.store_factory import open_store
from dittybag.assembly.workspace_session import open_renderer
from dittybag.config import Settings
from dittybag.domain.display import format_size
from dittybag.domain.errors import Conflict, RenderingFailed, SourceFailed, SourceNotFound
from dittybag.domain.libraries import SOURCE_BYTES as PROMPT_FILE_BYTES
from dittybag.domain.names import NAME_LENGTH, numbered_names
from dittybag.domain.ports import Store
from dittybag.domain.prompts import Argument, Prompt
from dittybag.exchange import source_detection, sqlite_reader
from dittybag.exchange.atomic_files import new_file
from dittybag.exchange.folder_writer import FolderWriter
from dittybag.exchange.import_sources import SOURCE_BYTES, FileSource, SourceEntry
from dittybag.exchange.json_file import JsonSource, JsonWriter
from dittybag.exchange.sanitise import sanitise_description, sanitise_name, sanitise_title
from dittybag.exchange.source_detection import FORMATS
from dittybag.services.exchange import (
    ExchangeService,
    ImportResult,
    OnConflict,
    ProgressCallback,
    RenamedEntity,
)
from dittybag.services.exchange.import_rules import prompt_problems
from dittybag.services.template_arguments import describe_found, find_arguments

if TYPE_CHECKING:
    from dittybag.library.formats.parsed_prompt import ParsedPrompt
    from dittybag.library.loaded_library import LoadedLibrary
    from dittybag.library.render.template_renderer import TemplateRenderer

__all__ = [
    "FORMATS",
    "STANDARD",
    "Conflict",
    "ImportReport",
    "ImportResult",
    "OnConflict",
    "export",
    "import_data",
]

T = TypeVar("T")

#: Standard input or output.
STANDARD: Final = "-"

#: Formats whose prompts may have variables without declaring them.
_FORMATS_WITHOUT_ARGUMENTS: Final = ("csv", "library")

_CHUNK: Final = 1024 * 1024

#: A tag that includes another file of the library.
_INCLUDE_TAG: Final = re.compile(r"\{%[-+]?\s*(?:include|import|from|extends)\b")


class ImportReport(Struct, frozen=True):
    """The result of an import, with notes for the user."""

    format: str
    result: ImportResult
    #: Whether the source has a change history.
    has_history: bool
    notes: list[str]


async def _with_store(database: str, work: Callable[[Store], Awaitable[T]], *, create: bool = True) -> T:
    store = await open_store(database, create=create)
    try:
        return await work(store)
    finally:
        await store.close()


# Export


def export(
    settings: Settings,
    target: str,
    *,
    folder: bool,
    project: str | None,
    history: bool,
    overwrite: bool = False,
    on_progress: ProgressCallback | None = None,
) -> dict[str, int]:
    """Write a workspace or a project to a file, a folder or standard output. Returns the counts by kind.

    Raises `Conflict` if the target exists, and `OSError`.
    """

    async def to_folder(store: Store) -> dict[str, int]:
        if project is not None:
            await ExchangeService(store).require_project(project)
        files = FolderWriter(target, project=project, history=history)
        try:
            counts = await ExchangeService(store).export(
                files, project=project, history=history, on_progress=on_progress
            )
            files.finish()
        finally:
            files.close()
        return {**counts, "files": files.changed}

    async def to_file(store: Store) -> dict[str, int]:
        with _output(target, overwrite=overwrite) as file:
            return await _write_json(store, file, project, history=history, on_progress=on_progress)

    return asyncio.run(_with_store(settings.database, to_folder if folder else to_file, create=False))


async def _write_json(
    store: Store,
    file: BinaryIO,
    project: str | None,
    *,
    history: bool,
    on_progress: ProgressCallback | None = None,
) -> dict[str, int]:
    if project is not None:
        await ExchangeService(store).require_project(project)
    lines = JsonWriter(file.write, project=project, history=history)
    counts = await ExchangeService(store).export(
        lines, project=project, history=history, on_progress=on_progress
    )
    lines.finish()
    return counts


@contextmanager
def _output(target: str, *, overwrite: bool) -> Iterator[BinaryIO]:
    if target == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with new_file(target, overwrite=overwrite) as file:
        yield file


# Import


def import_data(
    settings: Settings,
    path: str,
    *,
    actor: str,
    format: str | None = None,
    project: str | None = None,
    on_conflict: OnConflict = "fail",
    history: bool = True,
    verbatim: bool = False,
    dry_run: bool = False,
    on_progress: ProgressCallback | None = None,
) -> ImportReport:
    """Import a file or folder, completely or not at all.

    `project`: the project to import everything into, instead of the projects of the source. `verbatim`: keep
    variables in prompts without arguments as text.
    """

    async def work(store: Store) -> ImportReport:
        result = await ExchangeService(store).import_source(
            source,
            actor=actor,
            project=project,
            default=settings.project,
            on_conflict=on_conflict,
            history=history,
            dry_run=dry_run,
            on_progress=on_progress,
        )
        result.renamed[:0] = [RenamedEntity(*names) for names in source.renamed]
        return ImportReport(source_format, result, source.has_history, list(source.notes))

    with tempfile.TemporaryDirectory(prefix="dittybag-import-") as temporary:
        source_path = _save_stdin(temporary) if path == STANDARD else path
        source_format = format or source_detection.detect_format(source_path)
        source = _open_source(source_format, source_path, temporary, settings.home)
        if source_format in _FORMATS_WITHOUT_ARGUMENTS and not verbatim:
            source = asyncio.run(_find_arguments(source))
        try:
            return asyncio.run(_with_store(settings.database, work, create=not dry_run))
        finally:
            source.close()


def _save_stdin(temporary: str) -> str:
    """Save standard input to a file. Returns its path. Raises `SourceFailed` if it is too large."""
    path = os.path.join(temporary, "input")  # noqa: PTH118
    size = 0
    with open(path, "wb") as file:  # noqa: PTH123
        while chunk := sys.stdin.buffer.read(_CHUNK):
            size += len(chunk)
            if size > SOURCE_BYTES:
                raise SourceFailed("standard input", f"it is larger than {SOURCE_BYTES // 1024**3} GiB")
            file.write(chunk)
    return path


def _open_source(format: str, path: str, temporary: str, home: str) -> FileSource:
    if format not in ("database", "library"):
        return source_detection.open_source(format, path)
    if not os.path.exists(path):  # noqa: PTH110
        raise SourceNotFound(path, "no such file or folder")
    if format == "database":
        return _database_source(path, temporary)
    folder = path if os.path.isdir(path) else _single_file_folder(path, temporary)  # noqa: PTH112
    return asyncio.run(_library_source(folder, home))


def _database_source(path: str, temporary: str) -> FileSource:
    """The content of a Dittybag database. It is copied first, because opening an old one migrates it."""
    import apsw

    copy, listing = os.path.join(temporary, "copy.db"), os.path.join(temporary, "copy.json")  # noqa: PTH118
    with sqlite_reader.open_read_only(path) as connection:
        if sqlite_reader.detect_database(path) != "database":
            raise SourceFailed(path, f"it is not {FORMATS['database']}")
        target = apsw.Connection(copy)
        with target.backup("main", connection, "main") as backup:
            backup.step()
        target.close()

    async def work(store: Store) -> None:
        with new_file(listing, overwrite=False) as file:
            await _write_json(store, file, None, history=True)

    asyncio.run(_with_store(copy, work))
    return JsonSource(listing)


# Arguments


class _FoundArguments(FileSource):
    """A source of prompts whose variables were found to be arguments."""

    def __init__(self, source: FileSource, found: dict[tuple[str, str], tuple[Argument, ...]]) -> None:
        super().__init__()
        self._source = source
        #: By the location and name of the prompt.
        self._found = found

    def prompts(self) -> Iterator[SourceEntry[Prompt]]:
        for location, item in self._source.prompts():
            if isinstance(item, Prompt) and (found := self._found.get((location, item.name))):
                yield location, replace(item, arguments=found)
            else:
                yield location, item

    @property
    def renamed(self) -> Sequence[tuple[str, str, str]]:
        return self._source.renamed

    @property
    def notes(self) -> Sequence[str]:
        found = (f"{location}: {describe_found(names)}" for (location, _), names in self._found.items())
        return [*self._source.notes, *found]

    def close(self) -> None:
        self._source.close()


async def _find_arguments(source: FileSource) -> FileSource:
    """Make the variables of prompts without arguments their arguments."""
    with open_renderer() as renderer:
        return _FoundArguments(
            source,
            {
                (location, item.name): found
                for location, item in source.prompts()
                if isinstance(item, Prompt)
                and not item.arguments
                and (found := await find_arguments(renderer, item.content))
            },
        )


# Libraries


class _LibraryPrompts(FileSource):
    """The prompts of a library, converted to stored prompts."""

    def __init__(self, found: list[SourceEntry[Prompt]], notes: list[str]) -> None:
        super().__init__()
        self._found = found
        for note in notes:
            self.add_note(note)

    def prompts(self) -> list[SourceEntry[Prompt]]:
        return self._found


def _single_file_folder(file: str, temporary: str) -> str:
    """Create a folder that contains only a copy of this file. Returns its path."""
    from shutil import copyfile

    if os.path.getsize(file) > PROMPT_FILE_BYTES:  # noqa: PTH202
        raise SourceFailed(file, f"it is larger than {format_size(PROMPT_FILE_BYTES)}")
    folder = os.path.join(temporary, "prompts")  # noqa: PTH118
    os.mkdir(folder)  # noqa: PTH102
    copyfile(file, os.path.join(folder, os.path.basename(file)))  # noqa: PTH118, PTH119
    return folder


async def _library_source(folder: str, home: str) -> FileSource:
    """The prompts in a folder of prompt files."""
    from dittybag.library.catalogue import Catalogue
    from dittybag.library.indexer import LibraryIndexer
    from dittybag.library.library_folders import Directories
    from dittybag.library.render.template_renderer import TemplateRenderer

    renderer, catalogue = TemplateRenderer(), Catalogue()
    indexer = LibraryIndexer(Directories(home, single=folder), catalogue, renderer, quiet=True)
    try:
        await indexer.refresh(None)
        (library,) = catalogue.libraries.values()
        report = library.report()
        notes = [
            f"{problem.file}: {problem.message}" for problem in report.problems if problem.level == "error"
        ]
        found = [
            await _to_stored_prompt(library, parsed, renderer, notes) for parsed in library.prompts.values()
        ]
    finally:
        indexer.close()
        renderer.close()
    prompts = _importable([item for item in found if item is not None], notes)
    notes += [f"{file}: skipped: {reason}" for file, reason in report.skipped.items() if not _is_hidden(file)]
    if not prompts:
        raise SourceFailed(folder, "; ".join(["no valid prompts found", *notes[:3]]))
    return _LibraryPrompts(prompts, notes)


def _is_hidden(file: str) -> bool:
    # Commands and skills are in a hidden folder.
    return any(part.startswith(".") for part in file.removeprefix(".claude/").split("/"))


def _importable(found: list[tuple[str, Prompt]], notes: list[str]) -> list[SourceEntry[Prompt]]:
    """Return the valid prompts with distinct names and titles, and add notes about the others."""
    prompts: dict[str, SourceEntry[Prompt]] = {}
    titles: set[str] = set()
    for file, prompt in found:
        if messages := [problem.message for problem in prompt_problems(prompt)]:
            notes.append(f"{file}: skipped: {'; '.join(messages)}")
            continue
        name = next(name for name in numbered_names(prompt.name, "-{}", NAME_LENGTH) if name not in prompts)
        if name != prompt.name:
            notes.append(f"{file}: named '{name}', because another file is named '{prompt.name}'")
        # Without a title, a free one is derived from the name.
        title = prompt.title if prompt.title not in titles else ""
        titles.add(title)
        prompts[name] = (file, replace(prompt, name=name, title=title))
    return list(prompts.values())


async def _to_stored_prompt(
    library: LoadedLibrary, parsed: ParsedPrompt, renderer: TemplateRenderer, notes: list[str]
) -> tuple[str, Prompt] | None:
    """Convert a library prompt to a stored prompt. If that fails, add a note and return `None`."""
    try:
        text = await _template_text(library, parsed, renderer)
    except (RenderingFailed, OSError, ValueError) as error:
        notes.append(f"{parsed.file}: skipped: {error}")
        return None
    prompt = Prompt(
        number=0,
        id="",
        project=0,
        name=sanitise_name(parsed.key, "prompt"),
        title=sanitise_title(parsed.title or ""),
        description=sanitise_description(parsed.description),
        content=text,
        # A text without a template has no arguments.
        arguments=parsed.arguments if parsed.template else (),
        created_at=0,
        updated_at=0,
    )
    return parsed.file, prompt


async def _template_text(library: LoadedLibrary, parsed: ParsedPrompt, renderer: TemplateRenderer) -> str:
    """The template of a library prompt, self-contained. Raises `RenderingFailed` and `ValueError`."""
    from dittybag.library.safe_folder import MissingFile, UnreadableFile

    folder = library.folder.root

    async def read(file: str) -> str | None:
        try:
            return folder.read_text(file, PROMPT_FILE_BYTES)[1]
        except MissingFile:
            return None
        except UnreadableFile as error:
            raise RenderingFailed(f"{file}: {error.problem}") from error

    text = parsed.text if parsed.text is not None else await read(parsed.file)
    if text is None:
        raise ValueError("the file is missing")
    if not parsed.template:
        return text
    if not parsed.arguments and await find_arguments(renderer, text):
        return text
    if not parsed.arguments:
        return await renderer.render(text, parsed.defaults, file=parsed.file, partials=read)
    if _INCLUDE_TAG.search(text):
        raise ValueError("it includes other files; use dittybag library add instead")
    defaults = (
        f"{{% set {name} = {name} | default({msgspec.json.encode(value).decode()}) %}}"
        for name, value in parsed.defaults.items()
    )
    return "".join(defaults) + text
