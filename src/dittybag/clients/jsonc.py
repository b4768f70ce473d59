"""JSON with comments and trailing commas: what a text says, and where its members stand."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from dittybag.clients.client_errors import Malformed
from dittybag.clients.config_format import MOST_DEPTH, line_of

_STRING: Final = r'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"'
_COMMENT: Final = r"//[^\r\n]*+|/\*(?s:.*?)\*/"
#: Also one that never ends: a search would try again and again to find its end.
_ANY_COMMENT: Final = r"//[^\r\n]*+|/\*(?s:.*?)(?:\*/|\Z)"
_TOKEN: Final = re.compile(
    rf"(?P<gap>[ \t\r\n]++|{_COMMENT})|(?P<string>{_STRING})|(?P<mark>[{{}}\[\]:,])|(?P<word>[\w.+-]++)"
)
_NESTED: Final = re.compile(rf"{_STRING}|{_ANY_COMMENT}|[{{}}\[\]]")
_COMMENTS: Final = re.compile(rf"{_STRING}|({_ANY_COMMENT})")
_COMMAS: Final = re.compile(rf"{_STRING}|(,(?=[ \t\r\n]*+[}}\]]))")
#: An edit looks several times at the text before it and the text after it.
_TEXTS: Final = 4
_BLANK: Final = " \t\r\n"
#: The deepest objects whose members are of interest.
_LEVELS: Final = 2


class Member(Struct, frozen=True):
    """A key with its value, and where they stand."""

    key: str
    start: int
    value_start: int
    end: int
    #: Where the comma after it is, if there is one.
    comma: int | None
    #: The value, if it is an object that is not too deep down.
    value: Object | None


class Object(Struct, frozen=True):
    """An object, from its brace to its brace."""

    start: int
    end: int
    members: tuple[Member, ...]


class Gap(Struct, frozen=True):
    """White space or a comment."""

    start: int
    end: int
    is_comment: bool


@lru_cache(maxsize=_TEXTS)
def scanned(text: str) -> Object | None:
    """The object that a text is; nothing if it has only comments or nothing in it. Raises `Malformed`."""
    scanner = _Scanner(text)
    kind, start, end = scanner.next()
    if kind == "end":
        return None
    if text[start:end] != "{":
        raise Malformed("it is not a JSON object")
    root = scanner.object(start, 1)
    kind, start, end = scanner.next()
    if kind != "end":
        raise scanner.unexpected(start, end)
    said(text)
    return root


@lru_cache(maxsize=_TEXTS)
def said(text: str) -> Any:
    """What a text says, so that two of them can be compared; objects are tuples of pairs. Raises `Malformed`.

    Whoever asks must have scanned the text, which has a limit for the depth.
    """
    begin = text.lstrip(_BLANK)
    if not begin or (begin[0] == "/" and not _bare(text).strip(_BLANK)):
        return ()
    return _loaded(text, object_pairs_hook=tuple, parse_int=_number, parse_float=_number)


def value_of(text: str) -> Any:
    """A value as Python has it. Raises `Malformed`."""
    return _loaded(text)


def gaps(text: str, start: int, end: int) -> list[Gap]:
    """The white space and the comments that stand between two positions, with nothing else between them."""
    found: list[Gap] = []
    while start < end:
        match = _TOKEN.match(text, start, end)
        if match is None or match.lastgroup != "gap":
            break
        found.append(Gap(start, match.end(), is_comment=text[start] == "/"))
        start = match.end()
    return found


def _loaded(text: str, **how: Any) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant, **how)
    except ValueError:
        pass
    except RecursionError:
        raise Malformed("it is nested too deeply") from None
    try:
        return json.loads(_strict(text), parse_constant=_no_constant, **how)
    except json.JSONDecodeError as error:
        raise Malformed(f"it is not valid JSON: {error.msg}, line {line_of(text, error.pos)}") from None
    except ValueError as error:
        raise Malformed(f"it is not valid JSON: {error}") from None


def _number(literal: str) -> Any:
    # As it is written: a number may be larger than anything that could be computed with.
    return ("number", literal)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _strict(text: str) -> str:
    """The same text without comments and trailing commas, every other character at its place."""
    return _COMMAS.sub(lambda match: " " if match[1] else match[0], _bare(text))


def _bare(text: str) -> str:
    return _COMMENTS.sub(lambda match: re.sub(r"[^\r\n]", " ", match[1]) if match[1] else match[0], text)


class _Scanner:
    """Goes through a text, token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def next(self) -> tuple[str, int, int]:
        """The kind of the next token that means something, and where it begins and ends."""
        while match := _TOKEN.match(self._text, self._at):
            self._at = match.end()
            if match.lastgroup != "gap":
                return str(match.lastgroup), match.start(), match.end()
        if self._at < len(self._text):
            raise self.unexpected(self._at, self._at + 1)
        return "end", self._at, self._at

    def object(self, start: int, level: int) -> Object:
        """The object whose brace was just read."""
        members: list[Member] = []
        while True:
            kind, at, end = self.next()
            if self._text[at:end] == "}":
                return Object(start, end, tuple(members))
            if kind != "string" or (members and members[-1].comma is None):
                raise self.unexpected(at, end)
            members.append(self._member(at, end, level))

    def _member(self, start: int, key_end: int, level: int) -> Member:
        text = self._text
        _, at, end = self.next()
        if text[at:end] != ":":
            raise self.unexpected(at, end)
        kind, value_start, value_end = self.next()
        value = None
        if text[value_start:value_end] == "{" and level < _LEVELS:
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
        return Member(
            key=str(value_of(text[start:key_end])),
            start=start,
            value_start=value_start,
            end=value_end,
            comma=comma if text[comma:end] == "," else None,
            value=value,
        )

    def _skip(self, start: int, level: int) -> int:
        """Where the object or the list ends that begins here."""
        depth = 0
        for match in _NESTED.finditer(self._text, start):
            mark = match[0]
            if mark in ("{", "["):
                depth += 1
                if depth + level > MOST_DEPTH:
                    raise Malformed("it is nested too deeply")
            elif mark in ("}", "]"):
                depth -= 1
                if depth == 0:
                    self._at = match.end()
                    return self._at
        raise self.unexpected(len(self._text), len(self._text))

    def unexpected(self, start: int, end: int) -> Malformed:
        what = "it ends too early" if start >= len(self._text) else "something is out of place"
        return Malformed(f"it is not valid JSON: {what}, line {line_of(self._text, start)}")
