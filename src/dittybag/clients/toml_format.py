"""Entries of TOML configuration files: find, write and remove them, and change nothing else."""

from __future__ import annotations

import datetime as dt
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from dittybag.clients.client_errors import MalformedConfig
from dittybag.clients.config_format import MAX_DEPTH, EntryEdits, FoundEntry, detect_newline, line_number
from dittybag.clients.reversible_edits import TextEdit

#: A key with thousands of parts takes the TOML parser minutes.
_MAX_KEY_PARTS: Final = 50
#: An edit parses the text before and after it several times.
_CACHED_TEXTS: Final = 4

_BASIC: Final = r'"(?:[^"\\\r\n]++|\\.)*+"'
_LITERAL: Final = r"'[^'\r\n]*+'"
_BARE: Final = re.compile(r"[A-Za-z0-9_-]++")
_KEY_PART: Final = re.compile(rf"[ \t]*+([A-Za-z0-9_-]++|{_BASIC}|{_LITERAL})[ \t]*+(\.?)")
_GAP: Final = re.compile(r"(?:[ \t\r\n]++|#[^\r\n]*+)*+")
_VALUE_TOKEN: Final = re.compile(
    r'(?P<string>"""(?:[^"\\]++|\\(?s:.)|"{1,2}(?!"))*+"{3,5}'
    r"|'''(?:[^']++|'{1,2}(?!'))*+'{3,5}"
    rf"|{_BASIC}|{_LITERAL})"
    r"|(?P<comment>#[^\r\n]*+)|(?P<newline>\r\n|\n|\r)|(?P<open>[\[{])|(?P<close>[\]}])"
    r"|(?P<other>[^\"'#\r\n\[\]{}]++)"
)


class _Statement(Struct, frozen=True):
    """A table header, or a key with its value."""

    #: From the start of its first line to the start of the line after it.
    start: int
    end: int
    #: The name of the table that contains it; of a header, its own.
    table: tuple[str, ...]
    #: The full name of the table or key.
    path: tuple[str, ...]
    is_header: bool


class TomlFormat(Struct, frozen=True):
    """A TOML file in which the table `key` has a table for each entry."""

    key: str

    def entries(self, text: str) -> Mapping[str, Any]:
        entries = _load(text).get(self.key, {})
        if not isinstance(entries, dict):
            raise MalformedConfig(f"'{self.key}' is not a table")
        return entries

    def find(self, text: str, name: str) -> FoundEntry | None:
        entries = self.entries(text)
        if name not in entries:
            return None
        blocks = self._blocks(text, name)
        return FoundEntry(
            blocks[0].start, entries[name], "".join(text[edit.start : edit.end] for edit in blocks)
        )

    def write_edits(self, text: str, name: str, value: Mapping[str, Any]) -> EntryEdits:
        entries = self.entries(text)
        newline = detect_newline(text)
        if name in entries:
            first, *others = self._blocks(text, name)
            return EntryEdits(
                (TextEdit(first.start, first.end, self._replacement_text(text, name, value)), *others)
            )
        if any(statement.path == (self.key,) and not statement.is_header for statement in _statements(text)):
            raise MalformedConfig(f"'{self.key}' is an inline table, to which nothing can be added safely")
        gap = _gap_before(text, newline)
        return EntryEdits(
            (TextEdit(len(text), len(text), gap + self._format_table(name, value, newline)),),
            with_container=not entries,
        )

    def removal_edits(
        self, text: str, name: str, *, container: bool, root: bool
    ) -> Sequence[tuple[TextEdit, ...]]:
        blocks = self._blocks(text, name)
        last = blocks[-1]
        before = text[: last.start]
        clean = last
        if before.endswith(("\n\n", "\r\n\r\n")) and (
            last.end == len(text) or text.startswith(("\n", "\r\n"), last.end)
        ):
            clean = TextEdit(last.start - len(detect_newline(before[-4:])), last.end, "")
        return ((*blocks[:-1], clean), blocks)

    def restore_edits(self, text: str, name: str, source: str) -> tuple[TextEdit, ...]:
        first, *others = self._blocks(text, name)
        return (TextEdit(first.start, first.end, source), *others)

    def is_only_change(self, before: str, after: str, name: str, value: Mapping[str, Any]) -> bool:
        entries = {**self.entries(before), name: _load(_format_pair("x", value))["x"]}
        return bool(_load(after) == {**_load(before), self.key: entries})

    def is_unchanged_elsewhere(self, before: str, after: str, name: str) -> bool:
        return self._without(before, name) == self._without(after, name)

    def _without(self, text: str, name: str) -> dict[str, Any]:
        """The data of a text without an entry, and without the table of entries if that is empty then."""
        whole = _load(text)
        left = {other: value for other, value in self.entries(text).items() if other != name}
        others = {key: value for key, value in whole.items() if key != self.key}
        return {**others, self.key: left} if left else others

    def _blocks(self, text: str, name: str) -> tuple[TextEdit, ...]:
        """The edits that remove each block of an entry. Raises `MalformedConfig` if there is none."""
        blocks: list[TextEdit] = []
        continues_block = False
        for statement in _statements(text):
            if statement.path[:2] != (self.key, name):
                continues_block = False
            elif continues_block:
                blocks[-1] = TextEdit(blocks[-1].start, statement.end, "")
            else:
                blocks.append(TextEdit(statement.start, statement.end, ""))
                continues_block = True
        if not blocks:
            raise MalformedConfig(f"'{self.key}' is an inline table, which cannot be changed safely")
        return tuple(blocks)

    def _replacement_text(self, text: str, name: str, value: Mapping[str, Any]) -> str:
        """The text that replaces an entry: a table, or a line if the entry is one."""
        newline = detect_newline(text)
        first = next(statement for statement in _statements(text) if statement.path[:2] == (self.key, name))
        if first.is_header:
            return self._format_table(name, value, newline)
        own = ".".join(_format_key(part) for part in (self.key, name)[len(first.table) :])
        return f"{_format_pair(own, value)}{newline}"

    def _format_table(self, name: str, value: Mapping[str, Any], newline: str) -> str:
        lines = [
            f"[{self.key}.{_format_key(name)}]",
            *(_format_pair(_format_key(key), part) for key, part in value.items()),
        ]
        return "".join(f"{line}{newline}" for line in lines)


