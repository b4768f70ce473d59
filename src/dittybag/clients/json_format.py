"""Entries of JSON configuration files: find, write and remove them, and change nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from dittybag.clients.client_errors import MalformedConfig
from dittybag.clients.config_format import EntryEdits, FoundEntry, detect_newline
from dittybag.clients.jsonc import Gap, JsonMember, JsonObject, comparable_value, gaps, parse_value, scan
from dittybag.clients.reversible_edits import TextEdit

_DEFAULT_INDENT: Final = "  "
_REST_OF_LINE: Final = re.compile(r"[ \t]*+(?:\r\n|\n|\r)")
_BLANKS: Final = re.compile(r"[ \t]*+")


class JsonFormat(Struct, frozen=True):
    """A JSON object in which the member `key` is an object of entries."""

    key: str

    def entries(self, text: str) -> Mapping[str, Any]:
        container = self._container(scan(text))
        if container is None:
            return {}
        return {
            member.key: parse_value(_source_text(text, member)) for member in _object_of(container).members
        }

    def find(self, text: str, name: str) -> FoundEntry | None:
        member = self._entry(scan(text), name)
        if member is None:
            return None
        source = _source_text(text, member)
        return FoundEntry(member.start, parse_value(source), source)

    def write_edits(self, text: str, name: str, value: Mapping[str, Any]) -> EntryEdits:
        root = scan(text)
        style = _JsonStyle.detect(text, root)
        if root is None:
            gap = style.newline if text and not text.endswith(("\n", "\r")) else ""
            whole = style.format_value({self.key: {name: value}}, "", 3)
            edit = TextEdit(len(text), len(text), f"{gap}{whole}{style.newline}")
            return EntryEdits((edit,), created=2)
        container = self._container(root)
        if container is None:
            return EntryEdits(style.insertion(root, self.key, {name: value}, 2), created=1)
        member = self._entry(root, name)
        if member is None:
            return EntryEdits(style.insertion(_object_of(container), name, value, 1))
        indent = style.own_line_margin(member.start)
        source = _dump(value) if indent is None else style.format_value(value, indent, 1)
        return EntryEdits((TextEdit(member.value_start, member.end, source),))

    def removal_edits(self, text: str, name: str, *, created: int) -> Sequence[tuple[TextEdit, ...]]:
        whole = scan(text)
        around = self._container(whole)
        member = self._entry(whole, name)
        if whole is None or around is None or member is None:
            raise MalformedConfig(f"there is no entry '{name}'")
        holder = _object_of(around)
        if created and _is_only_content(text, holder, member):
            holder, member = whole, around
            if created > 1 and _is_only_content(text, whole, around):
                return ((TextEdit(whole.start, whole.end, ""),),)
        return (_removal_with_line(text, holder, member), _removal(holder, member))

    def restore_edits(self, text: str, name: str, source: str) -> tuple[TextEdit, ...]:
        member = self._entry(scan(text), name)
        if member is None:
            raise MalformedConfig(f"there is no entry '{name}'")
        return (TextEdit(member.value_start, member.end, source),)

    def is_only_change(self, before: str, after: str, name: str, value: Mapping[str, Any]) -> bool:
        scan(after)
        pairs = _pairs(comparable_value(before))
        entries = _pairs(dict(pairs).get(self.key, ()))
        expected = _with_pair(pairs, self.key, _with_pair(entries, name, comparable_value(_dump(value))))
        return bool(comparable_value(after) == expected)

    def is_unchanged_elsewhere(self, before: str, after: str, name: str) -> bool:
        scan(after)
        return bool(self._without(before, name) == self._without(after, name))

    def _without(self, text: str, name: str) -> Any:
        """The data of a text without an entry, and without the object of entries if that is empty then."""
        pairs = _pairs(comparable_value(text))
        left = tuple(pair for pair in _pairs(dict(pairs).get(self.key, ())) if pair[0] != name)
        return tuple(
            (key, left if key == self.key else value) for key, value in pairs if key != self.key or left
        )

    def _container(self, root: JsonObject | None) -> JsonMember | None:
        """The member that holds the entries, or `None`. Raises `MalformedConfig` if it is not an object."""
        container = None if root is None else _unique_member(root, self.key)
        if container is not None and container.value is None:
            raise MalformedConfig(f"'{self.key}' is not an object")
        return container

    def _entry(self, root: JsonObject | None, name: str) -> JsonMember | None:
        container = self._container(root)
        return None if container is None else _unique_member(_object_of(container), name)


class _JsonStyle(Struct, frozen=True):
    """The formatting of a text."""

    text: str
    newline: str
    indent_unit: str
    #: Whether everything is on one line.
    is_flat: bool

    @staticmethod
    def detect(text: str, root: JsonObject | None) -> _JsonStyle:
        plain = _JsonStyle(text, detect_newline(text), _DEFAULT_INDENT, is_flat=False)
        if root is None or not root.members:
            return plain
        indents = (plain.own_line_margin(member.start) for member in root.members)
        indent_unit = next((indent for indent in indents if indent), _DEFAULT_INDENT).removeprefix(
            plain.margin(root.start)
        )
        inside = text[root.start : root.end]
        return _JsonStyle(
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
        """Format a value: `levels` levels of objects on several lines, the rest on one line."""
        if levels == 0 or not isinstance(value, Mapping):
            return _dump(value)
        inner = margin + self.indent_unit
        members = [
            f"{inner}{_dump(key)}: {self.format_value(part, inner, levels - 1)}"
            for key, part in value.items()
        ]
        return f"{{{self.newline}{f',{self.newline}'.join(members)}{self.newline}{margin}}}"

    def insertion(self, to: JsonObject, key: str, value: Any, levels: int) -> tuple[TextEdit, ...]:
        """The edits that add a member at the end of an object."""
        if not to.members:
            return self._insertion_into_empty(to, key, value, levels)
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
            return (TextEdit(position, position, f"{member},"),)
        if position == last.end:
            return (TextEdit(position, position, f",{member}"),)
        return (TextEdit(last.end, last.end, ","), TextEdit(position, position, member))

    def _insertion_into_empty(
        self, empty: JsonObject, key: str, value: Any, levels: int
    ) -> tuple[TextEdit, ...]:
        """The edits that add a member to an object without members."""
        comments = [gap for gap in gaps(self.text, empty.start + 1, empty.end - 1) if gap.is_comment]
        position = comments[-1].end if comments else empty.start + 1
        rest = self.text[position : empty.end - 1]
        if self.is_flat:
            return (TextEdit(position, empty.end - 1, f"{_dump(key)}: {_dump(value)}"),)
        margin = self.margin(empty.start)
        inner = margin + self.indent_unit
        member = f"{self.newline}{inner}{_dump(key)}: {self.format_value(value, inner, levels)}"
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


def _unique_member(holder: JsonObject, key: str) -> JsonMember | None:
    members = [member for member in holder.members if member.key == key]
    if len(members) > 1:
        raise MalformedConfig(f"'{key}' occurs more than once")
    return members[0] if members else None


def _object_of(container: JsonMember) -> JsonObject:
    assert container.value is not None
    return container.value


def _source_text(text: str, member: JsonMember) -> str:
    return text[member.value_start : member.end]


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_only_content(text: str, holder: JsonObject, member: JsonMember) -> bool:
    """Whether an object contains nothing but this member, not even a comment."""
    end = member.end if member.comma is None else member.comma + 1
    around = text[holder.start + 1 : member.start] + text[end : holder.end - 1]
    between = text[member.end : end - 1]
    return len(holder.members) == 1 and not (around + between).strip(" \t\r\n")


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


def _pairs(value: Any) -> tuple[tuple[str, Any], ...]:
    """The members of an object, from `comparable_value`."""
    if not isinstance(value, tuple):
        raise MalformedConfig("a value is not an object")
    return value


def _with_pair(pairs: tuple[tuple[str, Any], ...], key: str, value: Any) -> tuple[tuple[str, Any], ...]:
    if any(pair[0] == key for pair in pairs):
        return tuple((pair[0], value if pair[0] == key else pair[1]) for pair in pairs)
    return (*pairs, (key, value))
