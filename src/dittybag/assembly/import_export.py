"""Exports and imports: a workspace, and the files that it goes to or that something comes from."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

from dittybag.protocol.lazy_tls import asyncio  # isort: skip  # first: it imports asyncio without TLS

import msgspec
from msgspec import Struct

from dittybag.assembly.store_factory import open_store
from dittybag.config import Settings
from dittybag.domain.errors import Conflict, RenderingFailed, SourceFailed, SourceNotFound
from dittybag.domain.libraries import FILE_BYTES
from dittybag.domain.libraries import SOURCE_BYTES as TEMPLATE_BYTES
from dittybag.domain.ports import Store
from dittybag.domain.prompts import Prompt
from dittybag.exchange import source_detection, sqlite_reader
from dittybag.exchange.atomic_files import new_file
from dittybag.exchange.folder_writer import FolderWriter
from dittybag.exchange.import_sources import SOURCE_BYTES, Found, Source
from dittybag.exchange.json_file import JsonSource, JsonWriter
from dittybag.exchange.sanitise import fitted_description, fitted_name, fitted_title
from dittybag.exchange.source_detection import FORMATS
from dittybag.services.exchange import Exchange, Intake, OnConflict, Renamed, Tell

if TYPE_CHECKING:
    from dittybag.library.formats.parsed_prompt import ParsedPrompt
    from dittybag.library.loaded_library import LoadedLibrary
    from dittybag.library.render.template_renderer import TemplateRenderer

__all__ = ["FORMATS", "STANDARD", "Conflict", "Intake", "OnConflict", "Taken", "export", "take"]

T = TypeVar("T")

#: Standard input or output.
STANDARD: Final = "-"

_CHUNK: Final = 1024 * 1024

#: A template that takes something from other files of its library.
_ELSEWHERE: Final = re.compile(r"\{%[-+]?\s*(?:include|import|from|extends)\b")


class Taken(Struct, frozen=True):
    """What came of an import, and what is to be said about it."""

    format: str
    intake: Intake
    #: Whether there was a history to take in.
    has_history: bool
    notes: list[str]


async def _in_store(database: str, work: Callable[[Store], Awaitable[T]]) -> T:
    store = await open_store(database)
    try:
        return await work(store)
    finally:
        await store.close()


# Out


def export(
    settings: Settings,
    target: str,
    *,
    folder: bool,
    project: str | None,
    history: bool,
    overwrite: bool = False,
    tell: Tell | None = None,
) -> dict[str, int]:
    """Write a workspace or a project to a file, a folder or standard output; how much of each kind it was.

    Raises `Conflict` if something else is there, and `OSError`.
    """

    async def to_folder(store: Store) -> dict[str, int]:
        if project is not None:
            await Exchange(store).require(project)
        files = FolderWriter(target, project=project, history=history)
        try:
            counts = await Exchange(store).export(files, project=project, history=history, tell=tell)
            files.end()
        finally:
            files.close()
        return {**counts, "files": files.changed}

    async def to_file(store: Store) -> dict[str, int]:
        with _output(target, overwrite=overwrite) as file:
            return await _written(store, file, project, history=history, tell=tell)

    return asyncio.run(_in_store(settings.database, to_folder if folder else to_file))


async def _written(
    store: Store, file: BinaryIO, project: str | None, *, history: bool, tell: Tell | None = None
) -> dict[str, int]:
    if project is not None:
        await Exchange(store).require(project)
    lines = JsonWriter(file.write, project=project, history=history)
    counts = await Exchange(store).export(lines, project=project, history=history, tell=tell)
    lines.end()
    return counts


@contextmanager
def _output(target: str, *, overwrite: bool) -> Iterator[BinaryIO]:
    if target == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with new_file(target, overwrite=overwrite) as file:
        yield file


# In


def take(
    settings: Settings,
    path: str,
    *,
    actor: str,
    format: str | None = None,
    project: str | None = None,
    on_conflict: OnConflict = "fail",
    history: bool = True,
    dry_run: bool = False,
    tell: Tell | None = None,
) -> Taken:
    """Take in what is in a file or a folder, or nothing of it.

    `project`: where all of it goes, whatever the source says.
    """

    async def work(store: Store) -> Taken:
        intake = await Exchange(store).take(
            source,
            actor=actor,
            project=project,
            default=settings.project,
            on_conflict=on_conflict,
            history=history,
            dry_run=dry_run,
            tell=tell,
        )
        intake.renamed[:0] = [Renamed(*names) for names in source.fitted]
        return Taken(chosen, intake, source.has_history, list(source.notes))

    with tempfile.TemporaryDirectory(prefix="dittybag-import-") as room:
        place = _kept_input(room) if path == STANDARD else path
        chosen = format or source_detection.recognised(place)
        source = _source(chosen, place, room, settings.home)
        try:
            return asyncio.run(_in_store(settings.database, work))
        finally:
            source.close()


def _kept_input(room: str) -> str:
    """A file with what comes on standard input. Raises `SourceFailed` if there is no end of it."""
    path = os.path.join(room, "input")  # noqa: PTH118
    size = 0
    with open(path, "wb") as file:  # noqa: PTH123
        while chunk := sys.stdin.buffer.read(_CHUNK):
            size += len(chunk)
            if size > SOURCE_BYTES:
                raise SourceFailed("standard input", f"it is larger than {SOURCE_BYTES // 1024**3} GiB")
            file.write(chunk)
    return path


def _source(format: str, path: str, room: str, home: str) -> Source:
    if format not in ("database", "library"):
        return source_detection.source(format, path)
    if not os.path.exists(path):  # noqa: PTH110
        raise SourceNotFound(path, "there is no such file or folder")
    if format == "database":
        return _database(path, room)
    return asyncio.run(_library(path if os.path.isdir(path) else _alone(path, room), home))  # noqa: PTH112


def _database(path: str, room: str) -> Source:
    """What is in a database of Dittybag's. It is copied first: reading an old one makes it a new one."""
    import apsw

    copy, listing = os.path.join(room, "copy.db"), os.path.join(room, "copy.json")  # noqa: PTH118
    with sqlite_reader.opened(path) as connection:
        if sqlite_reader.recognised(path) != "database":
            raise SourceFailed(path, f"it is not {FORMATS['database']}")
        target = apsw.Connection(copy)
        with target.backup("main", connection, "main") as backup:
            backup.step()
        target.close()

    async def work(store: Store) -> None:
        with new_file(listing, overwrite=False) as file:
            await _written(store, file, None, history=True)

    asyncio.run(_in_store(copy, work))
    return JsonSource(listing)


