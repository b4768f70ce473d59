"""Import of prompt files in any library format, which become stored prompts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from dittybag.domain.display import format_size
from dittybag.domain.entities import Kind
from dittybag.domain.errors import RenderingFailed, SourceFailed
from dittybag.domain.libraries import SOURCE_BYTES
from dittybag.domain.names import NAME_LENGTH, numbered_names
from dittybag.domain.ports import Renderer
from dittybag.domain.prompts import Prompt
from dittybag.domain.role_marks import split_at_marks, with_role_lines
from dittybag.exchange.import_rules import entity_problems
from dittybag.exchange.import_sources import FileSource, SourceEntity, SourceEntry, entity_of
from dittybag.exchange.sanitise import sanitise_description, sanitise_name, sanitise_title
from dittybag.services.template_arguments import find_arguments

if TYPE_CHECKING:
    from dittybag.library.catalogue import LoadedLibrary
    from dittybag.library.formats.parsed_prompt import ParsedPrompt

#: A tag that includes another file of the library.
_INCLUDE_TAG: Final = re.compile(r"\{%[-+]?\s*(?:include|import|from|extends)\b")
_FIRST_ROLE: Final = re.compile(r"--role \w+\n")


class _LibraryPrompts(FileSource):
    """The valid prompts of a library, with distinct names and titles, and notes about the others."""

    def __init__(self) -> None:
        super().__init__()
        self._prompts: dict[str, SourceEntry[SourceEntity]] = {}
        self._titles: set[str] = set()

    def entities(self, kind: Kind) -> Iterable[SourceEntry[SourceEntity]]:
        return self._prompts.values() if kind == "prompt" else ()

    def add(self, file: str, prompt: Prompt) -> None:
        if problems := list(entity_problems(prompt)):
            self.add_note(f"{file}: skipped: {'; '.join(problems)}")
            return
        names = numbered_names(prompt.name, "-{}", NAME_LENGTH)
        name = next(name for name in names if name not in self._prompts)
        if name != prompt.name:
            self.add_note(f"{file}: named '{name}', because another file is named '{prompt.name}'")
        # Without a title, a free one is derived from the name.
        title = prompt.title if prompt.title not in self._titles else ""
        self._titles.add(title)
        self._prompts[name] = file, SourceEntity(replace(prompt, name=name, title=title))


async def open_library(path: str, temporary: str, home: str) -> FileSource:
    """The prompts in a file, or in a folder of prompt files. Raises `SourceFailed`."""
    from dittybag.library.catalogue import Catalogue
    from dittybag.library.indexer import LibraryIndexer
    from dittybag.library.library_folders import Directories
    from dittybag.library.render.template_renderer import TemplateRenderer

    folder = path if os.path.isdir(path) else _single_file_folder(path, temporary)  # noqa: ASYNC240, PTH112
    source, catalogue, directories = _LibraryPrompts(), Catalogue(), Directories(home, single=folder)
    with (
        closing(TemplateRenderer()) as renderer,
        closing(LibraryIndexer(directories, catalogue, renderer, quiet=True)) as indexer,
    ):
        await indexer.refresh(None)
        (library,) = catalogue.libraries.values()
        await _add_prompts(source, library, renderer)
    if not source.entities("prompt"):
        raise SourceFailed(folder, "; ".join(["no valid prompts found", *source.notes[:3]]))
    return source


def _single_file_folder(file: str, temporary: str) -> str:
    """Create a folder that contains only a copy of this file. Returns its path."""
    from shutil import copyfile

    if os.path.getsize(file) > SOURCE_BYTES:  # noqa: PTH202
        raise SourceFailed(file, f"it is larger than {format_size(SOURCE_BYTES)}")
    folder = os.path.join(temporary, "prompts")  # noqa: PTH118
    os.mkdir(folder)  # noqa: PTH102
    copyfile(file, os.path.join(folder, os.path.basename(file)))  # noqa: PTH118, PTH119
    return folder


async def _add_prompts(source: _LibraryPrompts, library: LoadedLibrary, renderer: Renderer) -> None:
    report = library.report()
    for problem in report.problems:
        if problem.level == "error":
            source.add_note(f"{problem.file}: {problem.message}")
    for parsed in library.prompts.values():
        try:
            content = await _template_text(library, parsed, renderer)
        except (RenderingFailed, OSError, ValueError) as error:
            source.add_note(f"{parsed.file}: skipped: {error}")
            continue
        prompt = entity_of(
            Prompt,
            name=sanitise_name(parsed.key, "prompt"),
            title=sanitise_title(parsed.title or ""),
            description=sanitise_description(parsed.description),
            content=content,
            # A text without a template has no arguments.
            arguments=parsed.arguments if parsed.template else (),
        )
        source.add(parsed.file, prompt)
    for file, reason in report.skipped.items():
        if not _is_hidden(file):
            source.add_note(f"{file}: skipped: {reason}")


def _is_hidden(file: str) -> bool:
    # Commands and skills are in a hidden folder.
    return any(part.startswith(".") for part in file.removeprefix(".claude/").split("/"))


async def _template_text(library: LoadedLibrary, parsed: ParsedPrompt, renderer: Renderer) -> str:
    """The template of a library prompt, self-contained. Raises `RenderingFailed` and `ValueError`."""
    from dittybag.library.safe_folder import MissingFile, UnreadableFile

    folder = library.folder.root

    async def read(file: str) -> str | None:
        try:
            return folder.read_text(file, SOURCE_BYTES)[1]
        except MissingFile:
            return None
        except UnreadableFile as error:
            raise RenderingFailed(f"{file}: {error.problem}") from error

    text = parsed.text if parsed.text is not None else await read(parsed.file)
    if text is None:
        raise ValueError("the file is missing")
    if parsed.roles:
        text = with_role_lines(split_at_marks(text, parsed.roles))
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
    # A `--role` line must remain the first one.
    role, text = (found[0], text[found.end() :]) if (found := _FIRST_ROLE.match(text)) else ("", text)
    return role + "".join(defaults) + text
