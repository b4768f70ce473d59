"""The front matter of a `SKILL.md` as JSON values, as a client that reads the same file sees it.

Unlike the front matter of prompts, it must be valid YAML: clients compare it with the file, field by field,
and do not load a skill that differs. Plain scalars have the types of the core schema of YAML 1.2.
"""

from __future__ import annotations

import re
from typing import Any, Final

from dittybag.yaml_nodes import YamlNode, YamlProblem, parse_yaml

#: Front matter that is longer is not parsed.
MAX_HEADER_CHARS: Final = 32 * 1024

_OPENING: Final = re.compile(r"---[ \t]*\r?\n")
_CLOSING: Final = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)

_CONSTANTS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
#: Longer numbers stay text: most clients cannot represent them.
_NUMBERS: Final = (
    (re.compile(r"[-+]?[0-9]{1,100}"), int),
    (re.compile(r"0o[0-7]{1,100}|0x[0-9a-fA-F]{1,100}"), lambda text: int(text, 0)),
    (re.compile(r"[-+]?(?:\.[0-9]{1,100}|[0-9]{1,100}(?:\.[0-9]{0,100})?)(?:[eE][-+]?[0-9]{1,2})?"), float),
)


class InvalidHeader(Exception):
    """The front matter cannot be read. The message says why."""


def split_header(content: str) -> str:
    """Return the YAML at the top of a `SKILL.md`. Raises `InvalidHeader`."""
    opening = _OPENING.match(content)
    closing = None if opening is None else _CLOSING.search(content, opening.end())
    if opening is None or closing is None:
        raise InvalidHeader("it does not begin with front matter between two `---` lines")
    if closing.start() - opening.end() > MAX_HEADER_CHARS:
        raise InvalidHeader(f"its front matter is longer than {MAX_HEADER_CHARS // 1024} KiB")
    return content[opening.end() : closing.start()]


def parse_header(text: str) -> dict[str, Any]:
    """Return the fields of front matter. Raises `InvalidHeader`."""
    document = parse_yaml(text, 1)
    if isinstance(document, YamlProblem):
        line = "" if document.line is None else f" in line {document.line}"
        raise InvalidHeader(f"its front matter is not valid YAML{line}: {document.message}")
    if document is None or not isinstance(document.value, dict):
        raise InvalidHeader("its front matter has no fields")
    return {key: _json_value(value) for key, value in document.value.items()}


def _json_value(node: YamlNode) -> Any:
    if isinstance(node.value, list):
        return [_json_value(item) for item in node.value]
    if isinstance(node.value, dict):
        return {key: _json_value(value) for key, value in node.value.items()}
    return _scalar(node.value) if node.plain else node.value


def _scalar(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    for pattern, convert in _NUMBERS:
        if pattern.fullmatch(text):
            return convert(text)
    return text