def _gap_before(text: str, newline: str) -> str:
    """The newlines needed for one blank line between a text and a table that is added to it."""
    if not text or text.endswith(("\n\n", "\r\n\r\n")):
        return ""
    return newline if text.endswith("\n") else newline * 2


@lru_cache(maxsize=_CACHED_TEXTS)
def _load(text: str) -> dict[str, Any]:
    for _ in _statements(text):
        # Check the limits first: tomllib has none.
        pass
    try:
        return tomllib.loads(text, parse_float=_parse_float)
    except ValueError as error:
        raise MalformedConfig(f"not valid TOML: {error}") from None
    except RecursionError:
        raise MalformedConfig("nested too deeply") from None


class _ReprFloat(float):
    """A float that is compared by its representation, so that NaN equals NaN."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and repr(self) == repr(other)

    __hash__ = float.__hash__


def _parse_float(literal: str) -> float:
    return _ReprFloat(literal)


def _statements(text: str) -> Iterator[_Statement]:
    """The statements of a text in order. Raises `MalformedConfig`."""
    table: tuple[str, ...] = ()
    end, at = 0, _after_gap(text, 0)
    while at < len(text):
        start = max(text.rfind("\n", end, at) + 1, text.rfind("\r", end, at) + 1, end)
        is_header = text[at] == "["
        if is_header:
            brackets = 2 if text.startswith("[[", at) else 1
            table, at = _dotted_key(text, at + brackets)
            path, closing = table, "]" * brackets
        else:
            own, at = _dotted_key(text, at)
            path, closing = table + own, "="
        if not text.startswith(closing, at):
            raise _syntax_error(text, at)
        end = _end_of_value(text, at + len(closing))
        yield _Statement(start, end, table, path, is_header)
        at = _after_gap(text, end)


def _after_gap(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


def _dotted_key(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Parse a dotted key. Returns its parts and its end."""
    parts: list[str] = []
    while match := _KEY_PART.match(text, at):
        parts.append(_unquote(match[1]))
        at = match.end()
        if len(parts) > _MAX_KEY_PARTS:
            raise MalformedConfig(f"a key has too many parts, line {line_number(text, at)}")
        if not match[2]:
            return tuple(parts), at
    raise _syntax_error(text, at)


def _unquote(source: str) -> str:
    if source[0] not in "\"'":
        return source
    try:
        return str(tomllib.loads(f"x = {source}")["x"])
    except ValueError as error:
        raise MalformedConfig(f"not valid TOML: {error}") from None


def _end_of_value(text: str, at: int) -> int:
    """The start of the line after a value or a header."""
    depth = 0
    while match := _VALUE_TOKEN.match(text, at):
        at = match.end()
        if match.lastgroup == "open":
            depth += 1
        elif match.lastgroup == "close":
            depth -= 1
        elif match.lastgroup == "newline" and depth <= 0:
            return at
        if depth > MAX_DEPTH:
            raise MalformedConfig("nested too deeply")
    if at < len(text) or depth > 0:
        raise _syntax_error(text, at)
    return at


def _syntax_error(text: str, at: int) -> MalformedConfig:
    return MalformedConfig(f"not valid TOML: unexpected character, line {line_number(text, at)}")


def _format_pair(key: str, value: Any) -> str:
    return f"{key} = {_format_value(value)}"


def _format_key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _format_string(name)


def _format_value(value: Any) -> str:
    match value:
        case str():
            return _format_string(value)
        case bool():
            return "true" if value else "false"
        case Mapping():
            inner = ", ".join(_format_pair(_format_key(key), part) for key, part in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case list():
            return f"[{', '.join(_format_value(part) for part in value)}]"
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            return repr(value)


def _format_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
