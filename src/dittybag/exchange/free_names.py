"""Numbered alternatives for names, titles and URIs that are already in use."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from dittybag.domain.entities import type_of
from dittybag.domain.names import NAME_LENGTH, name_from_title, numbered_names
from dittybag.domain.ports import Transaction
from dittybag.domain.prompts import Prompt

#: How a number is added to the value of a field.
_NUMBERED_FORMS: Final = {"title": " ({})"}
_NUMBERED_FORM: Final = "-{}"


async def rename_if_taken(transaction: Transaction, entity: Any, old: Any = None) -> Any:
    """Return a prompt or resource with unique fields that no other entity of the project except `old` uses.

    An empty name or title of a prompt is derived from the other.
    """
    if isinstance(entity, Prompt):
        name, title = entity.name or name_from_title(entity.title), entity.title or entity.name
        entity = replace(entity, name=name, title=title)
    for field in type_of(entity).unique:
        if old is None or getattr(old, field) != getattr(entity, field):
            entity = replace(entity, **{field: await _first_free(transaction, entity, field)})
    return entity


async def _first_free(transaction: Transaction, entity: Any, field: str) -> str:
    described = type_of(entity)
    form = _NUMBERED_FORMS.get(field, _NUMBERED_FORM)
    length = described.field(field).max_length or NAME_LENGTH
    for candidate in numbered_names(getattr(entity, field), form, length):
        found = await transaction.find(described.kind, project=entity.project, **{field: candidate})
        if found is None:
            return candidate
    raise AssertionError("numbered_names is infinite")
