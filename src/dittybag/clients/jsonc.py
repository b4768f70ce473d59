"""A parser for JSON with comments and trailing commas that keeps the positions of members."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from dittybag.clients.client_errors import MalformedConfig
from dittybag.clients.config_format import MAX_DEPTH, line_number

_STRING: Final = r'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"'
_COMMENT: Final = r"//[^\r\n]*+|/\*(?s:.*?)\*/"
#: Includes an unterminated comment: otherwise each search would scan to the end of the text again.
_ANY_COMMENT: Final = r"//[^\r\n]*+|/\*(?s:.*?)(?:\*/|\Z)"
_TOKEN: Final = re.compile(
    rf"(?P<gap>[ \t\r\n]++|{_COMMENT})|(?P<string>{_STRING})|(?P<mark>[{{}}\[\]:,])|(?P<word>[\w.+-]++)"
)
_NESTED: Final = re.compile(rf"{_STRING}|{_ANY_COMMENT}|[{{}}\[\]]")
_COMMENTS: Final = re.compile(rf"{_STRING}|({_ANY_COMMENT})")
_COMMAS: Final = re.compile(rf"{_STRING}|(,(?=[ \t\r\n]*+[}}\]]))")
#: An edit parses the text before and after it several times.
_CACHED_TEXTS: Final = 4
_BLANK: Final = " \t\r\n"
#: Members of objects nested deeper than this are not parsed.
_MAX_LEVELS: Final = 2


class JsonMember(Struct, frozen=True):
    """A key and its value, with their positions."""

    key: str
    start: int
    value_start: int
    end: int
    #: The position of the comma after it, or `None`.
    comma: int | None
    #: The value if it is an object within the first levels, otherwise `None`.
    value: JsonObject | None


class JsonObject(Struct, frozen=True):
    """An object, from its opening to its closing brace."""

    start: int
    end: int
    members: tuple[JsonMember, ...]


class Gap(Struct, frozen=True):
    """White space or a comment between tokens."""

    start: int
    end: int
    is_comment: bool


@lru_cache(maxsize=_CACHED_TEXTS)
def scan(text: str) -> JsonObject | None:
    """Parse a text to an object; `None` if it is empty except for comments. Raises `MalformedConfig`."""
    scanner = _Scanner(text)
    kind, start, end = scanner.next()
    if kind == "end":
        return None
    if text[start:end] != "{":
        raise MalformedConfig("not a JSON object")
    root = scanner.object(start, 1)
    kind, start, end = scanner.next()
    if kind != "end":
        raise scanner.unexpected(start, end)
    comparable_value(text)
    return root


@lru_cache(maxsize=_CACHED_TEXTS)
def comparable_value(text: str) -> Any:
    """Parse a text to a value that can be compared; objects become tuples of pairs.

    Call `scan` first: it limits the depth. Raises `MalformedConfig`.
    """
    begin = text.lstrip(_BLANK)
    if not begin or (begin[0] == "/" and not _blank_comments(text).strip(_BLANK)):
        return ()
    return _load(text, object_pairs_hook=tuple, parse_int=_number, parse_float=_number)


def parse_value(text: str) -> Any:
    """Parse a text to a Python value. Raises `MalformedConfig`."""
    return _load(text)


def gaps(text: str, start: int, end: int) -> list[Gap]:
    """The white space and comments from `start` to the next token, or to `end`."""
    found: list[Gap] = []
    while start < end:
        match = _TOKEN.match(text, start, end)
        if match is None or match.lastgroup != "gap":
            break
        found.append(Gap(start, match.end(), is_comment=text[start] == "/"))
        start = match.end()
    return found


def _load(text: str, **options: Any) -> Any:
    try:
        return json.loads(text, parse_constant=_reject_constant, **options)
    except ValueError:
        pass
    except RecursionError:
        raise MalformedConfig("nested too deeply") from None
    try:
        return json.loads(_to_strict_json(text), parse_constant=_reject_constant, **options)
    except json.JSONDecodeError as error:
        line = line_number(text, error.pos)
        raise MalformedConfig(f"not valid JSON: {error.msg}, line {line}") from None
    except ValueError as error:
        raise MalformedConfig(f"not valid JSON: {error}") from None


def _number(literal: str) -> Any:
    # Kept as text: a number may be too large or too precise for Python's types.
    return ("number", literal)


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a valid number")


def _to_strict_json(text: str) -> str:
    """Replace comments and trailing commas with spaces, so that positions stay the same."""
    return _COMMAS.sub(lambda match: " " if match[1] else match[0], _blank_comments(text))


def _blank_comments(text: str) -> str:
    return _COMMENTS.sub(lambda match: re.sub(r"[^\r\n]", " ", match[1]) if match[1] else match[0], text)


class _Scanner:
    """A recursive-descent parser over tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def next(self) -> tuple[str, int, int]:
        """The kind, start and end of the next token that is not white space or a comment."""
        while match := _TOKEN.match(self._text, self._at):
            self._at = match.end()
            if match.lastgroup != "gap":
                return str(match.lastgroup), match.start(), match.end()
        if self._at < len(self._text):
            raise self.unexpected(self._at, self._at + 1)
        return "end", self._at, self._at

    def object(self, start: int, level: int) -> JsonObject:
        """Parse the object whose opening brace was just read."""
        members: list[JsonMember] = []
        while True:
            kind, at, end = self.next()
            if self._text[at:end] == "}":
                return JsonObject(start, end, tuple(members))
            if kind != "string" or (members and members[-1].comma is None):
                raise self.unexpected(at, end)
            members.append(self._member(at, end, level))

    def _member(self, start: int, key_end: int, level: int) -> JsonMember:
        text = self._text
        _, at, end = self.next()
        if text[at:end] != ":":
            raise self.unexpected(at, end)
        kind, value_start, value_end = self.next()
        value = None
        if text[value_start:value_end] == "{" and level < _MAX_LEVELS:
            value = self.object(value_start, level + 1)
            value_end = value.end
        elif text[value_start:value_end] in ("{", "["):
            value_end = self._skip(value_start, level)
        elif kind not in ("string", "word"):
            raise self.unexpected(value_start, value_end)
        before = self._at
        _, comma, end = self.next()
        if text[comma:end] != ",":
            self._at = before
        return JsonMember(
            key=str(parse_value(text[start:key_end])),
            start=start,
            value_start=value_start,
            end=value_end,
            comma=comma if text[comma:end] == "," else None,
            value=value,
        )

    def _skip(self, start: int, level: int) -> int:
        """Skip the object or array that starts here. Returns its end."""
        depth = 0
        for match in _NESTED.finditer(self._text, start):
            mark = match[0]
            if mark in ("{", "["):
                depth += 1
                if depth + level > MAX_DEPTH:
                    raise MalformedConfig("nested too deeply")
            elif mark in ("}", "]"):
                depth -= 1
                if depth == 0:
                    self._at = match.end()
                    return self._at
        raise self.unexpected(len(self._text), len(self._text))

    def unexpected(self, start: int, end: int) -> MalformedConfig:
        what = "unexpected end" if start >= len(self._text) else "unexpected character"
        return MalformedConfig(f"not valid JSON: {what}, line {line_number(self._text, start)}")
