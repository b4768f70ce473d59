"""Parse the prompts of a file with the reader of its format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from dittybag.domain.errors import clip
from dittybag.library.formats import (
    claude_command,
    fabric,
    llm_template,
    markdown,
    prompty,
    skill,
    twig,
)
from dittybag.library.formats.front_matter import FrontMatterDocument, parse_front_matter
from dittybag.library.formats.parsed_prompt import Diagnostics, ParsedFile, ParsedPrompt
from dittybag.library.formats.prompt_names import key_of, key_problem

#: Yields the prompts of a content.
_Reader: TypeAlias = Callable[[str, Diagnostics], Iterable[ParsedPrompt]]
#: Parses a document with front matter and text; None if it has no prompt.
_DocumentParser: TypeAlias = Callable[[FrontMatterDocument, Diagnostics], ParsedPrompt | None]


def read(format: str, file: str, content: str) -> ParsedFile:
    """Parse the prompts of a file, and collect its problems. Never raises."""
    key = "" if format == "twig" else key_of(format, file)
    diagnostics = Diagnostics(file, key)
    prompts: Iterable[ParsedPrompt] = ()
    content = content.removeprefix("\ufeff")
    if format not in _READERS:
        diagnostics.error(f"Unknown format '{clip(format, 60)}'")
    elif not content.strip():
        diagnostics.warning("The file is empty")
    elif format != "twig" and (key or format != "skill") and (problem := key_problem(key)):
        diagnostics.error(f"Not a valid prompt: {problem}; rename the file")
    else:
        prompts = tuple(_READERS[format](content, diagnostics))
    return ParsedFile(prompts=tuple(prompts), problems=diagnostics.problems)


def _with_front_matter(parse: _DocumentParser) -> _Reader:
    def read_document(content: str, diagnostics: Diagnostics) -> Iterator[ParsedPrompt]:
        document = parse_front_matter(content, diagnostics)
        if not document.body.strip():
            diagnostics.warning("The file has no text below the front matter")
        elif (prompt := parse(document, diagnostics)) is not None:
            yield prompt

    return read_document


def _parse_markdown(document: FrontMatterDocument, diagnostics: Diagnostics) -> ParsedPrompt:
    if claude_command.looks_like_command(document):
        return _parse_command(document, diagnostics)
    return markdown.parse(document, diagnostics)


def _parse_command(document: FrontMatterDocument, diagnostics: Diagnostics) -> ParsedPrompt:
    uses_jinja = claude_command.uses_jinja(document, diagnostics)
    parse = markdown.parse if uses_jinja else claude_command.parse
    return parse(document, diagnostics)


_READERS: Final[dict[str, _Reader]] = {
    "twig": twig.read,
    "markdown": _with_front_matter(_parse_markdown),
    "claude-command": _with_front_matter(_parse_command),
    "skill": _with_front_matter(skill.parse),
    "fabric": fabric.read,
    "prompty": _with_front_matter(prompty.parse),
    "llm-template": llm_template.read,
}
FORMATS: Final = tuple(_READERS)
