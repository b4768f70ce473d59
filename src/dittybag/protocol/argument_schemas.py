"""JSON Schemas of argument structs, and validation of values against them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from dittybag.protocol.jsonrpc import has_surrogate
from dittybag.protocol.types import JsonObject
from dittybag.protocol.wire_errors import Violation

T = TypeVar("T")

#: At most this many violations are reported.
MAX_VIOLATIONS: Final = 20

_REF: Final = "#/$defs/{name}"


class NoArguments(Struct, frozen=True):
    """The argument struct of a tool without arguments."""


def schema_of(kind: Any) -> JsonObject:
    """Return the JSON Schema of a type.

    The schema of a struct is inlined at the root. Class names are not used as titles.
    """
    (root,), definitions = msgspec.json.schema_components([kind], ref_template=_REF)
    for name, definition in definitions.items():
        for field, field_schema in definition.get("properties", {}).items():
            definition["properties"][field] = _merge_null(field_schema)
        if definition.get("title") == name:
            del definition["title"]
        if definition.get("required") == []:
            del definition["required"]
    if "$ref" not in root:
        return root
    own = root["$ref"].removeprefix("#/$defs/")
    schema = dict(definitions[own])
    schema.pop("description", None)
    if not _refers_to(definitions, own):
        del definitions[own]
    if definitions:
        schema["$defs"] = definitions
    return schema


def _merge_null(schema: JsonObject) -> JsonObject:
    """Replace `anyOf` with a list of types for a type that may be null. Several clients refuse `anyOf`."""
    match schema.get("anyOf"):
        case [{"type": str(kind)} as choice, {"type": "null"}]:
            others = {name: value for name, value in schema.items() if name != "anyOf"}
            return {**choice, **others, "type": [kind, "null"]}
    return schema


def _refers_to(schema: Any, name: str) -> bool:
    if isinstance(schema, dict):
        return schema.get("$ref") == _REF.format(name=name) or any(
            _refers_to(item, name) for item in schema.values()
        )
    return isinstance(schema, list) and any(_refers_to(item, name) for item in schema)


def convert(arguments: JsonObject, kind: type[T]) -> T:
    """Convert arguments to a struct. Raises `msgspec.ValidationError`, which names only the first problem."""
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError:
        # JSON has a single number type: 5.0 is an integer in JSON Schema, but a float to the decoder.
        return msgspec.convert(_whole_floats_to_int(arguments), kind)


def without_nulls(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """Return the arguments without nulls for optional arguments that do not accept null.

    Models often send every argument of a tool and set the unused ones to null.
    """
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return {
        name: value
        for name, value in arguments.items()
        if value is not None or name in required or _allows_null(properties.get(name, {}))
    }


def _allows_null(schema: JsonObject) -> bool:
    if "anyOf" in schema:
        return any(_allows_null(choice) for choice in schema["anyOf"])
    types = _allowed_types(schema)
    return "null" in types or None in schema.get("enum", ()) or not (types or "enum" in schema)


def _whole_floats_to_int(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _whole_floats_to_int(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_floats_to_int(item) for item in value]
    return value


def surrogate_violations(value: Any, path: str = "") -> Iterator[Violation]:
    """Yield a violation for every string that contains a lone surrogate."""
    if isinstance(value, str):
        if has_surrogate(value):
            yield Violation(path, "text", "must be valid Unicode text (it contains a lone surrogate)")
    elif isinstance(value, dict):
        for key, item in value.items():
            if has_surrogate(key):
                shown = key.encode("ascii", "backslashreplace").decode()
                yield Violation(_join_path(path, shown), "text", "has a name that is not valid Unicode text")
            else:
                yield from surrogate_violations(item, _join_path(path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from surrogate_violations(item, f"{path}[{index}]")


def find_violations(value: Any, schema: JsonObject) -> list[Violation]:
    """Return the violations of `schema` in `value`.

    Supports the subset of JSON Schema that msgspec generates. Other keywords are ignored.
    """
    found: list[Violation] = []
    for violation in _check(value, schema, "", schema.get("$defs", {})):
        found.append(violation)
        if len(found) == MAX_VIOLATIONS:
            break
    return found


def _check(
    value: Any, schema: JsonObject, path: str, definitions: Mapping[str, JsonObject]
) -> Iterator[Violation]:
    if reference := schema.get("$ref"):
        schema = definitions.get(reference.removeprefix("#/$defs/"), {})
    if choices := schema.get("anyOf"):
        yield from _check_choices(value, choices, path, definitions)
        return
    if "enum" in schema:
        if not any(value == item and type(value) is type(item) for item in schema["enum"]):
            allowed = ", ".join(_quote_value(item) for item in schema["enum"])
            yield Violation(path, "enum", f"must be one of {allowed}, not {_quote_value(value)}")
        return
    expected = _allowed_types(schema)
    if expected and not any(_has_type(value, name) for name in expected):
        allowed = " or ".join(_describe_allowed(name, schema) for name in expected)
        yield Violation(path, "type", f"must be {allowed}, not {_describe_type(value)}")
        return
    if isinstance(value, str):
        yield from _check_text(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _check_number(value, schema, path)
    elif isinstance(value, list):
        yield from _check_size(len(value), schema, path, "Items", "items")
        if isinstance(items := schema.get("items"), dict):
            for index, item in enumerate(value):
                yield from _check(item, items, f"{path}[{index}]", definitions)
    elif isinstance(value, dict):
        yield from _check_object(value, schema, path, definitions)


def _check_choices(
    value: Any, choices: list[JsonObject], path: str, definitions: Mapping[str, JsonObject]
) -> Iterator[Violation]:
    attempts = [list(_check(value, choice, path, definitions)) for choice in choices]
    if not all(attempts):
        return
    # Report the violations of the first alternative whose type matches.
    same_type = [found for found in attempts if not any(v.rule == "type" and v.path == path for v in found)]
    if same_type:
        yield from same_type[0]
        return
    allowed = [_TYPES[name] for choice in choices for name in _allowed_types(choice)]
    yield Violation(
        path, "type", f"must be {' or '.join(allowed) or 'of another type'}, not {_describe_type(value)}"
    )


def _allowed_types(schema: JsonObject) -> list[str]:
    """Return the types that a schema allows; empty if it does not restrict them."""
    named = schema.get("type", [])
    return [name for name in ([named] if isinstance(named, str) else named) if name in _TYPES]


def _check_text(value: str, schema: JsonObject, path: str) -> Iterator[Violation]:
    if schema.get("minLength") == 1 and not value:
        yield Violation(path, "minLength", "must not be empty")
    else:
        yield from _check_size(len(value), schema, path, "Length", "characters")
    pattern = schema.get("pattern")
    if pattern and not re.search(pattern, value):
        yield Violation(path, "pattern", f"must match the pattern {pattern}")


_BOUNDS: Final[tuple[tuple[str, Callable[[float, float], bool], str], ...]] = (
    ("minimum", operator.ge, "at least"),
    ("maximum", operator.le, "at most"),
    ("exclusiveMinimum", operator.gt, "more than"),
    ("exclusiveMaximum", operator.lt, "less than"),
)


def _check_number(value: float, schema: JsonObject, path: str) -> Iterator[Violation]:
    for rule, is_within, words in _BOUNDS:
        limit = schema.get(rule)
        if limit is not None and not is_within(value, limit):
            yield Violation(path, rule, f"must be {words} {limit}, not {_quote_value(value)}")
    multiple = schema.get("multipleOf")
    if multiple and value % multiple:
        yield Violation(path, "multipleOf", f"must be a multiple of {multiple}, not {_quote_value(value)}")


def _check_size(size: int, schema: JsonObject, path: str, noun: str, unit: str) -> Iterator[Violation]:
    least, most = schema.get(f"min{noun}"), schema.get(f"max{noun}")
    if least is not None and size < least:
        units = unit.removesuffix("s") if least == 1 else unit
        yield Violation(path, f"min{noun}", f"must have at least {least} {units}, not {size}")
    if most is not None and size > most:
        units = unit.removesuffix("s") if most == 1 else unit
        yield Violation(path, f"max{noun}", f"must have at most {most} {units}, not {size}")


def _check_object(
    value: JsonObject, schema: JsonObject, path: str, definitions: Mapping[str, JsonObject]
) -> Iterator[Violation]:
    properties: Mapping[str, JsonObject] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield Violation(_join_path(path, name), "required", "is required")
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in properties:
            yield from _check(item, properties[name], _join_path(path, name), definitions)
        elif others is False:
            known = ", ".join(properties) or "none"
            yield Violation(
                _join_path(path, _clip(name)),
                "additionalProperties",
                f"is not a known field (known: {known})",
            )
        elif isinstance(others, dict):
            yield from _check(item, others, _join_path(path, _clip(name)), definitions)


_TYPES: Final = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def _describe_allowed(name: str, schema: JsonObject) -> str:
    if name == "integer" and "minimum" in schema and "maximum" in schema:
        return f"an integer from {schema['minimum']} to {schema['maximum']}"
    return _TYPES[name]


def _has_type(value: Any, expected: str) -> bool:
    if expected == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    if expected == "number":
        return type(value) in (int, float)
    return type(value) is _PYTHON_TYPES[expected]


_PYTHON_TYPES: Final[dict[str, type]] = {
    "string": str,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def _describe_type(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    for name, kind in _PYTHON_TYPES.items():
        if type(value) is kind:
            return _TYPES[name]
    return f"the number {_quote_value(value)}"


def _quote_value(value: Any) -> str:
    if isinstance(value, str):
        # Only the beginning is shown.
        value = value[:_SHOWN_CHARACTERS]
    text = (
        msgspec.json.encode(value).decode()
        if not isinstance(value, str) or not has_surrogate(value)
        else "this"
    )
    return _clip(text)


_SHOWN_CHARACTERS: Final = 61


def _clip(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[:most] + "..."


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
