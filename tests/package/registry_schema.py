"""The rules of the MCP registry for `server.json`, restated for the fields that Dittybag's entry uses.

Source: the repository modelcontextprotocol/registry, docs/reference/server-json, looked up on 2026-11-18: the
newest released schema is of 2025-12-11, and the draft after it differs only in fields that the entry does not
use. The registry allows unknown fields; these rules reject them, so that a misspelt field is found.
"""

from __future__ import annotations

from typing import Any, Final

_STRING: Final = {"type": "string"}
_URI: Final = {"type": "string", "format": "uri"}
_VERSION: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    # The registry rejects ranges such as ^1.2, ~1.2, >=1.2, 1.x and 1.*, and "latest".
    "pattern": r"^[0-9]+(\.[0-9]+)*([-.+]?[0-9A-Za-z]+)*$",
    "not": {"pattern": r"(^|\.)[xX](\.|$)"},
}
_INPUT: Final[dict[str, Any]] = {
    "description": _STRING,
    "value": _STRING,
    "default": _STRING,
    "placeholder": _STRING,
    "format": {"enum": ["string", "number", "boolean", "filepath"]},
    "isRequired": {"type": "boolean"},
    "isSecret": {"type": "boolean"},
    "choices": {"type": "array", "items": _STRING},
}


def _fields(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_POSITIONAL: Final = _fields({"type": {"const": "positional"}, **_INPUT}, "type", "value")
_NAMED: Final = _fields({"type": {"const": "named"}, "name": _STRING, **_INPUT}, "type", "name")
_ARGUMENTS: Final = _list({"anyOf": [_POSITIONAL, _NAMED]})
_PACKAGE: Final = _fields(
    {
        "registryType": {"const": "pypi"},
        "identifier": {"const": "dittybag"},
        "version": _VERSION,
        "runtimeHint": {"const": "uvx"},
        "transport": _fields({"type": {"const": "stdio"}}, "type"),
        "runtimeArguments": _ARGUMENTS,
        "packageArguments": _ARGUMENTS,
        "environmentVariables": _list(_fields({"name": _STRING, **_INPUT}, "name")),
    },
    "registryType",
    "identifier",
    "version",
    "transport",
)
SCHEMA: Final = _fields(
    {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {
            "type": "string",
            "minLength": 3,
            "maxLength": 200,
            "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$",
        },
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": _VERSION,
        "websiteUrl": _URI,
        "repository": _fields({"url": _URI, "source": {"const": "github"}}, "url", "source"),
        "packages": {**_list(_PACKAGE), "minItems": 1},
    },
    "$schema",
    "name",
    "description",
    "version",
    "repository",
    "packages",
)
