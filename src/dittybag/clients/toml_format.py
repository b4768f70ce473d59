"""Entries of TOML configuration files, as tables with headers of their own."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from dittybag.clients.client_errors import MalformedConfig
from dittybag.clients.config_format import detect_newline, line_number

#: A key with thousands of parts takes the parser minutes.
_LONG_KEY: Final = re.compile(
    r"^[ \t]*+\[{0,2}+(?:[ \t]*+(?:[\w-]++|\"[^\"\r\n]*+\"|'[^'\r\n]*+')[ \t]*+\.){50}", re.MULTILINE
)
#: Texts over several lines, in the first group, and whatever may contain their quotation marks.
_TEXTS: Final = re.compile(
    r"""("{3}(?:[^\\]|\\.)*?"{3,5}|'{3}.*?'{3,5})|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*""", re.DOTALL
)
_HEADER: Final = re.compile(r"^[ \t]*\[[^\n]*", re.MULTILINE)
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
#: An edit parses the text before and after it several times.
_CACHED_TEXTS: Final = 4


class TomlFormat(Struct, frozen=True):
    """A TOML file in which the table `key` has a table for each entry."""

    key: str

    def entries(self, text: str) -> Mapping[str, Any]:
        entries = _load(text).get(self.key, {})
        if not isinstance(entries, dict):
            raise MalformedConfig(f"'{self.key}' is not a table")
        return entries

    def write(self, text: str, name: str, value: Mapping[str, Any]) -> str:
        newline = detect_newline(text)
        header = f"[{_format_key(self.key)}.{_format_key(name)}]"
        lines = [header, *(_format_pair(key, part) for key, part in value.items())]
        table = "".join(f"{line}{newline}" for line in lines)
        if name in self.entries(text):
            (start, end), *others = self._blocks(text, name)
            for first, last in reversed(others):
                text = text[:first] + text[last:]
            return text[:start] + table + text[end:]
        gap = "" if not text or text.endswith(("\n\n", "\r\n\r\n")) else newline
        after = f"{text}{'' if not text or text.endswith(newline) else newline}{gap}{table}"
        try:
            _load(after)
        except MalformedConfig:
            raise MalformedConfig(
                f"'{self.key}' is an inline table, which cannot be changed safely"
            ) from None
        return after

    def remove(self, text: str, name: str) -> str:
        """Remove an entry, and one of two blank lines that would meet. Comments after it stay."""
        newline = detect_newline(text)
        for start, end in reversed(self._blocks(text, name)):
            before, after = text[:start], text[end:]
            if before.endswith(newline * 2) and (not after or after.startswith(newline)):
                before = before.removesuffix(newline)
            text = before + after
        return text

    def rest(self, text: str, name: str) -> dict[str, Any]:
        left = {other: value for other, value in self.entries(text).items() if other != name}
        others = {key: value for key, value in _load(text).items() if key != self.key}
        return {**others, self.key: left} if left else others

    def _blocks(self, text: str, name: str) -> list[tuple[int, int]]:
        """The spans of the table of an entry and of the tables in it, without comments at their end."""
        blocks = []
        headers = [*_headers(text), (len(text), ())]
        for (start, path), (following, _) in pairwise(headers):
            if path[:2] != (self.key, name):
                continue
            lines = _LINE.findall(text, start, following)
            while not lines[-1].strip() or lines[-1].lstrip().startswith("#"):
                del lines[-1]
            blocks.append((start, start + sum(map(len, lines))))
        if not blocks:
            raise MalformedConfig(f"'{name}' has no header of its own; change it manually")
        return blocks


def _headers(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield where each table begins, and its name."""
    plain = _TEXTS.sub(lambda found: re.sub(r"[^\n]", "x", found[0]) if found[1] else found[0], text)
    for line in _HEADER.finditer(plain):
        if path := _path(line[0].rstrip()):
            yield line.start(), path


def _path(line: str) -> tuple[str, ...]:
    """The name of the table whose header a line is; empty if it is not a header."""
    try:
        data: Any = tomllib.loads(line)
    except ValueError:
        return ()
    path = []
    while isinstance(data, dict) and data:
        ((key, data),) = data.items()
        path.append(key)
    return tuple(path)


@lru_cache(maxsize=_CACHED_TEXTS)
def _load(text: str) -> dict[str, Any]:
    if long := _LONG_KEY.search(text):
        raise MalformedConfig(f"a key has too many parts, line {line_number(text, long.start())}")
    try:
        return tomllib.loads(text, parse_float=_ReprFloat)
    except ValueError as error:
        raise MalformedConfig(f"not valid TOML: {error}") from None
    except RecursionError:
        raise MalformedConfig("nested too deeply") from None


class _ReprFloat(float):
    """A float that is compared by its representation, so that NaN equals NaN."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and repr(self) == repr(other)

    __hash__ = float.__hash__


def _format_pair(key: str, value: Any) -> str:
    return f"{_format_key(key)} = {_format_value(value)}"


def _format_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _format_value(key)


def _format_value(value: Any) -> str:
    """Format a value on one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_format_pair(key, part) for key, part in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, str):
        # JSON allows this character, TOML does not.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value) if isinstance(value, float) else json.dumps(value)
