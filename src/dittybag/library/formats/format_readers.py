"""Readers: what each format makes of a file's content."""

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
from dittybag.library.formats.front_matter import FrontMatterDocument, read_document
from dittybag.library.formats.parsed_prompt import ParsedFile, ParsedPrompt
from dittybag.library.formats.prompt_names import key_of, key_problem


def reading(format: str, file: str, content: str) -> ParsedFile:
    """What is in a file of this format; never raises, whatever that is."""
    notes = Diagnostics(file)
    drafts: Iterable[ParsedPrompt] = ()
    content = content.removeprefix("\ufeff")
    key = "" if format == "twig" else key_of(format, file)
    if format not in _READERS:
        notes.error(f"There is no format '{clip(format, 60)}'")
    elif not content.strip():
        notes.warning("The file is empty")
    elif format != "twig" and (key or format != "skill") and (problem := key_problem(key)):
        notes.error(f"This cannot be a prompt: {problem}; rename it")
    else:
        drafts = _READERS[format](file, key, content, notes)
    return ParsedFile(drafts=tuple(drafts), problems=notes.problems)


def _twig(file: str, key: str, content: str, notes: Diagnostics) -> Iterable[ParsedPrompt]:
    return list(twig.read(content, notes))


def _llm_template(file: str, key: str, content: str, notes: Diagnostics) -> Iterable[ParsedPrompt]:
    return list(llm_template.read(file, key, content, notes))


def _fabric(file: str, key: str, content: str, notes: Diagnostics) -> Iterable[ParsedPrompt]:
    return [fabric.draft(file, key, content, notes)]


def _markdown(file: str, key: str, content: str, notes: Diagnostics) -> Iterable[ParsedPrompt]:
    document = read_document(content, notes)
    is_command = claude_command.has_signs(document) and not claude_command.is_jinja(document, notes)
    return _with_text(claude_command.draft if is_command else markdown.draft, file, key, document, notes)


def _claude_command(file: str, key: str, content: str, notes: Diagnostics) -> Iterable[ParsedPrompt]:
    document = read_document(content, notes)
    is_jinja = claude_command.is_jinja(document, notes)
    return _with_text(markdown.draft if is_jinja else claude_command.draft, file, key, document, notes)


def _skill(file: str, key: str, content: str, notes: Diagnostics) -> Iterable[ParsedPrompt]:
    return _with_text(skill.draft, file, key, read_document(content, notes), notes)


def _dotprompt(file: str, key: str, content: str, notes: Diagnostics) -> Iterable[ParsedPrompt]:
    return _with_text(dotprompt.draft, file, key, read_document(content, notes, comments_first=True), notes)


def _prompty(file: str, key: str, content: str, notes: Diagnostics) -> Iterable[ParsedPrompt]:
    return _with_text(prompty.draft, file, key, read_document(content, notes), notes)


def _with_text(
    draft: Callable[[str, str, FrontMatterDocument, Diagnostics], ParsedPrompt | None],
    file: str,
    key: str,
    document: FrontMatterDocument,
    notes: Diagnostics,
) -> Iterable[ParsedPrompt]:
    if not document.body.strip():
        notes.warning("There is no text below the front matter")
        return ()
    made = draft(file, key, document, notes)
    return () if made is None else (made,)


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
