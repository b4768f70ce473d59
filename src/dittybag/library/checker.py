"""The library checker: finds problems in templates, with file and line."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

from msgspec import Struct

from dittybag.domain.errors import RenderingFailed
from dittybag.domain.libraries import SOURCE_BYTES, FileProblem
from dittybag.domain.template_tags import TEMPLATE_TAG, TEMPLATE_VARIABLE
from dittybag.library.catalogue import LoadedLibrary
from dittybag.library.formats.code_spans import CodeSpans
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.loader import MANIFEST
from dittybag.library.render.includes import resolve_include
from dittybag.library.render.template_renderer import TemplateRenderer
from dittybag.library.safe_folder import MissingFile, UnreadableFile

#: Statements that include a file by a literal name. Names computed by expressions cannot be checked.
_INCLUDE: Final = re.compile(
    r"""\{%[-+]?\s*(?:include|import|from|extends)\s+(["'])(?P<file>.*?)\1(?P<rest>[^%]*)""", re.DOTALL
)
_MAX_INCLUDE_DEPTH: Final = 50
#: At most this many variables are named in a warning.
_MAX_NAMED: Final = 5


class _Template(Struct, frozen=True):
    """A template that is being checked."""

    file: str
    source: str
    lines_before: int = 0

    def line(self, number: int | None) -> int | None:
        """Convert a line number of the template to one of the file."""
        return None if number is None else number + self.lines_before

    def line_of(self, name: str) -> int | None:
        """The first line of the file in which a variable is used."""
        word = re.compile(rf"(?<![\w.]){re.escape(name)}\b")
        for tag in re.finditer(TEMPLATE_TAG, self.source):
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
        """All problems in the templates of the library."""
        found: list[FileProblem] = []
        for prompt in self._library.prompts.values():
            found += [problem async for problem in self._check_prompt(prompt)]
        found += self._undeclared_files()
        return list(dict.fromkeys(found))

    async def _check_prompt(self, prompt: ParsedPrompt) -> AsyncIterator[FileProblem]:
        source = prompt.text if prompt.text is not None else self._read(prompt.file)
        if isinstance(source, MissingFile):
            yield FileProblem(
                MANIFEST,
                f"prompt '{prompt.key}': the file {prompt.file} does not exist",
                self._header_line(prompt.key),
            )
        elif isinstance(source, UnreadableFile):
            yield FileProblem(prompt.file, source.problem, source.line)
        elif prompt.template:
            template = _Template(prompt.file, source, prompt.lines_before)
            used: dict[str, _Template] = {}
            problems = [problem async for problem in self._check_template(template, used, depth=0)]
            for problem in problems or [item async for item in self._try_render(prompt, template)]:
                yield problem
            for problem in self._check_arguments(prompt, used):
                yield problem
        elif self._format_of(prompt) == "markdown":
            for problem in _check_plain_text(_Template(prompt.file, source, prompt.lines_before)):
                yield problem

    def _format_of(self, prompt: ParsedPrompt) -> str | None:
        state = self._library.files.get(prompt.file)
        return None if state is None else state.format

    async def _check_template(
        self, template: _Template, used: dict[str, _Template], *, depth: int
    ) -> AsyncIterator[FileProblem]:
        """Check a template and the files it includes. Adds the variables it uses to `used`."""
        file, source = template.file, template.source
        try:
            for name in await self._renderer.variables(source, file=file):
                used.setdefault(name, template)
        except RenderingFailed as error:
            yield FileProblem(file, error.problem, template.line(error.line))
            return
        for statement in _INCLUDE.finditer(source):
            line = template.line(source.count("\n", 0, statement.start()) + 1)
            name = resolve_include(statement["file"], file)
            content = self._read(name)
            if isinstance(content, MissingFile):
                if "ignore missing" not in statement["rest"]:
                    yield FileProblem(file, f"includes '{statement['file']}', which does not exist", line)
            elif isinstance(content, UnreadableFile):
                yield FileProblem(file, f"includes '{statement['file']}': {content.problem}", line)
            elif depth < _MAX_INCLUDE_DEPTH and name not in self._included:
                self._included.add(name)
                async for problem in self._check_template(_Template(name, content), used, depth=depth + 1):
                    yield problem

    async def _try_render(self, prompt: ParsedPrompt, template: _Template) -> AsyncIterator[FileProblem]:
        """Render a template to find unknown filters and functions, which are only looked up then."""
        values = {argument.name: "1" for argument in prompt.arguments}
        try:
            await self._renderer.render(
                template.source, values, file=prompt.file, partials=self._read_partial
            )
        except RenderingFailed as error:
            # Other errors may be caused by the sample values.
            if error.is_unknown_name:
                line = template.line(error.line) if error.file is None else error.line
                yield FileProblem(error.file or prompt.file, error.problem, line)

    async def _read_partial(self, file: str) -> str | None:
        content = self._read(file)
        return content if isinstance(content, str) else None

    def _check_arguments(self, prompt: ParsedPrompt, used: dict[str, _Template]) -> Iterator[FileProblem]:
        declared = {argument.name for argument in prompt.arguments}
        for name in sorted(used.keys() - declared):
            problem = (
                f"uses '{name}', which is not an argument of the prompt '{prompt.key}' and is always empty"
            )
            yield FileProblem(used[name].file, problem, used[name].line_of(name))
        for name in sorted(declared - used.keys()):
            where = MANIFEST if MANIFEST in self._library.stamps else prompt.file
            line = self._header_line(prompt.key) if where == MANIFEST else None
            problem = f"prompt '{prompt.key}': the argument '{name}' is declared but not used"
            yield FileProblem(where, problem, line, level="warning")

    def _undeclared_files(self) -> Iterator[FileProblem]:
        """Templates that neither the manifest nor another template refers to."""
        known = {prompt.file for prompt in self._library.prompts.values()} | self._included
        for file in self._library.templates:
            if file not in known:
                yield FileProblem(
                    file, f"not listed in {MANIFEST} and not included by a template", level="warning"
                )

    def _read(self, file: str) -> str | UnreadableFile:
        if file not in self._sources:
            try:
                _, self._sources[file] = self._library.folder.root.read_text(file, SOURCE_BYTES)
            except UnreadableFile as error:
                self._sources[file] = error
        return self._sources[file]

    def _header_line(self, key: str) -> int | None:
        """The line of a prompt's table header in the manifest."""
        try:
            _, text = self._library.folder.root.read_text(MANIFEST, SOURCE_BYTES)
        except UnreadableFile:
            return None
        header = re.compile(rf"\s*\[\s*prompts\s*\.\s*([\"']?){re.escape(key)}\1\s*\]")
        lines = enumerate(text.split("\n"), start=1)
        return next((number for number, line in lines if header.match(line)), None)


def _check_plain_text(text: _Template) -> Iterator[FileProblem]:
    """Warn of variables in a text without arguments, which is not a template. Code may contain braces."""
    tags = list(re.finditer(TEMPLATE_VARIABLE, text.source))
    if not tags:
        return
    code = CodeSpans(text.source)
    tags = [tag for tag in tags if code.kind(tag.start()) is None]
    if names := list(dict.fromkeys(tag[1] for tag in tags)):
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        shown = ", ".join(f"{{{{ {name} }}}}" for name in names[:_MAX_NAMED])
        problem = (
            f"{shown}{more} in a file without arguments is plain text; to make arguments of variables, "
            f"add to the front matter: arguments: [{', '.join(names[:_MAX_NAMED])}]"
        )
        line = text.line(text.source.count("\n", 0, tags[0].start()) + 1)
        yield FileProblem(text.file, problem, line, level="warning")
