"""Entries of JSON configuration files: find, write and remove them, and change nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from dittybag.clients.jsonc import JsonMember, JsonObject, comparable_value, parse_value, scan
from dittybag.clients.reversible_edits import TextEdit


class JsonFormat(Struct, frozen=True):
    """A JSON object in which the member `key` is an object of entries."""

    key: str

    def entries(self, text: str) -> Mapping[str, Any]:
        container = self._container(scan(text))
        if container is None:
            return {}
        return {member.key: parse_value(source_text(text, member)) for member in object_of(container).members}

    def find(self, text: str, name: str) -> FoundEntry | None:
        member = self._entry(scan(text), name)
        if member is None:
            return None
        source = source_text(text, member)
        return FoundEntry(member.start, parse_value(source), source)

    def write_edits(self, text: str, name: str, value: Mapping[str, Any]) -> EntryEdits:
        root = scan(text)
        style = JsonStyle.detect(text, root)
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
            return EntryEdits(style.insertion(object_of(container), name, value, 1))
        indent = style.own_line_margin(member.start)
        source = dump(value) if indent is None else style.format_value(value, indent, 1)
        return EntryEdits((TextEdit(member.value_start, member.end, source),))

    def removal_edits(self, text: str, name: str, *, created: int) -> Sequence[tuple[TextEdit, ...]]:
        whole = scan(text)
        around = self._container(whole)
        member = self._entry(whole, name)
        if whole is None or around is None or member is None:
            raise MalformedConfig(f"there is no entry '{name}'")
        holder = object_of(around)
        if created and is_only_content(text, holder, member):
            holder, member = whole, around
            if created > 1 and is_only_content(text, whole, around):
                return ((TextEdit(whole.start, whole.end, ""),),)
        return removals(text, holder, member)

    def restore_edits(self, text: str, name: str, source: str) -> tuple[TextEdit, ...]:
        member = self._entry(scan(text), name)
        if member is None:
            raise MalformedConfig(f"there is no entry '{name}'")
        return (TextEdit(member.value_start, member.end, source),)

    def is_only_change(self, before: str, after: str, name: str, value: Mapping[str, Any]) -> bool:
        scan(after)
        pairs = as_pairs(comparable_value(before))
        entries = as_pairs(dict(pairs).get(self.key, ()))
        expected = with_pair(pairs, self.key, with_pair(entries, name, comparable_value(dump(value))))
        return bool(comparable_value(after) == expected)

    def is_unchanged_elsewhere(self, before: str, after: str, name: str) -> bool:
        scan(after)
        return bool(self._without(before, name) == self._without(after, name))

    def _without(self, text: str, name: str) -> Any:
        """The data of a text without an entry, and without the object of entries if that is empty then."""
        pairs = as_pairs(comparable_value(text))
        left = tuple(pair for pair in as_pairs(dict(pairs).get(self.key, ())) if pair[0] != name)
        return tuple(
            (key, left if key == self.key else value) for key, value in pairs if key != self.key or left
        )

    def _container(self, root: JsonObject | None) -> JsonMember | None:
        """The member that holds the entries, or `None`. Raises `MalformedConfig` if it is not an object."""
        container = None if root is None else unique_member(root, self.key)
        if container is not None and container.value is None:
            raise MalformedConfig(f"'{self.key}' is not an object")
        return container

    def _entry(self, root: JsonObject | None, name: str) -> JsonMember | None:
        container = self._container(root)
        return None if container is None else unique_member(object_of(container), name)
