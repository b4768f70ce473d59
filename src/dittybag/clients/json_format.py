"""Entries of JSON configuration files, written and removed in the style of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from dittybag.clients.client_errors import MalformedConfig
from dittybag.clients.config_format import detect_newline
from dittybag.clients.jsonc import JsonMember, JsonObject, comparable_value, gaps, parse_value, scan

_DEFAULT_INDENT: Final = "  "
_REST_OF_LINE: Final = re.compile(r"[ \t]*+(?:\r\n|\n|\r)")
_BLANKS: Final = re.compile(r"[ \t]*+")


class JsonFormat(Struct, frozen=True):
    """A JSON object in which the member `key` is an object of entries."""

    key: str

    def entries(self, text: str) -> Mapping[str, Any]:
        holder = self._holder(scan(text))
        members = () if holder is None else holder.members
        return {member.key: parse_value(text[member.value_start : member.end]) for member in members}

    def write(self, text: str, name: str, value: Mapping[str, Any]) -> str:
        root = scan(text)
        style = _Style.detect(text, root)
        if root is None:
            gap = style.newline if text and not text.endswith(("\n", "\r")) else ""
            return f"{text}{gap}{style.format_value({self.key: {name: value}}, '', 3)}{style.newline}"
        holder = self._holder(root)
        if holder is None:
            return style.insert(root, self.key, {name: value}, 2)
        member = _unique_member(holder, name)
        if member is None:
            return style.insert(holder, name, value, 1)
        indent = style.own_line_margin(member.start)
        source = _dump(value) if indent is None else style.format_value(value, indent, 1)
        return text[: member.value_start] + source + text[member.end :]

    def remove(self, text: str, name: str) -> str:
        """Remove an entry, one comma, and its line or the blanks around it."""
        holder = self._holder(scan(text))
        member = None if holder is None else _unique_member(holder, name)
        if holder is None or member is None:
            raise MalformedConfig(f"there is no entry '{name}'")
        before, end = text[: member.start], member.end
        at = holder.members.index(member)
        if member.comma is not None:
            end = member.comma + 1
        elif at > 0:
            comma = holder.members[at - 1].comma
            assert comma is not None
            before = text[:comma] + text[comma + 1 : member.start]
        kept = before.rstrip(" \t")
        rest = _REST_OF_LINE.match(text, end)
        if rest and kept.endswith(("\r", "\n")):
            return kept + text[rest.end() :]
        if at > 0 and member.comma is None:
            return kept + text[end:]
        blanks = _BLANKS.match(text, end)
        return before + text[blanks.end() if blanks else end :]

    def rest(self, text: str, name: str) -> Any:
        scan(text)
        pairs = _as_pairs(comparable_value(text))
        left = tuple(pair for pair in _as_pairs(dict(pairs).get(self.key, ())) if pair[0] != name)
        return tuple(
            (key, left if key == self.key else value) for key, value in pairs if key != self.key or left
        )

    def _holder(self, root: JsonObject | None) -> JsonObject | None:
        """The object that holds the entries, or `None`. Raises `MalformedConfig` if it is not an object."""
        container = None if root is None else _unique_member(root, self.key)
        if container is not None and container.value is None:
            raise MalformedConfig(f"'{self.key}' is not an object")
        return None if container is None else container.value


class _Style(Struct, frozen=True):
    """The formatting of a text."""

    text: str
    newline: str
    indent_unit: str
    #: Whether everything is on one line.
    is_flat: bool

    @staticmethod
    def detect(text: str, root: JsonObject | None) -> _Style:
        plain = _Style(text, detect_newline(text), _DEFAULT_INDENT, is_flat=False)
        if root is None or not root.members:
            return plain
        indents = (plain.own_line_margin(member.start) for member in root.members)
        indent_unit = next((indent for indent in indents if indent), _DEFAULT_INDENT).removeprefix(
            plain.margin(root.start)
        )
        inside = text[root.start : root.end]
        is_flat = "\n" not in inside and "\r" not in inside
        return _Style(text, plain.newline, indent_unit or _DEFAULT_INDENT, is_flat=is_flat)

    def margin(self, at: int) -> str:
        """The indentation of the line that contains this position."""
        start = max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1
        match = _BLANKS.match(self.text, start, at)
        return match[0] if match else ""

    def own_line_margin(self, at: int) -> str | None:
        """The indentation, if this position is the first on its line; otherwise `None`."""
        margin = self.margin(at)
        start = at - len(margin)
        return margin if start == 0 or self.text[start - 1] in "\r\n" else None

    def format_value(self, value: Any, margin: str, levels: int) -> str:
        """Format a value: `levels` levels of objects on several lines, the rest on one line."""
        if levels == 0 or not isinstance(value, Mapping):
            return _dump(value)
        inner = margin + self.indent_unit
        members = [
            f"{inner}{_dump(key)}: {self.format_value(part, inner, levels - 1)}"
            for key, part in value.items()
        ]
        return f"{{{self.newline}{f',{self.newline}'.join(members)}{self.newline}{margin}}}"

    def insert(self, to: JsonObject, key: str, value: Any, levels: int) -> str:
        """Return the text with a member at the end of an object."""
        text = self.text
        if not to.members:
            return self._insert_into_empty(to, key, value, levels)
        last = to.members[-1]
        indent = self.own_line_margin(last.start)
        done = last.end if last.comma is None else last.comma + 1
        position, is_line_comment = self._after_comments(done, to.end - 1)
        if indent is None and not is_line_comment:
            member = f" {_dump(key)}: {_dump(value)}"
        else:
            margin = self.margin(last.start) if indent is None else indent
            member = f"{self.newline}{margin}{_dump(key)}: {self.format_value(value, margin, levels)}"
        if last.comma is not None:
            return f"{text[:position]}{member},{text[position:]}"
        return f"{text[: last.end]},{text[last.end : position]}{member}{text[position:]}"

    def _insert_into_empty(self, empty: JsonObject, key: str, value: Any, levels: int) -> str:
        """Return the text with a member in an object without members, after its comments."""
        text, end = self.text, empty.end - 1
        comments = [gap for gap in gaps(text, empty.start + 1, end) if gap.is_comment]
        position = comments[-1].end if comments else empty.start + 1
        if self.is_flat:
            return f"{text[:position]}{_dump(key)}: {_dump(value)}{text[end:]}"
        margin = self.margin(empty.start)
        inner = margin + self.indent_unit
        member = f"{self.newline}{inner}{_dump(key)}: {self.format_value(value, inner, levels)}"
        if comments and any(mark in text[position:end] for mark in "\r\n"):
            return text[:position] + member + text[position:]
        return f"{text[:position]}{member}{self.newline}{margin}{text[end:]}"

    def _after_comments(self, start: int, end: int) -> tuple[int, bool]:
        """The end of the comments that follow on the same line, and whether the last is a line comment."""
        position, is_line_comment = start, False
        for gap in gaps(self.text, start, end):
            if gap.is_comment:
                position, is_line_comment = gap.end, self.text.startswith("//", gap.start)
            elif any(mark in self.text[gap.start : gap.end] for mark in "\r\n"):
                break
        return position, is_line_comment


def _unique_member(holder: JsonObject, key: str) -> JsonMember | None:
    members = [member for member in holder.members if member.key == key]
    if len(members) > 1:
        raise MalformedConfig(f"'{key}' occurs more than once")
    return members[0] if members else None


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _as_pairs(value: Any) -> tuple[tuple[str, Any], ...]:
    """The members of an object, from `comparable_value`."""
    if not isinstance(value, tuple):
        raise MalformedConfig("a value is not an object")
    return value
