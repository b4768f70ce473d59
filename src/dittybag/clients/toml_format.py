"""Entries in a TOML file, edited without touching anything else in it."""

from __future__ import annotations

import datetime as dt
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from dittybag.clients.client_errors import Malformed
from dittybag.clients.config_format import MOST_DEPTH, Found, Put, line_of, newline_of
from dittybag.clients.reversible_edits import Cut

#: A key of thousands of parts keeps a parser busy for minutes.
_MOST_PARTS: Final = 50
#: An edit looks several times at the text before it and the text after it.
_TEXTS: Final = 4

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
    """A table's header, or a key with its value, on lines of its own."""

    #: From the beginning of its first line to the beginning of the next one.
    start: int
    end: int
    #: The header of the table it is in, or that it is.
    table: tuple[str, ...]
    #: The whole name of what it is about.
    path: tuple[str, ...]
    is_header: bool


class TomlFormat(Struct, frozen=True):
    """A TOML file in which the table `key` has a table for each entry."""

    key: str

    def entries(self, text: str) -> Mapping[str, Any]:
        entries = _loaded(text).get(self.key, {})
        if not isinstance(entries, dict):
            raise Malformed(f"its '{self.key}' is not a table")
        return entries

    def find(self, text: str, name: str) -> Found | None:
        entries = self.entries(text)
        if name not in entries:
            return None
        blocks = self._blocks(text, name)
        return Found(blocks[0].start, entries[name], "".join(text[cut.start : cut.end] for cut in blocks))

    def put(self, text: str, name: str, value: Mapping[str, Any]) -> Put:
        entries = self.entries(text)
        newline = newline_of(text)
        if name in entries:
            first, *others = self._blocks(text, name)
            return Put((Cut(first.start, first.end, self._again(text, name, value)), *others))
        if any(statement.path == (self.key,) and not statement.is_header for statement in _statements(text)):
            raise Malformed(f"its '{self.key}' is written on one line, where nothing can be added safely")
        gap = _gap_before(text, newline)
        return Put(
            (Cut(len(text), len(text), gap + self._table(name, value, newline)),),
            with_container=not entries,
        )

    def take(self, text: str, name: str, *, container: bool, root: bool) -> Sequence[tuple[Cut, ...]]:
        blocks = self._blocks(text, name)
        last = blocks[-1]
        before = text[: last.start]
        neat = last
        if before.endswith(("\n\n", "\r\n\r\n")) and (
            last.end == len(text) or text.startswith(("\n", "\r\n"), last.end)
        ):
            neat = Cut(last.start - len(newline_of(before[-4:])), last.end, "")
        return ((*blocks[:-1], neat), blocks)

    def give_back(self, text: str, name: str, written: str) -> tuple[Cut, ...]:
        first, *others = self._blocks(text, name)
        return (Cut(first.start, first.end, written), *others)

    def is_put(self, before: str, after: str, name: str, value: Mapping[str, Any]) -> bool:
        entries = {**self.entries(before), name: _loaded(_pair("x", value))["x"]}
        return bool(_loaded(after) == {**_loaded(before), self.key: entries})

    def is_same_elsewhere(self, before: str, after: str, name: str) -> bool:
        return self._without(before, name) == self._without(after, name)

    def _without(self, text: str, name: str) -> dict[str, Any]:
        """What a text says without an entry, nor the table of all entries if there are no others."""
        whole = _loaded(text)
        left = {other: value for other, value in self.entries(text).items() if other != name}
        others = {key: value for key, value in whole.items() if key != self.key}
        return {**others, self.key: left} if left else others

    def _blocks(self, text: str, name: str) -> tuple[Cut, ...]:
        """The pieces of a text that make up an entry. Raises `Malformed` if they cannot be told."""
        blocks: list[Cut] = []
        is_going_on = False
        for statement in _statements(text):
            if statement.path[:2] != (self.key, name):
                is_going_on = False
            elif is_going_on:
                blocks[-1] = Cut(blocks[-1].start, statement.end, "")
            else:
                blocks.append(Cut(statement.start, statement.end, ""))
                is_going_on = True
        if not blocks:
            raise Malformed(f"its '{self.key}' is written on one line, where nothing can be changed safely")
        return tuple(blocks)

    def _again(self, text: str, name: str, value: Mapping[str, Any]) -> str:
        """An entry in place of the one that is there: a table, or a line in the table it is in."""
        newline = newline_of(text)
        first = next(statement for statement in _statements(text) if statement.path[:2] == (self.key, name))
        if first.is_header:
            return self._table(name, value, newline)
        own = ".".join(_key(part) for part in (self.key, name)[len(first.table) :])
        return f"{_pair(own, value)}{newline}"

    def _table(self, name: str, value: Mapping[str, Any], newline: str) -> str:
        lines = [f"[{self.key}.{_key(name)}]", *(_pair(_key(key), part) for key, part in value.items())]
        return "".join(f"{line}{newline}" for line in lines)


