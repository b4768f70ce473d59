"""Export a workspace to files, and import files into it. Each format is imported when it is used."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final

from dittybag.protocol.lazy_asyncio import asyncio  # isort: skip  # first: it imports asyncio without TLS

from msgspec import Struct, UnsetType

from dittybag import files
from dittybag.assembly.store_factory import opened_store
from dittybag.assembly.workspace_session import open_renderer
from dittybag.config import Settings
from dittybag.domain.errors import Conflict, Problem, SourceFailed, SourceNotFound
from dittybag.domain.imports import FORMATS, TASK_FORMATS, ImportOptions, ImportResult
from dittybag.domain.skill_texts import skill_front_matter, skill_text
from dittybag.domain.skills import SKILL_FILE
from dittybag.exchange.export_data import export_workspace, find_project
from dittybag.exchange.import_sources import SOURCE_BYTES, TOO_LARGE, FileSource
from dittybag.exchange.json_file import JsonSource, JsonWriter
from dittybag.exchange.progress_counter import ProgressCallback

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import LibrarySession
    from dittybag.services.workspace import WorkspaceSession

#: Standard input or output.
STANDARD: Final = "-"

#: Formats whose prompts may have variables without declaring them.
_FORMATS_WITHOUT_ARGUMENTS: Final = ("csv", "library")

_CHUNK: Final = 1024 * 1024
#: Maximum number and size of the prompts that are read at once.
_PAGE: Final = 250
_PAGE_BYTES: Final = 16 * 1024 * 1024


# Export


def export(
    settings: Settings,
    target: str,
    *,
    folder: bool,
    project: str | None,
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
            if not folder:
                with _output(target, overwrite=overwrite) as file:
                    lines = JsonWriter(file.write, project=project)
                    return await export_workspace(store, lines, on_progress)
            from dittybag.exchange.export_folder import FolderWriter

            with closing(FolderWriter(target, project=project)) as tree:
                counts = await export_workspace(store, tree, on_progress)
                return {**counts, "files": tree.changed}

    return asyncio.run(run())


class SkillsExport(Struct, frozen=True):
    """What an export of skills did."""

    skills: int
    #: The number of files that were created, changed or deleted.
    files: int
    #: The paths of edited files, which stay as they are.
    kept: list[str]
    #: Why prompts or skills were left out.
    left_out: list[str]


async def export_skills(session: LibrarySession, folder: str) -> SkillsExport:
    """Write the prompts of a project, and the skills of the libraries, to a folder of Agent Skills.

    Raises `Conflict` if the folder has anything else, and `OSError`.
    """
    from dittybag.exchange.skills_folder import SkillsFolder

    names: dict[str, str] = {}
    left_out = []
    with closing(SkillsFolder(folder)) as tree:
        async for name, source, files in _skills(session):
            if (other := names.setdefault(name, source)) != source:
                left_out.append(f"{source} is left out: {other} has the name '{name}' too")
                continue
            for path, content in files.items():
                tree.write(f"{name}/{path}", content)
        tree.finish()
    return SkillsExport(len(names), tree.changed, tree.kept, left_out)


async def _skills(session: LibrarySession) -> AsyncIterator[tuple[str, str, Mapping[str, bytes]]]:
    """Yield the name of each skill, where it is from, and its files."""
    prompts, more, after = session.session.workspace.prompts, True, 0
    while more:
        page, more = await prompts.contents(session.session.caller, after, _PAGE, _PAGE_BYTES)
        for prompt in page:
            after = prompt.number
            name = skill_front_matter(prompt)["name"]
            yield name, f"the prompt {prompt.name}", {SKILL_FILE: skill_text(prompt)}
    libraries, more, last = session.libraries, True, ""
    while more:
        skills, more = await libraries.skills(last, _PAGE)
        for skill in skills:
            last = skill.path
            files = {}
            for file in skill.files:
                if (found := await libraries.read_skill_file(f"{last}/{file.path}")) is not None:
                    files[file.path] = found[1]
            yield skill.name, f"the skill {last}", files


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
) -> ImportResult:
    """Import a file or folder, completely or not at all.

    `verbatim`: keep variables in prompts without arguments as text.
    """
    from tempfile import TemporaryDirectory

    from dittybag.exchange.merge_import import import_source
    from dittybag.exchange.source_detection import detect_format

    source_format = format or detect_format(path)
    if source_format in TASK_FORMATS:
        raise SourceFailed(path, f"it is {TASK_FORMATS[source_format]}; run dittybag import")

    async def run() -> ImportResult:
        with closing(await _open_source(source_format, path, temporary, settings.home)) as source:
            if source_format in _FORMATS_WITHOUT_ARGUMENTS and not verbatim:
                await _find_arguments(source)
            async with opened_store(settings.database, create=not options.dry_run) as store:
                result = await import_source(store, source, options, on_progress)
            result.format = source_format
            return result

    with TemporaryDirectory(prefix="dittybag-import-") as temporary:
        return asyncio.run(run())


async def import_tasks(
    session: WorkspaceSession, path: str, format: str, project: str | UnsetType, *, dry_run: bool
) -> ImportResult:
    """Import the tasks of another program, completely or not at all. Those imported before are skipped."""
    from dittybag.exchange.task_sources import read_tasks

    found = read_tasks(path, format)
    imported = await session.workspace.tasks.import_drafts(
        session.caller, found.drafts, project, dry_run=dry_run
    )
    result = ImportResult(notes=found.notes, format=format)
    result.created["task"], result.skipped["task"] = len(imported.created), imported.known
    return result


@contextmanager
def source_file(path: str) -> Iterator[str]:
    """The path of a source; standard input is saved to a file. Raises `SourceFailed` if it is too large."""
    from tempfile import TemporaryDirectory

    if path != STANDARD:
        yield path
        return
    with TemporaryDirectory(prefix="dittybag-import-") as temporary:
        yield _save_stdin(temporary)


def _save_stdin(temporary: str) -> str:
    path = os.path.join(temporary, "stdin")  # noqa: PTH118
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
        from dittybag.exchange.source_detection import open_source

        return open_source(format, path)
    if not os.path.exists(path):  # noqa: ASYNC240, PTH110  # no other task is running
        raise SourceNotFound(path, "no such file or folder")
    if format == "library":
        from dittybag.assembly.library_import import open_library

        return await open_library(path, temporary, home)
    return await _open_database(path, temporary)


async def _open_database(path: str, temporary: str) -> FileSource:
    """The content of a Dittybag database. It is copied first, because opening an old one migrates it."""
    import apsw

    from dittybag.exchange import sqlite_reader

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
            await export_workspace(store, JsonWriter(file.write, project=None))
    return JsonSource(listing)


async def _find_arguments(source: FileSource) -> None:
    """Make the variables of prompts without arguments their arguments."""
    from dittybag.services.template_arguments import describe_found, find_arguments

    with open_renderer() as renderer:
        for location, found in source.entities("prompt"):
            if isinstance(found, Problem) or found.entity.arguments:
                continue
            if arguments := await find_arguments(renderer, found.entity.content):
                source.found_arguments[location, found.entity.name] = arguments
                source.add_note(f"{location}: {describe_found(arguments)}")
