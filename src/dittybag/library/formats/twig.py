"""Twig's libraries: a `twig.toml` that lists the prompts, whose texts are `prompts/KEY.md`.

A prompt is a table `[prompts.KEY]` with a `description` and any number of `[[prompts.KEY.arguments]]` with
`name`, `description` and `required` (false unless it says true). Its text is a Jinja template. A prompt
that is not described properly is left out and the others stay; a file that is not TOML has no prompts at
all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from dittybag.domain.errors import clip
from dittybag.domain.prompts import MAX_ARGUMENTS, Argument
from dittybag.library.formats.argument_declarations import usable
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.prompt_names import KEY_LENGTH
from dittybag.library.formats.summary_text import described

_POSITION: Final = re.compile(r" at line (\d+) column \d+")
_KEY_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff/\\:]")
_HEADER: Final = re.compile(
    r"[ \t]*(\[{1,2}[ \t]*(?:prompts|\"prompts\"|'prompts')[ \t]*\.[^#\r\n]{1,1000}?\]{1,2})"
)
_MEMBERS: Final = frozenset({"description", "arguments"})
_ARGUMENT_MEMBERS: Final = frozenset({"name", "description", "required"})


def read(content: str, notes: Diagnostics) -> Iterator[ParsedPrompt]:
    """The prompts that a `twig.toml` lists."""
    import rtoml

    try:
        tables = rtoml.loads(content)
    except (rtoml.TomlParsingError, UnicodeError) as error:
        found = _POSITION.search(str(error))
        message = _POSITION.sub("", str(error))
        notes.error(f"Not valid TOML: {message}", int(found[1]) if found else None)
        return
    prompts = tables.get("prompts", {})
    if not isinstance(prompts, dict):
        notes.error("'prompts' must be a table; write [prompts.NAME] for each prompt")
        return
    lines = _Lines(content)
    for key, table in prompts.items():
        try:
            yield _One(key, notes, lines).draft(table)
        except _Refused as refusal:
            notes.error(str(refusal), lines.of(key))


class _Lines:
    """Where the prompts stand in a manifest: the parser does not tell, and finding out takes its time."""

    def __init__(self, content: str) -> None:
        self._content = content
        self._found: dict[str, int] | None = None

    def of(self, key: str) -> int | None:
        """The line of a prompt's first header."""
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


class _Refused(Exception):
    """Something is wrong with a prompt, which is left out; it does not leave this module."""


class _One:
    """A prompt that is being read."""

    def __init__(self, key: str, notes: Diagnostics, lines: _Lines) -> None:
        self._key = key
        self._shown = clip(key, 60)
        self._notes = notes
        self._lines = lines

    def draft(self, table: Any) -> ParsedPrompt:
        if problem := _key_problem(self._key):
            self._refuse(problem)
        if not isinstance(table, dict):
            self._refuse(f"must be a table; write [prompts.{self._shown}]")
        self._warn_unknown(table, _MEMBERS, "")
        description = table.get("description")
        if description is not None and not isinstance(description, str):
            self._refuse("'description' must be text")
        return ParsedPrompt(
            key=self._key,
            description=described(description),
            arguments=self._arguments(table.get("arguments", [])),
            template=True,
            file=f"prompts/{self._key}.md",
        )

    def _arguments(self, listed: Any) -> tuple[Argument, ...]:
        if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
            self._refuse(f"'arguments' must be tables; write [[prompts.{self._shown}.arguments]]")
        if len(listed) > MAX_ARGUMENTS:
            self._refuse(f"there are {len(listed)} arguments; at most {MAX_ARGUMENTS} are allowed")
        arguments: dict[str, Argument] = {}
        for number, table in enumerate(listed, 1):
            argument = self._argument(number, table)
            if argument.name in arguments:
                self._refuse(f"argument '{clip(argument.name, 60)}' is declared twice")
            arguments[argument.name] = argument
        return tuple(arguments.values())

    def _argument(self, number: int, table: dict[str, Any]) -> Argument:
        name = table.get("name")
        if not isinstance(name, str) or not name.strip():
            self._refuse(f"argument {number} has no 'name'")
        shown = clip(name, 60)
        description, required = table.get("description"), table.get("required", False)
        if description is not None and not isinstance(description, str):
            self._refuse(f"argument '{shown}': 'description' must be text")
        if not isinstance(required, bool):
            self._refuse(f"argument '{shown}': 'required' must be true or false")
        self._warn_unknown(table, _ARGUMENT_MEMBERS, f"argument '{shown}': ")
        if not usable(name):
            self._warn(f"argument '{shown}': a template cannot use such a name; write letters, digits and _")
        return Argument(name=name, description=described(description), required=required)

    def _warn_unknown(self, table: dict[str, Any], known: frozenset[str], where: str) -> None:
        for member in table:
            if member not in known:
                allowed = ", ".join(sorted(known))
                self._warn(f"{where}'{clip(member, 60)}' is not known here (typo?); known: {allowed}")

    def _refuse(self, message: str) -> NoReturn:
        raise _Refused(f"Prompt '{self._shown}': {message}")

    def _warn(self, message: str) -> None:
        self._notes.warning(f"Prompt '{self._shown}': {message}", self._lines.of(self._key))


def _key_problem(key: str) -> str | None:
    if not key.strip() or key.startswith(".") or len(key) > KEY_LENGTH or _KEY_FORBIDDEN.search(key):
        return (
            f"its name must be usable as a file name: 1-{KEY_LENGTH} characters, not starting with '.', "
            "without / \\ : and control characters"
        )
    return None
