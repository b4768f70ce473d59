"""Text edits that add and remove members of JSON objects and elements of arrays in the style of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from dittybag.clients.client_errors import MalformedConfig
from dittybag.clients.config_format import detect_newline
from dittybag.clients.jsonc import Gap, JsonMember, JsonObject, gaps
from dittybag.clients.reversible_edits import TextEdit

_DEFAULT_INDENT: Final = "  "
_REST_OF_LINE: Final = re.compile(r"[ \t]*+(?:\r\n|\n|\r)")
_BLANKS: Final = re.compile(r"[ \t]*+")


class JsonStyle(Struct, frozen=True):
    """The formatting of a text."""

    text: str
    newline: str
    indent_unit: str
    #: Whether everything is on one line.
    is_flat: bool

    @staticmethod
    def detect(text: str, root: JsonObject | None) -> JsonStyle:
        plain = JsonStyle(text, detect_newline(text), _DEFAULT_INDENT, is_flat=False)
        if root is None or not root.members:
            return plain
        indents = (plain.own_line_margin(member.start) for member in root.members)
        indent_unit = next((indent for indent in indents if indent), _DEFAULT_INDENT).removeprefix(
            plain.margin(root.start)
        )
        inside = text[root.start : root.end]
        return JsonStyle(
            text,
            plain.newline,
            indent_unit or _DEFAULT_INDENT,
            is_flat="\n" not in inside and "\r" not in inside,
        )

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
        """Format a value: `levels` levels of objects and arrays on several lines, the rest on one line."""
        if levels == 0 or not isinstance(value, (Mapping, list)):
            return dump(value)
        inner = margin + self.indent_unit
        pairs = value.items() if isinstance(value, Mapping) else [(None, part) for part in value]
        members = [f"{inner}{_label(key)}{self.format_value(part, inner, levels - 1)}" for key, part in pairs]
        start, end = "{}" if isinstance(value, Mapping) else "[]"
        return f"{start}{self.newline}{f',{self.newline}'.join(members)}{self.newline}{margin}{end}"

    def insertion(self, to: JsonObject, key: str | None, value: Any, levels: int) -> tuple[TextEdit, ...]:
        """The edits that add a member at the end of an object, or without a key at the end of an array."""
        if not to.members:
            return self._insertion_into_empty(to, key, value, levels)
        last = to.members[-1]
        indent = self.own_line_margin(last.start)
        done = last.end if last.comma is None else last.comma + 1
        position, is_line_comment = self._after_comments(done, to.end - 1)
        if indent is None and not is_line_comment:
            member = f" {_label(key)}{dump(value)}"
        else:
            margin = self.margin(last.start) if indent is None else indent
            member = f"{self.newline}{margin}{_label(key)}{self.format_value(value, margin, levels)}"
        if last.comma is not None:
            return (TextEdit(position, position, f"{member},"),)
        if position == last.end:
            return (TextEdit(position, position, f",{member}"),)
        return (TextEdit(last.end, last.end, ","), TextEdit(position, position, member))

    def _insertion_into_empty(
        self, empty: JsonObject, key: str | None, value: Any, levels: int
    ) -> tuple[TextEdit, ...]:
        """The edits that add a member to an object without members."""
        comments = [gap for gap in gaps(self.text, empty.start + 1, empty.end - 1) if gap.is_comment]
        position = comments[-1].end if comments else empty.start + 1
        rest = self.text[position : empty.end - 1]
        if self.is_flat:
            return (TextEdit(position, empty.end - 1, f"{_label(key)}{dump(value)}"),)
        margin = self.margin(empty.start)
        inner = margin + self.indent_unit
        member = f"{self.newline}{inner}{_label(key)}{self.format_value(value, inner, levels)}"
        if comments and ("\n" in rest or "\r" in rest):
            return (TextEdit(position, position, member),)
        return (TextEdit(position, empty.end - 1, f"{member}{self.newline}{margin}"),)

    def _after_comments(self, start: int, end: int) -> tuple[int, bool]:
        """The end of the comments that follow on the same line, and whether the last is a line comment."""
        position, is_line_comment = start, False
        for gap in gaps(self.text, start, end):
            if gap.is_comment:
                position, is_line_comment = gap.end, self.text.startswith("//", gap.start)
            elif _has_newline(self.text, gap):
                break
        return position, is_line_comment


def _has_newline(text: str, gap: Gap) -> bool:
    return "\n" in text[gap.start : gap.end] or "\r" in text[gap.start : gap.end]


def unique_member(holder: JsonObject, key: str) -> JsonMember | None:
    members = [member for member in holder.members if member.key == key]
    if len(members) > 1:
        raise MalformedConfig(f"'{key}' occurs more than once")
    return members[0] if members else None


def object_of(container: JsonMember) -> JsonObject:
    assert container.value is not None
    return container.value


def source_text(text: str, member: JsonMember) -> str:
    return text[member.value_start : member.end]


def _label(key: str | None) -> str:
    """A key and its colon; nothing for an element of an array."""
    return "" if key is None else f"{dump(key)}: "


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def is_only_content(text: str, holder: JsonObject, member: JsonMember) -> bool:
    """Whether an object contains nothing but this member, not even a comment."""
    end = member.end if member.comma is None else member.comma + 1
    around = text[holder.start + 1 : member.start] + text[end : holder.end - 1]
    between = text[member.end : end - 1]
    return len(holder.members) == 1 and not (around + between).strip(" \t\r\n")


def removals(text: str, holder: JsonObject, member: JsonMember) -> tuple[tuple[TextEdit, ...], ...]:
    """Alternative edits that remove a member, the cleanest result first."""
    return (_removal_with_line(text, holder, member), _removal(holder, member))


def _removal(holder: JsonObject, member: JsonMember) -> tuple[TextEdit, ...]:
    """The edits that remove a member and one comma."""
    at = holder.members.index(member)
    if member.comma is not None or at == 0:
        end = member.end if member.comma is None else member.comma + 1
        return (TextEdit(member.start, end, ""),)
    comma = holder.members[at - 1].comma
    assert comma is not None
    return (TextEdit(comma, comma + 1, ""), TextEdit(member.start, member.end, ""))


def _removal_with_line(text: str, holder: JsonObject, member: JsonMember) -> tuple[TextEdit, ...]:
    """The edits that remove a member, one comma, and its line or the blanks around it."""
    *others, edit = _removal(holder, member)
    start = edit.start
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    rest = _REST_OF_LINE.match(text, edit.end)
    if rest and start > 0 and text[start - 1] in "\r\n":
        return (*others, TextEdit(start, rest.end(), ""))
    if others and start == others[-1].end:
        return (TextEdit(others[-1].start, edit.end, ""),)
    blanks = _BLANKS.match(text, edit.end)
    return (*others, TextEdit(edit.start, blanks.end() if blanks else edit.end, ""))


def as_pairs(value: Any) -> tuple[tuple[str, Any], ...]:
    """The members of an object, from `comparable_value`."""
    if not isinstance(value, tuple):
        raise MalformedConfig("a value is not an object")
    return value


def with_pair(pairs: tuple[tuple[str, Any], ...], key: str, value: Any) -> tuple[tuple[str, Any], ...]:
    if any(pair[0] == key for pair in pairs):
        return tuple((pair[0], value if pair[0] == key else pair[1]) for pair in pairs)
    return (*pairs, (key, value))
