"""What a change modified, as the lines of a diff."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dittybag.domain.changes import Change, Purged
from dittybag.domain.entities import Entity, type_of
from dittybag.domain.errors import ChangePurged
from dittybag.domain.resources import Resource
from dittybag.services.history_service import Comparison
from dittybag.text_diff import unified_lines


def changed_texts(comparison: Comparison) -> dict[str, tuple[str | None, str | None]]:
    """Return the fields that differ, each with its text before and after; `None` if it has no value.

    They are in the order of forms, in which long texts come last. Raises `ChangePurged`.
    """
    old = _fields(comparison.first, comparison.before, comparison.old)
    new = _fields(comparison.last or comparison.first, comparison.after, comparison.new)
    return {
        name: (old.get(name) or None, new.get(name) or None)
        for name in old or new
        if old.get(name, "") != new.get(name, "")
    }


def diff_lines(texts: Mapping[str, tuple[str | None, str | None]]) -> Iterator[str]:
    """Yield the lines of a diff, with `-` and `+` at the start of lines."""
    for name, (old, new) in texts.items():
        if "\n" in (old or "") + (new or ""):
            yield f"@@ {name} @@"
            yield from unified_lines((old or "").splitlines(), (new or "").splitlines())
            continue
        if old is not None:
            yield f"-{name}: {old}"
        if new is not None:
            yield f"+{name}: {new}"


def _fields(change: Change, entity: Entity | Purged | None, content: bytes | None) -> dict[str, str]:
    """Return the fields as text; for a resource, its content instead of the checksum."""
    if isinstance(entity, Purged):
        raise ChangePurged(change.seq, entity.by, entity.at)
    if entity is None:
        return {}
    fields = {field.name: field.text(entity) for field in type_of(entity).edited}
    if isinstance(entity, Resource):
        del fields["sha256"]
        fields["content"] = "" if content is None else _content_text(entity, content)
    return fields


def _content_text(resource: Resource, content: bytes) -> str:
    try:
        if resource.is_text:
            return content.decode()
    except UnicodeDecodeError:
        pass
    return f"({len(content):,} bytes, SHA-256 {resource.sha256})"
