"""Diffs of two states of an entity by field."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from dittybag.domain.changes import Change, Purged
from dittybag.domain.display import format_moment
from dittybag.domain.due_dates import format_exact_due
from dittybag.domain.entities import Entity, Field, type_of
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.web.diff_rows import DiffRow, diff_rows

#: The contents of a resource before and after a change, which are stored separately.
Contents: TypeAlias = tuple[bytes | None, bytes | None]


class Difference(Struct, frozen=True):
    """The diff of one field."""

    label: str
    rows: list[DiffRow]


def differences(
    before: Entity | Purged | None, after: Entity | Purged | None, contents: Contents = (None, None)
) -> list[Difference]:
    """Return the diffs of the fields that differ; none if a state was purged."""
    old, new = contents
    return [
        Difference(field.label, diff_rows(_text(field, before, old), _text(field, after, new)))
        for field in _changed_fields(before, after)
    ]


def changed_labels(change: Change) -> str:
    """Return the labels of the fields that an update changed, as in `tags, content`."""
    if change.before is None or change.after is None:
        return ""
    labels = (field.label for field in _changed_fields(change.before, change.after))
    return ", ".join(label if label.isupper() else label.lower() for label in labels)


def _changed_fields(before: Entity | Purged | None, after: Entity | Purged | None) -> list[Field]:
    if isinstance(before, Purged) or isinstance(after, Purged):
        return []
    state = before if after is None else after
    return [] if state is None else type_of(state).changed_fields(before, after)


def _text(field: Field, state: Any, content: bytes | None) -> str:
    if isinstance(state, Prompt) and field.format == "json":
        return "\n\n".join(
            "\n".join(f"{name}: {_argument_text(value)}" for name, value in asdict(item).items() if value)
            for item in state.arguments
        )
    if isinstance(state, Task) and (value := getattr(state, field.name)):
        if field.name == "due_date":
            return format_exact_due(value)
        if field.format == "time":
            return format_moment(value)
        if field.format == "comments":
            return "\n\n".join(f"{item.author}, {format_moment(item.at)}:\n{item.text}" for item in value)
    if not isinstance(state, Resource) or field.format != "content":
        return field.text(state)
    if not state.is_text:
        return f"{state.size} bytes with the SHA-256 {state.sha256}"
    return (content or b"").decode("utf-8", "replace")


def _argument_text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else "yes" if value is True else str(value)
