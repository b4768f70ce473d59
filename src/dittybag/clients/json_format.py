"""Entries in a JSON file, edited without touching anything else in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from dittybag.clients.client_errors import Malformed
from dittybag.clients.config_format import Found, Put, newline_of
from dittybag.clients.jsonc import Gap, Member, Object, gaps, said, scanned, value_of
from dittybag.clients.reversible_edits import Cut

_UNIT: Final = "  "
_REST_OF_LINE: Final = re.compile(r"[ \t]*+(?:\r\n|\n|\r)")
_BLANKS: Final = re.compile(r"[ \t]*+")


class JsonFormat(Struct, frozen=True):
    """A JSON object in which the member `key` is an object of entries."""

    key: str

    def entries(self, text: str) -> Mapping[str, Any]:
        container = self._container(scanned(text))
        if container is None:
            return {}
        return {member.key: value_of(_written(text, member)) for member in _object_of(container).members}

    def find(self, text: str, name: str) -> Found | None:
        member = self._entry(scanned(text), name)
        if member is None:
            return None
        written = _written(text, member)
        return Found(member.start, value_of(written), written)

    def put(self, text: str, name: str, value: Mapping[str, Any]) -> Put:
        root = scanned(text)
        style = _Style.of(text, root)
        if root is None:
            gap = style.newline if text and not text.endswith(("\n", "\r")) else ""
            whole = style.written({self.key: {name: value}}, "", 3)
            cut = Cut(len(text), len(text), f"{gap}{whole}{style.newline}")
            return Put((cut,), with_container=True, with_root=True)
        container = self._container(root)
        if container is None:
            return Put(style.added(root, self.key, {name: value}, 2), with_container=True)
        member = self._entry(root, name)
        if member is None:
            return Put(style.added(_object_of(container), name, value, 1))
        indent = style.own_line(member.start)
        written = _dumped(value) if indent is None else style.written(value, indent, 1)
        return Put((Cut(member.value_start, member.end, written),))

    def take(self, text: str, name: str, *, container: bool, root: bool) -> Sequence[tuple[Cut, ...]]:
        whole = scanned(text)
        around = self._container(whole)
        member = self._entry(whole, name)
        if whole is None or around is None or member is None:
            raise Malformed(f"there is no '{name}' in it")
        holder = _object_of(around)
        if container and _is_all(text, holder, member):
            holder, member = whole, around
            if root and _is_all(text, whole, around):
                return ((Cut(whole.start, whole.end, ""),),)
        return (_taken_neatly(text, holder, member), _taken(holder, member))

    def give_back(self, text: str, name: str, written: str) -> tuple[Cut, ...]:
        member = self._entry(scanned(text), name)
        if member is None:
            raise Malformed(f"there is no '{name}' in it")
        return (Cut(member.value_start, member.end, written),)

    def is_put(self, before: str, after: str, name: str, value: Mapping[str, Any]) -> bool:
        scanned(after)
        pairs = _pairs(said(before))
        entries = _pairs(dict(pairs).get(self.key, ()))
        wanted = _with(pairs, self.key, _with(entries, name, said(_dumped(value))))
        return bool(said(after) == wanted)

    def is_same_elsewhere(self, before: str, after: str, name: str) -> bool:
        scanned(after)
        return bool(self._without(before, name) == self._without(after, name))

    def _without(self, text: str, name: str) -> Any:
        """What a text says without an entry, nor the object of all entries if there are no others."""
        pairs = _pairs(said(text))
        left = tuple(pair for pair in _pairs(dict(pairs).get(self.key, ())) if pair[0] != name)
        return tuple(
            (key, left if key == self.key else value) for key, value in pairs if key != self.key or left
        )

    def _container(self, root: Object | None) -> Member | None:
        """The member that has the entries. Raises `Malformed` if it cannot have any."""
        container = None if root is None else _only(root, self.key)
        if container is not None and container.value is None:
            raise Malformed(f"its '{self.key}' is not an object")
        return container

    def _entry(self, root: Object | None, name: str) -> Member | None:
        container = self._container(root)
        return None if container is None else _only(_object_of(container), name)


class _Style(Struct, frozen=True):
    """How a text is laid out."""

    text: str
    newline: str
    unit: str
    #: Everything is on one line.
    is_flat: bool

    @staticmethod
    def of(text: str, root: Object | None) -> _Style:
        plain = _Style(text, newline_of(text), _UNIT, is_flat=False)
        if root is None or not root.members:
            return plain
        indents = (plain.own_line(member.start) for member in root.members)
        unit = next((indent for indent in indents if indent), _UNIT).removeprefix(plain.margin(root.start))
        inside = text[root.start : root.end]
        return _Style(text, plain.newline, unit or _UNIT, is_flat="\n" not in inside and "\r" not in inside)

    def margin(self, at: int) -> str:
        """The white space with which the line of this position begins."""
        start = max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1
        match = _BLANKS.match(self.text, start, at)
        return match[0] if match else ""

    def own_line(self, at: int) -> str | None:
        """The margin, if nothing else stands before this position."""
        margin = self.margin(at)
        start = at - len(margin)
        return margin if start == 0 or self.text[start - 1] in "\r\n" else None

    def written(self, value: Any, margin: str, levels: int) -> str:
        """A value on several lines: so many levels of objects, and the rest of it on one line each."""
        if levels == 0 or not isinstance(value, Mapping):
            return _dumped(value)
        inner = margin + self.unit
        members = [
            f"{inner}{_dumped(key)}: {self.written(part, inner, levels - 1)}" for key, part in value.items()
        ]
        return f"{{{self.newline}{f',{self.newline}'.join(members)}{self.newline}{margin}}}"

    def added(self, to: Object, key: str, value: Any, levels: int) -> tuple[Cut, ...]:
        """How a member is added at the end of an object."""
        if not to.members:
            return self._filled(to, key, value, levels)
        last = to.members[-1]
        indent = self.own_line(last.start)
        done = last.end if last.comma is None else last.comma + 1
        place, is_line_comment = self._after_comments(done, to.end - 1)
        if indent is None and not is_line_comment:
            member = f" {_dumped(key)}: {_dumped(value)}"
        else:
            margin = self.margin(last.start) if indent is None else indent
            member = f"{self.newline}{margin}{_dumped(key)}: {self.written(value, margin, levels)}"
        if last.comma is not None:
            return (Cut(place, place, f"{member},"),)
        if place == last.end:
            return (Cut(place, place, f",{member}"),)
        return (Cut(last.end, last.end, ","), Cut(place, place, member))

    def _filled(self, empty: Object, key: str, value: Any, levels: int) -> tuple[Cut, ...]:
        """How a member is put into an object that has none."""
        comments = [gap for gap in gaps(self.text, empty.start + 1, empty.end - 1) if gap.is_comment]
        place = comments[-1].end if comments else empty.start + 1
        rest = self.text[place : empty.end - 1]
        if self.is_flat:
            return (Cut(place, empty.end - 1, f"{_dumped(key)}: {_dumped(value)}"),)
        margin = self.margin(empty.start)
        inner = margin + self.unit
        member = f"{self.newline}{inner}{_dumped(key)}: {self.written(value, inner, levels)}"
        if comments and ("\n" in rest or "\r" in rest):
            return (Cut(place, place, member),)
        return (Cut(place, empty.end - 1, f"{member}{self.newline}{margin}"),)

    def _after_comments(self, start: int, end: int) -> tuple[int, bool]:
        """Where the comments end that follow on the same line, and whether the last one takes all of it."""
        place, is_line_comment = start, False
        for gap in gaps(self.text, start, end):
            if gap.is_comment:
                place, is_line_comment = gap.end, self.text.startswith("//", gap.start)
            elif _has_newline(self.text, gap):
                break
        return place, is_line_comment


def _has_newline(text: str, gap: Gap) -> bool:
    return "\n" in text[gap.start : gap.end] or "\r" in text[gap.start : gap.end]


def _only(holder: Object, key: str) -> Member | None:
    members = [member for member in holder.members if member.key == key]
    if len(members) > 1:
        raise Malformed(f"it has '{key}' more than once")
    return members[0] if members else None


def _object_of(container: Member) -> Object:
    assert container.value is not None
    return container.value


def _written(text: str, member: Member) -> str:
    return text[member.value_start : member.end]


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_all(text: str, holder: Object, member: Member) -> bool:
    """Whether nothing else is in an object, not even a comment."""
    end = member.end if member.comma is None else member.comma + 1
    around = text[holder.start + 1 : member.start] + text[end : holder.end - 1]
    between = text[member.end : end - 1]
    return len(holder.members) == 1 and not (around + between).strip(" \t\r\n")


def _taken(holder: Object, member: Member) -> tuple[Cut, ...]:
    """A member and one comma."""
    at = holder.members.index(member)
    if member.comma is not None or at == 0:
        end = member.end if member.comma is None else member.comma + 1
        return (Cut(member.start, end, ""),)
    comma = holder.members[at - 1].comma
    assert comma is not None
    return (Cut(comma, comma + 1, ""), Cut(member.start, member.end, ""))


def _taken_neatly(text: str, holder: Object, member: Member) -> tuple[Cut, ...]:
    """A member, one comma, and the line on which it stood or the blanks around it."""
    *others, cut = _taken(holder, member)
    start = cut.start
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    rest = _REST_OF_LINE.match(text, cut.end)
    if rest and start > 0 and text[start - 1] in "\r\n":
        return (*others, Cut(start, rest.end(), ""))
    if others and start == others[-1].end:
        return (Cut(others[-1].start, cut.end, ""),)
    blanks = _BLANKS.match(text, cut.end)
    return (*others, Cut(cut.start, blanks.end() if blanks else cut.end, ""))


def _pairs(value: Any) -> tuple[tuple[str, Any], ...]:
    """The members of an object, as `said` has it."""
    if not isinstance(value, tuple):
        raise Malformed("it has something else in place of an object")
    return value


def _with(pairs: tuple[tuple[str, Any], ...], key: str, value: Any) -> tuple[tuple[str, Any], ...]:
    if any(pair[0] == key for pair in pairs):
        return tuple((pair[0], value if pair[0] == key else pair[1]) for pair in pairs)
    return (*pairs, (key, value))
