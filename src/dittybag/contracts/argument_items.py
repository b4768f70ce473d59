"""Arguments that are arrays of objects: their schema, and their validation.

Such an argument is a `list[Any]` with the schema of its items inside: several clients do not resolve
references inside a schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from dittybag.contracts.error_formats import problem_of
from dittybag.domain.errors import require
from dittybag.protocol.argument_schemas import convert, find_violations, without_nulls
from dittybag.protocol.types import JsonObject

Item = TypeVar("Item", bound=Struct)


#: The schema of a declared argument of a prompt.
ARGUMENT_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "description": {"type": "string"},
        "required": {"type": "boolean"},
        "choices": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
}


def parse_items(field: str, values: Sequence[Any], kind: type[Item], schema: JsonObject) -> list[Item]:
    """Return the items of an argument. `null` counts as absent. Raises `Invalid` with all problems."""
    given = [without_nulls(value, schema) if isinstance(value, dict) else value for value in values]
    of_items = {"type": "object", "properties": {field: {"type": "array", "items": schema}}}
    known = tuple(schema["properties"])
    require(problem_of(violation, known) for violation in find_violations({field: given}, of_items))
    return [convert(value, kind) for value in given]
