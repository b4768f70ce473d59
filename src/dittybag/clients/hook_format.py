"""Hooks in JSON configuration files: find, write and remove Dittybag's, and change nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from dittybag.clients.client_errors import MalformedConfig
from dittybag.clients.config_format import EntryEdits, FoundEntry
from dittybag.clients.json_edits import (
    JsonStyle,
    as_pairs,
    dump,
    is_only_content,
    object_of,
    removals,
    source_text,
    unique_member,
    with_pair,
)
from dittybag.clients.jsonc import JsonMember, JsonObject, comparable_value, parse_value, scan, scan_array
from dittybag.clients.reversible_edits import TextEdit

_KEY = "hooks"
#: Levels of a hook that are written on several lines: the element and the list of its commands.
_LEVELS = 2


class HookFormat(Struct, frozen=True):
    """A JSON object whose member `hooks` has an array of hooks for each event; entries are named by event.

    See `ConfigFormat`. Of the array of an event, only the element that `is_own` accepts is an entry.
    """

    is_own: Callable[[Any], bool]
    #: Other members that a new file begins with.
    header: Mapping[str, Any] = {}

    @property
    def key(self) -> str:
        return _KEY

    def entries(self, text: str) -> Mapping[str, Any]:
        container = self._container(scan(text))
        members = () if container is None else object_of(container).members
        found = ((member.key, self.find(text, member.key)) for member in members)
        return {name: entry.value for name, entry in found if entry is not None}

    def find(self, text: str, name: str) -> FoundEntry | None:
        element = self._element(text, self._array(text, name))
        if element is None:
            return None
        source = source_text(text, element)
        return FoundEntry(element.start, parse_value(source), source)

    def write_edits(self, text: str, name: str, value: Mapping[str, Any]) -> EntryEdits:
        root = scan(text)
        style = JsonStyle.detect(text, root)
        if root is None:
            gap = style.newline if text and not text.endswith(("\n", "\r")) else ""
            whole = style.format_value({**self.header, _KEY: {name: [value]}}, "", _LEVELS + 3)
            return EntryEdits((TextEdit(len(text), len(text), f"{gap}{whole}{style.newline}"),), created=3)
        container = self._container(root)
        if container is None:
            return EntryEdits(style.insertion(root, _KEY, {name: [value]}, _LEVELS + 2), created=2)
        array = self._array(text, name)
        if array is None:
            return EntryEdits(style.insertion(object_of(container), name, [value], _LEVELS + 1), created=1)
        element = self._element(text, array)
        if element is None:
            return EntryEdits(style.insertion(array, None, value, _LEVELS))
        indent = style.own_line_margin(element.start)
        source = dump(value) if indent is None else style.format_value(value, indent, _LEVELS)
        return EntryEdits((TextEdit(element.start, element.end, source),))

    def removal_edits(self, text: str, name: str, *, created: int) -> Sequence[tuple[TextEdit, ...]]:
        root = scan(text)
        container = self._container(root)
        array = self._array(text, name)
        element = self._element(text, array)
        if root is None or container is None or array is None or element is None:
            raise MalformedConfig(f"there is no hook of Dittybag for '{name}'")
        event = unique_member(object_of(container), name)
        assert event is not None
        holder, member = array, element
        for outer, inner in ((object_of(container), event), (root, container)):
            if not created or not is_only_content(text, holder, member):
                return removals(text, holder, member)
            holder, member, created = outer, inner, created - 1
        if created and is_only_content(text, holder, member):
            return ((TextEdit(root.start, root.end, ""),),)
        return removals(text, holder, member)

    def restore_edits(self, text: str, name: str, source: str) -> tuple[TextEdit, ...]:
        element = self._element(text, self._array(text, name))
        if element is None:
            raise MalformedConfig(f"there is no hook of Dittybag for '{name}'")
        return (TextEdit(element.start, element.end, source),)

    def is_only_change(self, before: str, after: str, name: str, value: Mapping[str, Any]) -> bool:
        scan(after)
        pairs = as_pairs(comparable_value(dump(self.header) if scan(before) is None else before))
        events = as_pairs(dict(pairs).get(_KEY, ()))
        array = list(dict(events).get(name, []))
        found = self._element(before, self._array(before, name))
        new = comparable_value(dump(value))
        if found is None:
            array.append(new)
        else:
            array[array.index(comparable_value(source_text(before, found)))] = new
        return bool(comparable_value(after) == with_pair(pairs, _KEY, with_pair(events, name, array)))

    def is_unchanged_elsewhere(self, before: str, after: str, name: str) -> bool:
        scan(after)
        return bool(self._without(before, name) == self._without(after, name))

    def _without(self, text: str, name: str) -> Any:
        """The data of a text without an entry, and without what is empty or only a header then."""
        pairs = as_pairs(comparable_value(text))
        events = as_pairs(dict(pairs).get(_KEY, ()))
        array = list(dict(events).get(name, []))
        if (found := self._element(text, self._array(text, name))) is not None:
            array.remove(comparable_value(source_text(text, found)))
        left = tuple((key, array if key == name else value) for key, value in events if key != name or array)
        whole = tuple((key, left if key == _KEY else value) for key, value in pairs if key != _KEY or left)
        return () if whole == comparable_value(dump(self.header)) else whole

    def _container(self, root: JsonObject | None) -> JsonMember | None:
        container = None if root is None else unique_member(root, _KEY)
        if container is not None and container.value is None:
            raise MalformedConfig(f"'{_KEY}' is not an object")
        return container

    def _array(self, text: str, name: str) -> JsonObject | None:
        """The array of an event, or `None`. Raises `MalformedConfig` if it is not an array."""
        container = self._container(scan(text))
        event = None if container is None else unique_member(object_of(container), name)
        if event is None:
            return None
        if text[event.value_start] != "[":
            raise MalformedConfig(f"'{name}' of '{_KEY}' is not an array")
        return scan_array(text, event.value_start)

    def _element(self, text: str, array: JsonObject | None) -> JsonMember | None:
        """The first element of Dittybag."""
        elements = () if array is None else array.members
        return next((item for item in elements if self.is_own(parse_value(source_text(text, item)))), None)
