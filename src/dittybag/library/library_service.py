"""The library service: serves the prompts of all libraries and reloads them when files change.

It implements `dittybag.domain.ports.Libraries`. The modules that read and watch files are only imported if
there are libraries.
"""

from __future__ import annotations

import logging
import os
from asyncio import Event, Task, get_running_loop
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from dittybag.domain.errors import ContentFileMissing, LibraryPromptNotFound, RenderingFailed
from dittybag.domain.libraries import SOURCE_BYTES, FileProblem, LibraryPrompt, LibraryReport
from dittybag.library import install_records
from dittybag.library.disk_thread import DiskThread
from dittybag.library.library_folders import Directories, display_path
from dittybag.library.render.template_renderer import TemplateRenderer
from dittybag.library.safe_folder import MissingFile, SafeFolder, UnreadableFile

if TYPE_CHECKING:
    from dittybag.library.catalogue import Catalogue
    from dittybag.library.formats.parsed_prompt import ParsedPrompt
    from dittybag.library.indexer import LibraryIndexer
    from dittybag.library.loaded_library import LoadedLibrary
    from dittybag.library.refresh import LibraryRefresher

#: How often to check for the first library.
_POLL_SECONDS: Final = 0.5

#: Maximum number of different rendering errors that are logged.
_MAX_LOGGED: Final = 100

_log = logging.getLogger("dittybag.library")


