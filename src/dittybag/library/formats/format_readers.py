"""Dispatch the content of a file to the parser of its format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from dittybag.domain.errors import clip
from dittybag.library.formats import (
    claude_command,
    dotprompt,
    fabric,
    llm_template,
    markdown,
    prompty,
    skill,
    twig,
)
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.front_matter import FrontMatterDocument, parse_front_matter
from dittybag.library.formats.parsed_prompt import ParsedFile, ParsedPrompt
from dittybag.library.formats.prompt_names import key_of, key_problem


def read(format: str, file: str, content: str) -> ParsedFile:
    """Parse the content of a file and collect its problems. Never raises."""
    diagnostics = Diagnostics(file)
    prompts: Iterable[ParsedPrompt] = ()
    content = content.removeprefix("\ufeff")
    key = "" if format == "twig" else key_of(format, file)
    if format not in _READERS:
        diagnostics.error(f"Unknown format '{clip(format, 60)}'")
    elif not content.strip():
        diagnostics.warning("The file is empty")
    elif format != "twig" and (key or format != "skill") and (problem := key_problem(key)):
        diagnostics.error(f"Not a valid prompt: {problem}; rename the file")
    else:
        prompts = _READERS[format](file, key, content, diagnostics)
    return ParsedFile(prompts=tuple(prompts), problems=diagnostics.problems)


def _twig(file: str, key: str, content: str, diagnostics: Diagnostics) -> Iterable[ParsedPrompt]:
    return list(twig.read(content, diagnostics))


def _llm_template(file: str, key: str, content: str, diagnostics: Diagnostics) -> Iterable[ParsedPrompt]:
    return list(llm_template.read(file, key, content, diagnostics))


def _fabric(file: str, key: str, content: str, diagnostics: Diagnostics) -> Iterable[ParsedPrompt]:
    return [fabric.parse(file, key, content, diagnostics)]


def _markdown(file: str, key: str, content: str, diagnostics: Diagnostics) -> Iterable[ParsedPrompt]:
    document = parse_front_matter(content, diagnostics)
    is_command = claude_command.looks_like_command(document) and not claude_command.uses_jinja(
        document, diagnostics
    )
    return _parse_body(
        claude_command.parse if is_command else markdown.parse, file, key, document, diagnostics
    )


def _claude_command(file: str, key: str, content: str, diagnostics: Diagnostics) -> Iterable[ParsedPrompt]:
    document = parse_front_matter(content, diagnostics)
    uses_jinja = claude_command.uses_jinja(document, diagnostics)
    return _parse_body(
        markdown.parse if uses_jinja else claude_command.parse, file, key, document, diagnostics
    )


def _skill(file: str, key: str, content: str, diagnostics: Diagnostics) -> Iterable[ParsedPrompt]:
    return _parse_body(skill.parse, file, key, parse_front_matter(content, diagnostics), diagnostics)


def _dotprompt(file: str, key: str, content: str, diagnostics: Diagnostics) -> Iterable[ParsedPrompt]:
    return _parse_body(
        dotprompt.parse, file, key, parse_front_matter(content, diagnostics, comments_first=True), diagnostics
    )


def _prompty(file: str, key: str, content: str, diagnostics: Diagnostics) -> Iterable[ParsedPrompt]:
    return _parse_body(prompty.parse, file, key, parse_front_matter(content, diagnostics), diagnostics)


def _parse_body(
    parse: Callable[[str, str, FrontMatterDocument, Diagnostics], ParsedPrompt | None],
    file: str,
    key: str,
    document: FrontMatterDocument,
    diagnostics: Diagnostics,
) -> Iterable[ParsedPrompt]:
    if not document.body.strip():
        diagnostics.warning("The file has no text below the front matter")
        return ()
    prompt = parse(file, key, document, diagnostics)
    return () if prompt is None else (prompt,)


_READERS: Final[dict[str, Callable[[str, str, str, Diagnostics], Iterable[ParsedPrompt]]]] = {
    "twig": _twig,
    "markdown": _markdown,
    "claude-command": _claude_command,
    "skill": _skill,
    "fabric": _fabric,
    "dotprompt": _dotprompt,
    "prompty": _prompty,
    "llm-template": _llm_template,
}
#: The names of all formats.
FORMATS: Final = tuple(_READERS)