def _gap_before(text: str, newline: str) -> str:
    """What stands between a text and a table that is added to it: one blank line."""
    if not text or text.endswith(("\n\n", "\r\n\r\n")):
        return ""
    return newline if text.endswith("\n") else newline * 2


@lru_cache(maxsize=_TEXTS)
def _loaded(text: str) -> dict[str, Any]:
    for _ in _statements(text):
        # The limits come first: the parser has none.
        pass
    try:
        return tomllib.loads(text, parse_float=_float)
    except ValueError as error:
        raise Malformed(f"it is not valid TOML: {error}") from None
    except RecursionError:
        raise Malformed("it is nested too deeply") from None


class _Float(float):
    """A number that is equal to itself, also where it is none."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and repr(self) == repr(other)

    __hash__ = float.__hash__


def _float(literal: str) -> float:
    return _Float(literal)


def _statements(text: str) -> Iterator[_Statement]:
    """What a text states, from top to bottom. Raises `Malformed`."""
    table: tuple[str, ...] = ()
    end, at = 0, _after_gap(text, 0)
    while at < len(text):
        start = max(text.rfind("\n", end, at) + 1, text.rfind("\r", end, at) + 1, end)
        is_header = text[at] == "["
        if is_header:
            brackets = 2 if text.startswith("[[", at) else 1
            table, at = _path(text, at + brackets)
            path, closing = table, "]" * brackets
        else:
            own, at = _path(text, at)
            path, closing = table + own, "="
        if not text.startswith(closing, at):
            raise _misplaced(text, at)
        end = _end_of_value(text, at + len(closing))
        yield _Statement(start, end, table, path, is_header)
        at = _after_gap(text, end)


def _after_gap(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


def _path(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """A dotted key, and where it ends."""
    parts: list[str] = []
    while match := _KEY_PART.match(text, at):
        parts.append(_part(match[1]))
        at = match.end()
        if len(parts) > _MOST_PARTS:
            raise Malformed(f"it has a key of too many parts, line {line_of(text, at)}")
        if not match[2]:
            return tuple(parts), at
    raise _misplaced(text, at)


def _part(written: str) -> str:
    if written[0] not in "\"'":
        return written
    try:
        return str(tomllib.loads(f"x = {written}")["x"])
    except ValueError as error:
        raise Malformed(f"it is not valid TOML: {error}") from None


def _end_of_value(text: str, at: int) -> int:
    """Where the line begins that follows a value, or what is left of a header."""
    depth = 0
    while match := _VALUE_TOKEN.match(text, at):
        at = match.end()
        if match.lastgroup == "open":
            depth += 1
        elif match.lastgroup == "close":
            depth -= 1
        elif match.lastgroup == "newline" and depth <= 0:
            return at
        if depth > MOST_DEPTH:
            raise Malformed("it is nested too deeply")
    if at < len(text) or depth > 0:
        raise _misplaced(text, at)
    return at


def _misplaced(text: str, at: int) -> Malformed:
    return Malformed(f"it is not valid TOML: something is out of place, line {line_of(text, at)}")


def _pair(key: str, value: Any) -> str:
    return f"{key} = {_value(value)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _value(value: Any) -> str:
    match value:
        case str():
            return _string(value)
        case bool():
            return "true" if value else "false"
        case Mapping():
            inner = ", ".join(_pair(_key(key), part) for key, part in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case list():
            return f"[{', '.join(_value(part) for part in value)}]"
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            return repr(value)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
