"""Looks closely at libraries: everything that is wrong with their templates, with file and line."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

from msgspec import Struct

from dittybag.domain.errors import RenderingFailed
from dittybag.domain.libraries import SOURCE_BYTES, FileProblem
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.loaded_library import LoadedLibrary
from dittybag.library.loader import MANIFEST
from dittybag.library.render.includes import included
from dittybag.library.render.template_renderer import TemplateRenderer
from dittybag.library.safe_folder import MissingFile, UnreadableFile

#: Names of files in statements that include others; what an expression makes cannot be known here.
_INCLUDE: Final = re.compile(
    r"""\{%[-+]?\s*(?:include|import|from|extends)\s+(["'])(?P<file>.*?)\1(?P<rest>[^%]*)""", re.DOTALL
)
#: Where a template is not text.
_TAG: Final = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)

_MAX_INCLUDES: Final = 50


class _Template(Struct, frozen=True):
    """A text that is being checked."""

    file: str
    source: str
    lines_before: int = 0

    def line(self, number: int | None) -> int | None:
        """A line of the file, given that of the template."""
        return None if number is None else number + self.lines_before

    def line_of(self, name: str) -> int | None:
        """The first line of the file in which a variable is used."""
        word = re.compile(rf"(?<![\w.]){re.escape(name)}\b")
        for tag in _TAG.finditer(self.source):
            if found := word.search(tag[0]):
                return self.line(self.source.count("\n", 0, tag.start() + found.start()) + 1)
        return None


class LibraryChecker:
    """Checks the templates of one library."""

    def __init__(self, library: LoadedLibrary, renderer: TemplateRenderer) -> None:
        self._library = library
        self._renderer = renderer
        self._sources: dict[str, str | UnreadableFile] = {}
        self._included: set[str] = set()

    async def problems(self) -> list[FileProblem]:
        """Everything that only a closer look shows."""
        found: list[FileProblem] = []
        for draft in self._library.drafts.values():
            found += [problem async for problem in self._of(draft)]
        found += self._undeclared_files()
        return list(dict.fromkeys(found))

    async def _of(self, draft: ParsedPrompt) -> AsyncIterator[FileProblem]:
        source = draft.text if draft.text is not None else self._read(draft.file)
        if isinstance(source, MissingFile):
            yield FileProblem(
                MANIFEST, f"the prompt '{draft.key}' has no file {draft.file}", self._header(draft.key)
            )
        elif isinstance(source, str) and draft.template:
            template = _Template(draft.file, source, draft.lines_before)
            used: dict[str, _Template] = {}
            problems = [problem async for problem in self._template(template, used, depth=0)]
            for problem in problems or [item async for item in self._trial(draft, template)]:
                yield problem
            for problem in self._arguments(draft, used):
                yield problem

    async def _template(
        self, template: _Template, used: dict[str, _Template], *, depth: int
    ) -> AsyncIterator[FileProblem]:
        """What is wrong with a template and those that it includes; `used` learns where variables are."""
        file, source = template.file, template.source
        try:
            for name in await self._renderer.variables(source, file=file):
                used.setdefault(name, template)
        except RenderingFailed as error:
            yield FileProblem(file, error.problem, template.line(error.line))
            return
        for statement in _INCLUDE.finditer(source):
            line = template.line(source.count("\n", 0, statement.start()) + 1)
            name = included(statement["file"], file)
            content = self._read(name)
            if isinstance(content, MissingFile):
                if "ignore missing" not in statement["rest"]:
                    yield FileProblem(file, f"includes '{statement['file']}', which is not there", line)
            elif isinstance(content, UnreadableFile):
                yield FileProblem(file, f"includes '{statement['file']}', which {content.problem}", line)
            elif depth < _MAX_INCLUDES and name not in self._included:
                self._included.add(name)
                async for problem in self._template(_Template(name, content), used, depth=depth + 1):
                    yield problem

    async def _trial(self, draft: ParsedPrompt, template: _Template) -> AsyncIterator[FileProblem]:
        """Names of filters and functions are only looked up when a template is rendered."""
        values = {argument.name: "1" for argument in draft.arguments}
        try:
            await self._renderer.render(template.source, values, file=draft.file, partials=self._partial)
        except RenderingFailed as error:
            # Anything else may be the fault of the values.
            if error.problem.endswith("is unknown"):
                line = template.line(error.line) if error.file is None else error.line
                yield FileProblem(error.file or draft.file, error.problem, line)

    async def _partial(self, file: str) -> str | None:
        content = self._read(file)
        return content if isinstance(content, str) else None

    def _arguments(self, draft: ParsedPrompt, used: dict[str, _Template]) -> Iterator[FileProblem]:
        declared = {argument.name for argument in draft.arguments}
        for name in sorted(used.keys() - declared):
            problem = f"uses '{name}', which is no argument of the prompt '{draft.key}' and always empty"
            yield FileProblem(used[name].file, problem, used[name].line_of(name))
        for name in sorted(declared - used.keys()):
            where = MANIFEST if MANIFEST in self._library.stamps else draft.file
            line = self._header(draft.key) if where == MANIFEST else None
            problem = f"the prompt '{draft.key}' declares the argument '{name}' and never uses it"
            yield FileProblem(where, problem, line, level="warning")

    def _undeclared_files(self) -> Iterator[FileProblem]:
        """Templates beside the manifest that it does not know."""
        known = {draft.file for draft in self._library.drafts.values()} | self._included
        for file in self._library.texts:
            if file not in known:
                yield FileProblem(
                    file, f"is neither a prompt of {MANIFEST} nor included by one", level="warning"
                )

    def _read(self, file: str) -> str | UnreadableFile:
        if file not in self._sources:
            try:
                _, self._sources[file] = self._library.place.folder.text(file, SOURCE_BYTES)
            except UnreadableFile as error:
                self._sources[file] = error
        return self._sources[file]

    def _header(self, key: str) -> int | None:
        """The line of the manifest that begins with a prompt."""
        try:
            _, text = self._library.place.folder.text(MANIFEST, 4 * SOURCE_BYTES)
        except UnreadableFile:
            return None
        header = re.compile(rf"\s*\[\s*prompts\s*\.\s*([\"']?){re.escape(key)}\1\s*\]")
        lines = enumerate(text.split("\n"), start=1)
        return next((number for number, line in lines if header.match(line)), None)
