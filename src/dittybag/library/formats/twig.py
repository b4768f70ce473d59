"""Twig libraries: a `twig.toml` that lists the prompts, with templates in `prompts/KEY.md`.

A prompt is a table `[prompts.KEY]` with a `description` and any number of `[[prompts.KEY.arguments]]` with
`name`, `description` and `required` (default: false). Its text is a Jinja template. An invalid prompt is
skipped without affecting the others; a file that is not valid TOML has no prompts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from dittybag.domain.errors import clip
from dittybag.domain.prompts import MAX_ARGUMENTS, Argument
from dittybag.library.formats.argument_declarations import is_usable_name
from dittybag.library.formats.parsed_prompt import Diagnostics, ParsedPrompt
from dittybag.library.formats.prompt_names import MAX_KEY_LENGTH
from dittybag.library.formats.summary_text import normalise_description

_POSITION: Final = re.compile(r" at line (\d+) column \d+")
_KEY_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff/\\:]")
_HEADER: Final = re.compile(
    r"[ \t]*(\[{1,2}[ \t]*(?:prompts|\"prompts\"|'prompts')[ \t]*\.[^#\r\n]{1,1000}?\]{1,2})"
)
_FIELDS: Final = frozenset({"description", "arguments"})
_ARGUMENT_FIELDS: Final = frozenset({"name", "description", "required"})


def read(content: str, diagnostics: Diagnostics) -> Iterator[ParsedPrompt]:
    """Parse the prompts of a `twig.toml`."""
    import rtoml

    try:
        tables = rtoml.loads(content)
    except (rtoml.TomlParsingError, UnicodeError) as error:
        found = _POSITION.search(str(error))
        message = _POSITION.sub("", str(error))
        diagnostics.error(f"Not valid TOML: {message}", int(found[1]) if found else None)
        return
    prompts = tables.get("prompts", {})
    if not isinstance(prompts, dict):
        diagnostics.error("'prompts' must be a table; write [prompts.NAME] for each prompt")
        return
    lines = _HeaderLines(content)
    for key, table in prompts.items():
        try:
            yield _PromptParser(key, diagnostics, lines).parse(table)
        except _InvalidPrompt as error:
            diagnostics.error(str(error), lines.line_of(key))


class _HeaderLines:
    """Line numbers of the prompts in a manifest, computed on first use because the parser has none."""

    def __init__(self, content: str) -> None:
        self._content = content
        self._found: dict[str, int] | None = None

    def line_of(self, key: str) -> int | None:
        """The line of a prompt's first header; None if it is not found."""
        if self._found is None:
            self._found = _header_lines(self._content)
        return self._found.get(key)


def _header_lines(content: str) -> dict[str, int]:
    import rtoml

    lines: dict[str, int] = {}
    for number, line in enumerate(content.split("\n"), 1):
        if found := _HEADER.match(line):
            try:
                keys = rtoml.loads(found[1])["prompts"]
            except (rtoml.TomlParsingError, UnicodeError, KeyError):
                continue
            for key in keys:
                lines.setdefault(key, number)
    return lines


class _InvalidPrompt(Exception):
    """A prompt is invalid and is skipped; it does not leave this module."""


class _PromptParser:
    """Parses the table of one prompt."""

    def __init__(self, key: str, diagnostics: Diagnostics, lines: _HeaderLines) -> None:
        self._key = key
        self._shown = clip(key, 60)
        self._notes = diagnostics
        self._lines = lines

    def parse(self, table: Any) -> ParsedPrompt:
        if problem := _key_problem(self._key):
            self._fail(problem)
        if not isinstance(table, dict):
            self._fail(f"must be a table; write [prompts.{self._shown}]")
        self._warn_unknown(table, _FIELDS, "")
        description = table.get("description")
        if description is not None and not isinstance(description, str):
            self._fail("'description' must be text")
        return ParsedPrompt(
            key=self._key,
            description=normalise_description(description),
            arguments=self._arguments(table.get("arguments", [])),
            template=True,
            file=f"prompts/{self._key}.md",
        )

    def _arguments(self, listed: Any) -> tuple[Argument, ...]:
        if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
            self._fail(f"'arguments' must be tables; write [[prompts.{self._shown}.arguments]]")
        if len(listed) > MAX_ARGUMENTS:
            self._fail(f"there are {len(listed)} arguments; at most {MAX_ARGUMENTS} are allowed")
        arguments: dict[str, Argument] = {}
        for number, table in enumerate(listed, 1):
            argument = self._argument(number, table)
            if argument.name in arguments:
                self._fail(f"argument '{clip(argument.name, 60)}' is declared twice")
            arguments[argument.name] = argument
        return tuple(arguments.values())

    def _argument(self, number: int, table: dict[str, Any]) -> Argument:
        name = table.get("name")
        if not isinstance(name, str) or not name.strip():
            self._fail(f"argument {number} has no 'name'")
        shown = clip(name, 60)
        description, required = table.get("description"), table.get("required", False)
        if description is not None and not isinstance(description, str):
            self._fail(f"argument '{shown}': 'description' must be text")
        if not isinstance(required, bool):
            self._fail(f"argument '{shown}': 'required' must be true or false")
        self._warn_unknown(table, _ARGUMENT_FIELDS, f"argument '{shown}': ")
        if not is_usable_name(name):
            self._warn(
                f"argument '{shown}': its name cannot be used in a template; use letters, digits and _"
            )
        return Argument(name=name, description=normalise_description(description), required=required)

    def _warn_unknown(self, table: dict[str, Any], known: frozenset[str], where: str) -> None:
        for field in table:
            if field not in known:
                allowed = ", ".join(sorted(known))
                self._warn(
                    f"{where}'{clip(field, 60)}' is not a known field (typo?); known fields: {allowed}"
                )

    def _fail(self, message: str) -> NoReturn:
        raise _InvalidPrompt(f"Prompt '{self._shown}': {message}")

    def _warn(self, message: str) -> None:
        self._notes.warning(f"Prompt '{self._shown}': {message}", self._lines.line_of(self._key))


def _key_problem(key: str) -> str | None:
    if not key.strip() or key.startswith(".") or len(key) > MAX_KEY_LENGTH or _KEY_FORBIDDEN.search(key):
        return (
            f"its name must be a valid file name: 1-{MAX_KEY_LENGTH} characters, not starting with '.', "
            "without / \\ : and control characters"
        )
    return None
