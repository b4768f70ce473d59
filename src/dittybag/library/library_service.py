"""The library service: serves the prompts of all libraries and reloads them when files change.

The modules that read and watch files are only imported if there are libraries.
"""

from __future__ import annotations

import logging
import os
from asyncio import Event, Task, get_running_loop
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypedDict

from msgspec.structs import replace

from dittybag.domain.errors import ContentFileMissing, DittybagError, LibraryPromptNotFound, RenderingFailed
from dittybag.domain.libraries import SOURCE_BYTES, FileProblem, LibraryPrompt, LibraryReport
from dittybag.domain.ports import Partials
from dittybag.domain.prompts import verbatim_messages
from dittybag.domain.role_marks import Message
from dittybag.files import display_path
from dittybag.library import install_records
from dittybag.library.disk_thread import DiskThread
from dittybag.library.library_folders import Directories
from dittybag.library.render.template_renderer import TemplateRenderer
from dittybag.library.safe_folder import MissingFile, SafeFolder, UnreadableFile

if TYPE_CHECKING:
    from dittybag.domain.skills import Skill, SkillFile
    from dittybag.library.catalogue import Catalogue, LoadedLibrary
    from dittybag.library.formats.parsed_prompt import ParsedPrompt
    from dittybag.library.indexer import LibraryChanges, LibraryIndexer
    from dittybag.library.refresh import LibraryRefresher
    from dittybag.library.skill_index import SkillIndex

#: How often to check for the first library.
_POLL_SECONDS: Final = 0.5

#: Maximum number of different rendering errors that are logged.
_MAX_LOGGED: Final = 100

_log = logging.getLogger("dittybag.library")


