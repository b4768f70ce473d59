"""Entries of TOML configuration files: find, write and remove them, and change nothing else.

tomlkit finds the lines of an entry and formats a new one; the edit itself is a splice of the text. tomlkit
does not reproduce every file: it moves a table that is separated from its siblings by an array of tables. In
such a file an entry is only found if it has headers of its own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from dittybag.clients.client_errors import MalformedConfig
from dittybag.clients.config_format import EntryEdits, FoundEntry, detect_newline, line_number
from dittybag.clients.reversible_edits import TextEdit, apply_edits
from dittybag.text_diff import differences

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

#: A key with thousands of parts takes the TOML parsers minutes.
_LONG_KEY: Final = re.compile(
    r"^[ \t]*+\[{0,2}+(?:[ \t]*+(?:[\w-]++|\"[^\"\r\n]*+\"|'[^'\r\n]*+')[ \t]*+\.){50}", re.MULTILINE
)
_INLINE: Final = "'{}' is an inline table, which cannot be changed safely"
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

    def find(self, text: str, name: str) -> FoundEntry | None:
        entries = self.entries(text)
        if name not in entries:
            return None
        blocks = self._blocks(text, name)
        return FoundEntry(
            blocks[0].start, entries[name], "".join(text[edit.start : edit.end] for edit in blocks)
        )

    def write_edits(self, text: str, name: str, value: Mapping[str, Any]) -> EntryEdits:
        newline = detect_newline(text)
        if name not in self.entries(text):
            added = _gap_before(text, newline) + _format_table(self.key, name, value, newline)
            try:
                _load(text + added)
            except MalformedConfig:
                raise MalformedConfig(_INLINE.format(self.key)) from None
            edit = TextEdit(len(text), len(text), added)
            return EntryEdits((edit,))
        first, *others = self._blocks(text, name)
        if text[first.start :].lstrip().startswith("["):
            source = _format_table(self.key, name, value, newline)
            return EntryEdits((TextEdit(first.start, first.end, source), *others))
        # A line of the table of entries, or a dotted key at the top level.
        for keys in ((name,), (self.key, name)):
            source = f"{_format_pair(keys, value)}{newline}"
            edits = (TextEdit(first.start, first.end, source), *others)
            if self.is_only_change(text, apply_edits(text, edits)[0], name, value):
                return EntryEdits(edits)
        raise MalformedConfig(f"'{name}' cannot be replaced safely")

    def removal_edits(self, text: str, name: str, *, created: int) -> Sequence[tuple[TextEdit, ...]]:
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
        entries = {**self.entries(before), name: _load(_format_pair(("x",), value))["x"]}
        try:
            return bool(_load(after) == {**_load(before), self.key: entries})
        except MalformedConfig:
            return False

    def is_unchanged_elsewhere(self, before: str, after: str, name: str) -> bool:
        return self._without(before, name) == self._without(after, name)

    def _without(self, text: str, name: str) -> dict[str, Any]:
        """The data of a text without an entry, and without the table of entries if that is empty then."""
        whole = _load(text)
        left = {other: value for other, value in self.entries(text).items() if other != name}
        others = {key: value for key, value in whole.items() if key != self.key}
        return {**others, self.key: left} if left else others

    def _blocks(self, text: str, name: str) -> tuple[TextEdit, ...]:
        """The edits that remove each block of an entry. Raises `MalformedConfig`."""
        if (blocks := _find_blocks(text, self.key, name)) is not None:
            return blocks
        for guess in _guess_blocks(text, (self.key, name)):
            after = apply_edits(text, guess)[0]
            try:
                if self.is_unchanged_elsewhere(text, after, name) and name not in self.entries(after):
                    return guess
            except MalformedConfig:
                continue
        raise MalformedConfig(
            f"'{name}' cannot be changed safely: tables around a [[list of tables]] belong together; "
            "move them next to each other"
        )


@lru_cache(maxsize=_CACHED_TEXTS)
def _find_blocks(text: str, key: str, name: str) -> tuple[TextEdit, ...] | None:
    """The edits that remove each block of an entry; `None` if tomlkit does not reproduce the text."""
    from tomlkit.items import InlineTable

    document: Any = _parse(text)
    if document.as_string() != text:
        return None
    if isinstance(document[key], InlineTable):
        raise MalformedConfig(_INLINE.format(key))
    del document[key][name]
    lines = text.splitlines(keepends=True)
    runs = differences(lines, document.as_string().splitlines(keepends=True), max_edits=len(lines))
    return tuple(_removal(lines, run.old, run.old_end) for run in runs)


def _guess_blocks(text: str, path: tuple[str, str]) -> Iterator[tuple[TextEdit, ...]]:
    """Yield the edits that may remove the table at `path` and the tables in it, most tables first.

    A line that looks like a header may be a part of a text.
    """
    lines = text.splitlines(keepends=True)
    headers = [(number, found) for number, line in enumerate(lines) if (found := _header_path(line))]
    ends = [number for number, _ in headers[1:]] + [len(lines)]
    own = [(begin, end) for (begin, found), end in zip(headers, ends, strict=True) if found[:2] == path]
    for length in range(len(own), 0, -1):
        for first in range(len(own) - length + 1):
            blocks: list[tuple[int, int]] = []
            for begin, end in own[first : first + length]:
                joined = blocks.pop()[0] if blocks and blocks[-1][1] == begin else begin
                blocks.append((joined, end))
            yield tuple(_removal(lines, begin, end) for begin, end in blocks)


def _header_path(line: str) -> tuple[str, ...]:
    """The name of the table whose header a line is; empty if it is not a header."""
    try:
        data: Any = tomllib.loads(line) if line.lstrip().startswith("[") else {}
    except ValueError:
        return ()
    path = []
    while isinstance(data, dict) and data:
        ((key, data),) = data.items()
        path.append(key)
    return tuple(path)


def _removal(lines: Sequence[str], begin: int, end: int) -> TextEdit:
    """The edit that removes lines, without the comments at their end, which are about what follows."""
    while end > begin and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    start = sum(map(len, lines[:begin]))
    return TextEdit(start, start + sum(map(len, lines[begin:end])), "")


def _parse(text: str) -> TOMLDocument:
    import tomlkit

    try:
        return tomlkit.parse(text)
    except (ValueError, RecursionError) as error:
        raise MalformedConfig(f"not valid TOML: {error}") from None


def _gap_before(text: str, newline: str) -> str:
    """The newlines needed for one blank line between a text and a table that is added to it."""
    if not text or text.endswith(("\n\n", "\r\n\r\n")):
        return ""
    return newline if text.endswith("\n") else newline * 2


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


def _format_table(key: str, name: str, value: Mapping[str, Any], newline: str) -> str:
    header = f"[{_format_keys((key, name))}]"
    lines = [header, *(_format_pair((part,), item) for part, item in value.items())]
    return "".join(f"{line}{newline}" for line in lines)


def _format_pair(keys: Sequence[str], value: Any) -> str:
    return f"{_format_keys(keys)} = {_format_value(value)}"


def _format_keys(keys: Sequence[str]) -> str:
    from tomlkit import key

    return ".".join(key(part).as_string() for part in keys)


def _format_value(value: Any) -> str:
    """Format a value on one line: tomlkit would write mappings as tables."""
    from tomlkit import item

    if isinstance(value, Mapping):
        inner = ", ".join(_format_pair((key,), part) for key, part in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    return str(item(value).as_string())