# Libraries


class _LibraryPrompts(Source):
    """The prompts of a library, as prompts that are stored."""

    def __init__(self, found: list[Found[Prompt]], notes: list[str]) -> None:
        super().__init__()
        self._found = found
        for note in notes:
            self.note(note)

    def prompts(self) -> list[Found[Prompt]]:
        return self._found


def _alone(file: str, room: str) -> str:
    """A folder in which nothing is but a copy of this file."""
    from shutil import copyfile

    if os.path.getsize(file) > FILE_BYTES:  # noqa: PTH202
        raise SourceFailed(file, f"it has more than {FILE_BYTES // 1024} KiB")
    folder = os.path.join(room, "prompts")  # noqa: PTH118
    os.mkdir(folder)  # noqa: PTH102
    copyfile(file, os.path.join(folder, os.path.basename(file)))  # noqa: PTH118, PTH119
    return folder


async def _library(folder: str, home: str) -> Source:
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
        found = [await _stored(library, draft, renderer, notes) for draft in library.prompts.values()]
    finally:
        indexer.close()
        renderer.close()
    if not library.prompts:
        raise SourceFailed(folder, "; ".join(["there are no prompts in it that are understood", *notes[:3]]))
    return _LibraryPrompts([(item[0], item[1]) for item in found if item is not None], notes)


async def _stored(
    library: LoadedLibrary, draft: ParsedPrompt, renderer: TemplateRenderer, notes: list[str]
) -> tuple[str, Prompt] | None:
    """A prompt that says the same as a draft; nothing, with a note, if there can be none."""
    try:
        text = await _text(library, draft, renderer)
    except (RenderingFailed, OSError, ValueError) as error:
        notes.append(f"{draft.file}: left out: {error}")
        return None
    prompt = Prompt(
        number=0,
        id="",
        project=0,
        name=fitted_name(draft.key, "prompt"),
        title=fitted_title(draft.title or ""),
        description=fitted_description(draft.description),
        content=text,
        # What is not filled in has nothing to be filled in with.
        arguments=draft.arguments if draft.template else (),
        created_at=0,
        updated_at=0,
    )
    return draft.file, prompt


async def _text(library: LoadedLibrary, draft: ParsedPrompt, renderer: TemplateRenderer) -> str:
    """Raises `RenderingFailed` and `ValueError`."""
    from dittybag.library.safe_folder import MissingFile, UnreadableFile

    folder = library.folder.root

    async def read(file: str) -> str | None:
        try:
            return folder.read_text(file, TEMPLATE_BYTES)[1]
        except MissingFile:
            return None
        except UnreadableFile as error:
            raise RenderingFailed(f"{file}: {error.problem}") from error

    text = draft.text if draft.text is not None else await read(draft.file)
    if text is None:
        raise ValueError("its text is missing")
    if not draft.template:
        return text
    if not draft.arguments:
        return await renderer.render(text, draft.defaults, file=draft.file, partials=read)
    if _ELSEWHERE.search(text):
        raise ValueError("it includes other files, which only a library can; dittybag library add takes it")
    defaults = (
        f"{{% set {name} = {name} | default({msgspec.json.encode(value).decode()}) %}}"
        for name, value in draft.defaults.items()
    )
    return "".join(defaults) + text
