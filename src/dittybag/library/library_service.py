"""The shelf: the libraries of this machine, at hand and up to date. See `dittybag.domain.ports.Libraries`.

Whoever has no libraries pays nothing for them: what reads and follows files is imported when there are some.
"""

from __future__ import annotations

import logging
import os
from asyncio import Event, Task, get_running_loop
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from dittybag.domain.errors import ContentFileMissing, LibraryPromptNotFound, PromptUnusable, RenderingFailed
from dittybag.domain.libraries import SOURCE_BYTES, LibraryPrompt, LibraryReport
from dittybag.domain.text import fold, snippet_around
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

#: How often to look for the first library.
_LOOK_SECONDS: Final = 0.5

#: Of which no more are logged.
_MAX_COMPLAINTS: Final = 100

_log = logging.getLogger("dittybag.library")


class LibraryService:
    """All libraries. Whoever asks before they have been read waits for that."""

    def __init__(self, directories: Directories, renderer: TemplateRenderer) -> None:
        self._directories = directories
        self._renderer = renderer
        self._disk = DiskThread()
        #: Nothing as long as there are no libraries.
        self._catalogue: Catalogue | None = None
        self._indexer: LibraryIndexer | None = None
        self._follower: LibraryRefresher | None = None
        self._task: Task[None] | None = None
        self._version = 0
        self._ready = Event()
        #: Set when some more libraries have been read, and then replaced.
        self._step = Event()
        self._listeners: list[Callable[[], Any]] = []
        self._complaints: set[tuple[str, str]] = set()
        self._closed = False

    # Beginning and end

    def start(self) -> None:
        if self._closed:
            return
        if self._directories.exist():
            self._task = get_running_loop().create_task(self._follow())
        else:
            self._ready.set()
            get_running_loop().call_later(_LOOK_SECONDS, self.start)

    async def load(self) -> None:
        """Read everything once, completely, without following changes."""
        await self._opened(quiet=True).refresh(None)
        self._be_ready()

    async def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        for part in (self._follower, self._indexer, self._disk):
            if part is not None:
                part.close()

    def _opened(self, *, quiet: bool) -> LibraryIndexer:
        from dittybag.library.catalogue import Catalogue
        from dittybag.library.indexer import LibraryIndexer

        self._catalogue = Catalogue()
        self._indexer = LibraryIndexer(self._directories, self._catalogue, self._renderer, quiet=quiet)
        return self._indexer

    async def _follow(self) -> None:
        late = self._ready.is_set()
        indexer = self._opened(quiet=False)
        try:
            await indexer.load_first(self._stepped)
        except Exception:  # noqa: BLE001  # whoever waits must not wait for ever; there is another look below
            _log.exception("the libraries could not be read")
            assert self._catalogue is not None
            self._catalogue.set_libraries(())
        self._be_ready()
        from dittybag.library.refresh import LibraryRefresher

        self._follower = LibraryRefresher(indexer, self._changed, self._tell)
        if late:
            # Somebody may have asked while there were none.
            self._follower.tell_soon()
        # Some clients start a server only to see what it has, and soon end it.
        await indexer.save_cache()
        await self._follower.run()

    def _be_ready(self) -> None:
        self._changed()
        self._ready.set()
        self._stepped()

    def _stepped(self) -> None:
        self._step.set()
        self._step = Event()

    def _changed(self) -> None:
        self._version += 1

    def _tell(self) -> None:
        if not self._closed:
            for listener in self._listeners:
                listener()

    # Questions

    def stamp(self) -> Hashable:
        return self._version

    def subscribe(self, listener: Callable[[], Any]) -> None:
        self._listeners.append(listener)

    async def page(self, after: str, limit: int) -> list[LibraryPrompt]:
        while self._catalogue is not None or not self._ready.is_set():
            found = None if self._catalogue is None else self._catalogue.page(after, limit)
            if found is not None:
                return found
            await self._step.wait()
        return []

    async def find(self, name: str) -> LibraryPrompt | None:
        try:
            library, prompt = await self._found(name)
        except LibraryPromptNotFound:
            return None
        return library.to_library_prompt(prompt)

    async def render(self, name: str, values: Mapping[str, str]) -> str:
        library, prompt = await self._found(name)
        source = await self._source(library, prompt)
        if not prompt.template:
            return source
        folder = library.folder.root
        try:
            return await self._renderer.render(
                source,
                {**prompt.defaults, **values},
                file=prompt.file,
                partials=lambda file: self._partial(folder, file),
            )
        except RenderingFailed as error:
            if error.line is not None and error.file is None and prompt.lines_before:
                error = RenderingFailed(error.problem, line=error.line + prompt.lines_before)
            self._complain(library, prompt, error)
            raise error from None

    def _complain(self, library: LoadedLibrary, prompt: ParsedPrompt, error: RenderingFailed) -> None:
        """Log, once, that a prompt cannot be given: whoever asked for it may not be able to mend it."""
        file = display_path(os.path.join(library.folder.root.path, error.file or prompt.file))
        where = file if error.line is None else f"{file}:{error.line}"
        if len(self._complaints) < _MAX_COMPLAINTS and (where, error.problem) not in self._complaints:
            self._complaints.add((where, error.problem))
            _log.warning("%s: %s", where, error.problem)

    async def source(self, name: str) -> tuple[LibraryPrompt, str, str]:
        """A prompt, its file, and its text before anything is filled in."""
        library, prompt = await self._found(name)
        file = os.path.join(library.folder.root.path, prompt.file)
        return library.to_library_prompt(prompt), file, await self._source(library, prompt)

    async def prompts(self, library: str) -> list[LibraryPrompt]:
        """All prompts of a library."""
        await self._ready.wait()
        return [] if self._catalogue is None else self._catalogue.prompts(library)

    async def search(self, query: str, limit: int) -> tuple[int, list[tuple[LibraryPrompt, str]]]:
        """How many have `query` in name, title, description or text, in any case, and the first of them.

        Each comes with what stands around the match.
        """
        needle, total = fold(query), 0
        found: list[tuple[LibraryPrompt, str]] = []
        for report in await self.reports():
            for prompt in await self.prompts(report.name):
                try:
                    _, _, text = await self.source(prompt.name)
                except PromptUnusable:
                    text = ""
                about = "\n".join((prompt.name, prompt.title or "", prompt.description or ""))
                if needle in fold(about) or needle in fold(text):
                    total += 1
                    if len(found) < limit:
                        found.append((prompt, snippet_around(text, query)))
        return total, found

    async def origins(self) -> dict[str, tuple[str, str]]:
        home = self._directories.home
        found = await self._disk.run(lambda: install_records.read_records(home))
        return {name: (origin.kind, origin.location) for name, origin in found.items()}

    async def reports(self) -> list[LibraryReport]:
        await self._ready.wait()
        return [] if self._catalogue is None else self._catalogue.reports()

    async def check(self) -> list[LibraryReport]:
        """The reports after a closer look at every template."""
        from dittybag.library.checker import LibraryChecker

        await self._ready.wait()
        if self._catalogue is None:
            return []
        reports = []
        for report in self._catalogue.reports():
            checker = LibraryChecker(self._catalogue.libraries[report.folder], self._renderer)
            problems = dict.fromkeys((*report.problems, *await checker.problems()))
            reports.append(replace(report, problems=tuple(problems)))
        return reports

    async def _found(self, name: str) -> tuple[LoadedLibrary, ParsedPrompt]:
        await self._ready.wait()
        if self._catalogue is None:
            raise LibraryPromptNotFound(name)
        return self._catalogue.find(name)

    async def _source(self, library: LoadedLibrary, prompt: ParsedPrompt) -> str:
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
            raise RenderingFailed(f"{prompt.file} {error.problem}", line=error.line) from error
        return text

    async def _partial(self, folder: SafeFolder, file: str) -> str | None:
        try:
            _, text = await self._disk.run(lambda: folder.read_text(file, SOURCE_BYTES))
        except MissingFile:
            return None
        except UnreadableFile as error:
            raise RenderingFailed(f"the included file '{file}' {error.problem}") from error
        return text
