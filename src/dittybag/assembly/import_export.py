"""Export a workspace to files, and import files into it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import BinaryIO, Final

from dittybag.protocol.lazy_tls import asyncio  # isort: skip  # first: it imports asyncio without TLS

from msgspec import Struct

from dittybag import files
from dittybag.assembly.library_import import open_library
from dittybag.assembly.store_factory import opened_store
from dittybag.assembly.workspace_session import open_renderer
from dittybag.config import Settings
from dittybag.domain.errors import Conflict, SourceFailed, SourceNotFound
from dittybag.domain.import_options import FORMATS, ImportOptions
from dittybag.domain.ports import Store
from dittybag.domain.prompts import Prompt
from dittybag.exchange import source_detection, sqlite_reader
from dittybag.exchange.export_data import export_workspace, find_project
from dittybag.exchange.folder_writer import FolderWriter
from dittybag.exchange.import_result import ImportResult, ProgressCallback, RenamedEntity
from dittybag.exchange.import_run import import_source
from dittybag.exchange.import_sources import SOURCE_BYTES, TOO_LARGE, FileSource
from dittybag.exchange.json_file import JsonSource, JsonWriter
from dittybag.services.template_arguments import describe_found, find_arguments

#: Standard input or output.
STANDARD: Final = "-"

#: Formats whose prompts may have variables without declaring them.
_FORMATS_WITHOUT_ARGUMENTS: Final = ("csv", "library")

_CHUNK: Final = 1024 * 1024


class ImportReport(Struct, frozen=True):
    """The result of an import, with notes for the user."""

    format: str
    result: ImportResult
    #: Whether the source has a change history.
    has_history: bool
    notes: list[str]


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

    async def run() -> dict[str, int]:
        async with opened_store(settings.database, create=False) as store:
            if project is not None:
                # Before anything is written.
                await store.read(lambda transaction: find_project(transaction, project))
            if folder:
                return await _write_folder(store, target, project, history=history, on_progress=on_progress)
            with _output(target, overwrite=overwrite) as file:
                return await _write_json(store, file, project, history=history, on_progress=on_progress)

    return asyncio.run(run())


async def _write_folder(
    store: Store, folder: str, project: str | None, *, history: bool, on_progress: ProgressCallback | None
) -> dict[str, int]:
    with closing(FolderWriter(folder, project=project, history=history)) as sink:
        counts = await export_workspace(
            store, sink, project=project, history=history, on_progress=on_progress
        )
        sink.finish()
        return {**counts, "files": sink.changed}


async def _write_json(
    store: Store,
    file: BinaryIO,
    project: str | None = None,
    *,
    history: bool = True,
    on_progress: ProgressCallback | None = None,
) -> dict[str, int]:
    sink = JsonWriter(file.write, project=project, history=history)
    counts = await export_workspace(store, sink, project=project, history=history, on_progress=on_progress)
    sink.finish()
    return counts


@contextmanager
def _output(target: str, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Open a file or standard output. Raises `Conflict` if the file exists, and `OSError`."""
    if target == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with files.atomic_write(target, overwrite=overwrite) as file:
            yield file
    except FileExistsError as error:
        raise Conflict(f"{target} already exists") from error


# Import


def import_data(
    settings: Settings,
    path: str,
    options: ImportOptions,
    *,
    format: str | None = None,
    verbatim: bool = False,
    on_progress: ProgressCallback | None = None,
) -> ImportReport:
    """Import a file or folder, completely or not at all.

    `verbatim`: keep variables in prompts without arguments as text.
    """

    async def run() -> ImportReport:
        with closing(await _open_source(source_format, source_path, temporary, settings.home)) as source:
            if source_format in _FORMATS_WITHOUT_ARGUMENTS and not verbatim:
                await _find_arguments(source)
            async with opened_store(settings.database, create=not options.dry_run) as store:
                result = await import_source(store, source, options, on_progress)
            result.renamed[:0] = [RenamedEntity(*names) for names in source.renamed]
            return ImportReport(source_format, result, source.has_history, list(source.notes))

    with tempfile.TemporaryDirectory(prefix="dittybag-import-") as temporary:
        source_path = _save_stdin(temporary) if path == STANDARD else path
        source_format = format or source_detection.detect_format(source_path)
        return asyncio.run(run())


def _save_stdin(temporary: str) -> str:
    """Save standard input to a file. Returns its path. Raises `SourceFailed` if it is too large."""
    path = os.path.join(temporary, "input")  # noqa: PTH118
    size = 0
    with open(path, "wb") as file:  # noqa: PTH123
        while chunk := sys.stdin.buffer.read(_CHUNK):
            size += len(chunk)
            if size > SOURCE_BYTES:
                raise SourceFailed("standard input", TOO_LARGE)
            file.write(chunk)
    return path


async def _open_source(format: str, path: str, temporary: str, home: str) -> FileSource:
    if format not in ("database", "library"):
        return source_detection.open_source(format, path)
    if not os.path.exists(path):  # noqa: ASYNC240, PTH110  # no other task is running
        raise SourceNotFound(path, "no such file or folder")
    if format == "library":
        return await open_library(path, temporary, home)
    return await _open_database(path, temporary)


async def _open_database(path: str, temporary: str) -> FileSource:
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
    async with opened_store(copy) as store:
        with files.atomic_write(listing) as file:
            await _write_json(store, file)
    return JsonSource(listing)


async def _find_arguments(source: FileSource) -> None:
    """Make the variables of prompts without arguments their arguments."""
    with open_renderer() as renderer:
        for location, found in source.entities("prompt"):
            prompt = getattr(found, "entity", None)
            if isinstance(prompt, Prompt) and not prompt.arguments:
                arguments = await find_arguments(renderer, prompt.content)
                if arguments:
                    source.found_arguments[location, prompt.name] = arguments
                    source.add_note(f"{location}: {describe_found(arguments)}")