class _TemplateFile(TypedDict):
    """The file of a template, and the files that it can include."""

    file: str
    partials: Partials


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
        self._skills: SkillIndex | None = None
        self._skills_version = 0
        self._skill_listeners: list[Callable[[Collection[str]], Any]] = []
        #: What listeners have not been notified of: prompts, and files of skills by library.
        self._unreported_prompts = False
        self._unreported_files: set[tuple[str, str]] = set()
        self._skill_notification: Task[None] | None = None
        self._logged: set[tuple[str, str]] = set()
        self._closed = False

    def start(self) -> None:
        """Start to read and watch the libraries. Requests wait until they are read."""
        if self._closed:
            return
        if self._directories.exist():
            self._task = get_running_loop().create_task(self._run())
        else:
            self._ready.set()
            get_running_loop().call_later(_POLL_SECONDS, self.start)

    async def load(self, *, cached: bool = False) -> None:
        """Load all libraries once, without watching for changes.

        `cached`: use what a server has parsed of files that have not changed since, which is faster.
        """
        indexer = self._create_indexer(quiet=True)
        await self._disk.run(self._finish_interrupted)
        if cached:
            await indexer.load_first(lambda: None)
        else:
            await indexer.refresh(None)
        self._mark_ready()

    async def close(self) -> None:
        self._closed = True
        for task in (self._task, self._skill_notification):
            if task is not None:
                task.cancel()
        for part in (self._refresher, self._indexer, self._skills, self._disk):
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
        # Requests wait: the new catalogue is empty.
        self._ready.clear()
        indexer = self._create_indexer(quiet=False)
        try:
            await self._disk.run(self._finish_interrupted)
            await indexer.load_first(self._signal_progress)
        except Exception:  # noqa: BLE001  # waiting requests must continue; the refresher below scans again
            _log.exception("cannot load the libraries")
            assert self._catalogue is not None
            self._catalogue.set_libraries(())
        self._mark_ready()
        from dittybag.library.refresh import LibraryRefresher

        self._refresher = LibraryRefresher(indexer, self._record_changes, self._notify)
        if late:
            # Clients may have listed prompts and skills while there were no libraries.
            self._unreported_prompts = True
            if self._skill_listeners:
                self._unreported_files = self._all_skill_files()
            self._refresher.notify_soon()
        # Some clients only start a server to list its prompts, and stop it soon after.
        await indexer.save_cache()
        await self._refresher.run()

    def _finish_interrupted(self) -> None:
        """Complete changes of the libraries whose process was killed."""
        home = self._directories.home
        if install_records.has_unfinished_changes(home):
            from dittybag.library.installer import finish_interrupted

            try:
                finish_interrupted(home)
            except DittybagError as error:
                _log.warning("%s", error)

    def _mark_ready(self) -> None:
        self._version += 1
        self._skills_version += 1
        self._ready.set()
        self._signal_progress()

    def _signal_progress(self) -> None:
        self._progress.set()
        self._progress = Event()

    def _record_changes(self, changes: LibraryChanges) -> None:
        if changes.prompts:
            self._version += 1
            self._unreported_prompts = True
        if changes.skill_files:
            self._skills_version += 1
            if self._skill_listeners:
                self._unreported_files |= changes.skill_files

    def _notify(self) -> None:
        if self._closed:
            return
        if self._unreported_prompts:
            self._unreported_prompts = False
            for listener in self._listeners:
                listener()
        if self._unreported_files and (self._skill_notification is None or self._skill_notification.done()):
            self._skill_notification = get_running_loop().create_task(self._notify_of_skills())

    async def _notify_of_skills(self) -> None:
        while files := self._unreported_files:
            self._unreported_files = set()
            try:
                paths = await self._skill_index().changed_paths(self._served_libraries(), files)
            except Exception:  # noqa: BLE001  # the edge of this task: no caller to raise to
                _log.exception("cannot read the changed skills")
                return
            for listener in self._skill_listeners:
                listener(paths)

    def _all_skill_files(self) -> set[tuple[str, str]]:
        libraries = self._served_libraries().items()
        return {(name, file) for name, library in libraries for file in library.skill_files}

    def _served_libraries(self) -> Mapping[str, LoadedLibrary]:
        return {} if self._catalogue is None else self._catalogue.by_name

    def _skill_index(self) -> SkillIndex:
        from dittybag.library.skill_index import SkillIndex

        if self._skills is None:
            assert self._indexer is not None
            self._skills = SkillIndex(self._indexer.read_skill_header)
        return self._skills

    def stamp(self) -> Hashable:
        """Return a value that stays equal until a library changes."""
        return self._version

    def subscribe(self, listener: Callable[[], Any]) -> None:
        """Call `listener` soon after libraries change, once for several changes."""
        self._listeners.append(listener)

    def skills_stamp(self) -> Hashable:
        """Return a value that stays equal until a file of a skill changes."""
        return self._skills_version

    def subscribe_to_skills(self, listener: Callable[[Collection[str]], Any]) -> None:
        """Call `listener` with the paths of changed files soon after files of skills change."""
        self._skill_listeners.append(listener)

    async def skills(self, after: str, limit: int) -> tuple[list[Skill], bool]:
        """Return skills by path, starting after `after`, and whether there are more."""
        await self._ready.wait()
        libraries = self._served_libraries()
        return await self._skill_index().page(libraries, after, limit) if libraries else ([], False)

    async def skill_of(self, name: str) -> Skill | None:
        """Return the skill whose `SKILL.md` a prompt is; `None` if it is another prompt."""
        library, prompt = await self._find(name)
        return await self._skill_index().of_file(library, prompt.file)

    async def skill_around(self, path: str) -> Skill | None:
        """Return the innermost skill at a path or around it."""
        await self._ready.wait()
        libraries = self._served_libraries()
        return await self._skill_index().around(libraries, path) if libraries else None

    async def read_skill_file(self, path: str) -> tuple[SkillFile, bytes] | None:
        """Return a file of a skill, given the paths of both, and its content; None if there is none."""
        await self._ready.wait()
        libraries = self._served_libraries()
        return await self._skill_index().read(libraries, path) if libraries else None

    async def page(self, after: str, limit: int) -> list[LibraryPrompt]:
        """Return prompts by name, starting after `after`."""
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
        """Render a prompt as one text. Raises `LibraryPromptNotFound` or `PromptUnusable`."""
        library, prompt = await self._find(name)
        return await self._render_text(library, prompt, values, client)

    async def render_messages(
        self, name: str, values: Mapping[str, str], *, client: Hashable = None
    ) -> tuple[Message, ...]:
        """Render a prompt as messages, by the roles in its file. Raises like `render`."""
        library, prompt = await self._find(name)
        if not prompt.roles:
            return (Message("user", await self._render_text(library, prompt, values, client)),)
        source = await self._read_source(library, prompt)
        if not prompt.template:
            return verbatim_messages(source, prompt.roles)
        values = {**prompt.defaults, **values}
        template_file = self._template_file(library, prompt)
        with self._reported(library, prompt):
            return await self._renderer.render_messages(
                source, prompt.roles, values, **template_file, client=client
            )

    async def _render_text(
        self, library: LoadedLibrary, prompt: ParsedPrompt, values: Mapping[str, str], client: Hashable
    ) -> str:
        source = await self._read_source(library, prompt)
        if not prompt.template:
            return source
        values = {**prompt.defaults, **values}
        template_file = self._template_file(library, prompt)
        with self._reported(library, prompt):
            return await self._renderer.render(source, values, **template_file, client=client)

    def _template_file(self, library: LoadedLibrary, prompt: ParsedPrompt) -> _TemplateFile:
        folder = library.folder.root
        return _TemplateFile(file=prompt.file, partials=lambda file: self._read_partial(folder, file))

    @contextmanager
    def _reported(self, library: LoadedLibrary, prompt: ParsedPrompt) -> Iterator[None]:
        """Log rendering errors, and count their lines from the start of the file."""
        try:
            yield
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
        """Return the origin of each library: its kind, such as `git` or `link`, and its URL or folder.

        Libraries that were added by hand are not included.
        """
        home = self._directories.home
        records = await self._disk.run(lambda: install_records.read_records(home))
        return {name: (record.kind, record.location) for name, record in records.items()}

    async def reports(self) -> list[LibraryReport]:
        """Return a report on each library, including broken ones."""
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
            library = self._catalogue.libraries[report.folder]
            checker = LibraryChecker(library, self._renderer)
            skills = await self._skill_index().problems(library) if library.name else []
            problems = dict.fromkeys((*report.problems, *await checker.problems(), *skills))
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