class LibraryService:
    """All libraries. Requests wait until the libraries are loaded."""

    def __init__(self, directories: Directories, renderer: TemplateRenderer) -> None:
        self._directories = directories
        self._renderer = renderer
        self._disk = DiskThread()
        #: None as long as there are no libraries.
        self._catalogue: Catalogue | None = None
        self._indexer: LibraryIndexer | None = None
        self._refresher: LibraryRefresher | None = None
        self._task: Task[None] | None = None
        self._version = 0
        self._ready = Event()
        #: Set after each batch of libraries is loaded, and then replaced.
        self._progress = Event()
        self._listeners: list[Callable[[], Any]] = []
        self._logged: set[tuple[str, str]] = set()
        self._closed = False

    def start(self) -> None:
        if self._closed:
            return
        if self._directories.exist():
            self._task = get_running_loop().create_task(self._run())
        else:
            self._ready.set()
            get_running_loop().call_later(_POLL_SECONDS, self.start)

    async def load(self) -> None:
        """Load all libraries once, without watching for changes."""
        await self._create_indexer(quiet=True).refresh(None)
        self._mark_ready()

    async def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        for part in (self._refresher, self._indexer, self._disk):
            if part is not None:
                part.close()

    def _create_indexer(self, *, quiet: bool) -> LibraryIndexer:
        from dittybag.library.catalogue import Catalogue
        from dittybag.library.indexer import LibraryIndexer

        self._catalogue = Catalogue()
        self._indexer = LibraryIndexer(self._directories, self._catalogue, self._renderer, quiet=quiet)
        return self._indexer

    async def _run(self) -> None:
        late = self._ready.is_set()
        indexer = self._create_indexer(quiet=False)
        try:
            await indexer.load_first(self._signal_progress)
        except Exception:  # noqa: BLE001  # waiting requests must continue; the refresher below scans again
            _log.exception("cannot load the libraries")
            assert self._catalogue is not None
            self._catalogue.set_libraries(())
        self._mark_ready()
        from dittybag.library.refresh import LibraryRefresher

        self._refresher = LibraryRefresher(indexer, self._bump_version, self._notify)
        if late:
            # Clients may have listed prompts while there were no libraries.
            self._refresher.notify_soon()
        # Some clients only start a server to list its prompts, and stop it soon after.
        await indexer.save_cache()
        await self._refresher.run()

    def _mark_ready(self) -> None:
        self._bump_version()
        self._ready.set()
        self._signal_progress()

    def _signal_progress(self) -> None:
        self._progress.set()
        self._progress = Event()

    def _bump_version(self) -> None:
        self._version += 1

    def _notify(self) -> None:
        if not self._closed:
            for listener in self._listeners:
                listener()

    def stamp(self) -> Hashable:
        return self._version

    def subscribe(self, listener: Callable[[], Any]) -> None:
        self._listeners.append(listener)

    async def page(self, after: str, limit: int) -> list[LibraryPrompt]:
        while self._catalogue is not None or not self._ready.is_set():
            found = None if self._catalogue is None else self._catalogue.page(after, limit)
            if found is not None:
                return found
            await self._progress.wait()
        return []

    async def find(self, name: str) -> LibraryPrompt | None:
        try:
            library, prompt = await self._find(name)
        except LibraryPromptNotFound:
            return None
        return library.to_library_prompt(prompt)

    async def render(self, name: str, values: Mapping[str, str], *, client: Hashable = None) -> str:
        library, prompt = await self._find(name)
        source = await self._read_source(library, prompt)
        if not prompt.template:
            return source
        folder = library.folder.root
        try:
            return await self._renderer.render(
                source,
                {**prompt.defaults, **values},
                file=prompt.file,
                partials=lambda file: self._read_partial(folder, file),
                client=client,
            )
        except RenderingFailed as error:
            if error.line is not None and error.file is None and prompt.lines_before:
                error = RenderingFailed(error.problem, line=error.line + prompt.lines_before)
            self._log_once(library, prompt, error)
            raise error from None

    def _log_once(self, library: LoadedLibrary, prompt: ParsedPrompt, error: RenderingFailed) -> None:
        """Log a rendering error once: the user who requested the prompt may not be its author."""
        file = display_path(os.path.join(library.folder.root.path, error.file or prompt.file))
        where = file if error.line is None else f"{file}:{error.line}"
        if len(self._logged) < _MAX_LOGGED and (where, error.problem) not in self._logged:
            self._logged.add((where, error.problem))
            _log.warning("%s: %s", where, error.problem)

    async def source(self, name: str) -> tuple[LibraryPrompt, str, str]:
        """A prompt, the path of its file, and its text before rendering."""
        library, prompt = await self._find(name)
        file = os.path.join(library.folder.root.path, prompt.file)
        return library.to_library_prompt(prompt), file, await self._read_source(library, prompt)

    async def prompts(self, library: str) -> list[LibraryPrompt]:
        """All prompts of a library, sorted by key."""
        await self._ready.wait()
        return [] if self._catalogue is None else self._catalogue.prompts(library)

    async def origins(self) -> dict[str, tuple[str, str]]:
        home = self._directories.home
        records = await self._disk.run(lambda: install_records.read_records(home))
        return {name: (record.kind, record.location) for name, record in records.items()}

    async def reports(self) -> list[LibraryReport]:
        await self._ready.wait()
        return [] if self._catalogue is None else [*self._catalogue.reports(), *self._folder_reports()]

    def _folder_reports(self) -> list[LibraryReport]:
        """Reports on directories that cannot be read, and on links that lead nowhere."""
        assert self._indexer is not None
        return [
            LibraryReport(name="", folder=folder, problems=(FileProblem("", problem),))
            for folder, problem in self._indexer.folders.problems.items()
        ]

    async def check(self) -> list[LibraryReport]:
        """Reports on all libraries, including a check of every template."""
        from dittybag.library.checker import LibraryChecker

        await self._ready.wait()
        if self._catalogue is None:
            return []
        reports = []
        for report in self._catalogue.reports():
            checker = LibraryChecker(self._catalogue.libraries[report.folder], self._renderer)
            problems = dict.fromkeys((*report.problems, *await checker.problems()))
            reports.append(replace(report, problems=tuple(problems)))
        return [*reports, *self._folder_reports()]

    async def _find(self, name: str) -> tuple[LoadedLibrary, ParsedPrompt]:
        await self._ready.wait()
        if self._catalogue is None:
            raise LibraryPromptNotFound(name)
        return self._catalogue.find(name)

    async def _read_source(self, library: LoadedLibrary, prompt: ParsedPrompt) -> str:
        if prompt.text is not None:
            return prompt.text
        known = library.templates.get(prompt.file)
        if known is not None and known.text is not None:
            return known.text
        folder = library.folder.root
        try:
            _, text = await self._disk.run(lambda: folder.read_text(prompt.file, SOURCE_BYTES))
        except MissingFile as error:
            raise ContentFileMissing(display_path(os.path.join(folder.path, prompt.file))) from error
        except UnreadableFile as error:
            raise RenderingFailed(f"{prompt.file}: {error.problem}", line=error.line) from error
        return text

    async def _read_partial(self, folder: SafeFolder, file: str) -> str | None:
        try:
            _, text = await self._disk.run(lambda: folder.read_text(file, SOURCE_BYTES))
        except MissingFile:
            return None
        except UnreadableFile as error:
            raise RenderingFailed(f"included file '{file}': {error.problem}") from error
        return text
