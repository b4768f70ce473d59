"""Records as YAML, alone or as the front matter of a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from dittybag.domain.errors import Invalid, Problem
from dittybag.yaml_nodes import YamlProblem, parse_yaml, string_data

T = TypeVar("T")

#: Maximum size of the YAML fields of a file, in bytes.
FIELDS_BYTES: Final = 512 * 1024
#: The same for a task, whose comments are fields. Every character of them may be escaped.
TASK_FIELDS_BYTES: Final = 32 * 1024 * 1024
#: Maximum number of values in the YAML fields of a file.
_MAX_VALUES: Final = 20_000

_FENCE: Final = "---\n"
_OPENING: Final = re.compile(r"(?:\ufeff)?---[ \t]*\r?\n")
_CLOSING: Final = re.compile(r"^---[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
_FIELD: Final = re.compile(r"^([A-Za-z_]\w*)[ \t]*:", re.MULTILINE)
_CONFLICT: Final = re.compile(r"^(?:<{7}|={7}|>{7})(?: |\r?$)", re.MULTILINE)

#: Text that needs no quotes, because every YAML parser reads it as a string.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_.(][A-Za-z0-9_./()-]*)*")
_RESERVED_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_ESCAPED: Final = re.compile(
    r'["\\]|[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]'
)


def format_record(fields: Mapping[str, Any], body: str | None = None) -> bytes:
    """Format fields as YAML, or as front matter above `body`. Empty and false fields are omitted."""
    head = "".join(
        _field(name, value)
        for name, value in fields.items()
        if value is not False and value not in (None, "", ())
    )
    if body is None:
        return head.encode()
    return f"{_FENCE}{head}{_FENCE}{body}".encode()


def _field(name: str, value: Any) -> str:
    if isinstance(value, tuple) and isinstance(value[0], Mapping):
        return f"{name}:\n" + "".join(map(_block, value))
    return f"{name}: {_value(value)}\n"


def _block(fields: Mapping[str, Any]) -> str:
    lines = [f"{name}: {_value(value)}\n" for name, value in fields.items()]
    return "  - " + "    ".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _scalar(value)
    return f"[{', '.join(map(_value, value))}]"


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED_WORDS:
        return text
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    letter = match[0]
    if letter in '"\\':
        return f"\\{letter}"
    if letter in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[letter]
    return f"\\x{ord(letter):02x}" if ord(letter) < 256 else f"\\u{ord(letter):04x}"


def split_front_matter(text: str) -> tuple[str, str]:
    """Return the front matter and the text below it. Without front matter, all of it is text.

    Raises `Invalid`.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return "", text
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        raise Invalid([Problem("", "the front matter has no end: a second line with --- is missing")])
    return text[opening.end() : closing.start()], text[closing.end() :]


def parse_fields(head: str, type: type[T], max_bytes: int = FIELDS_BYTES) -> T:
    """Parse YAML fields. Values are strings unless `type` declares another type.

    Raises `Invalid`.
    """
    if len(head) > max_bytes:
        raise Invalid([Problem("", f"the fields are larger than {max_bytes // 1024} KiB")])
    if _CONFLICT.search(head):
        raise Invalid([Problem("", "it contains Git conflict markers; resolve the conflict first")])
    for name, count in Counter(_FIELD.findall(head)).items():
        if count > 1:
            raise Invalid([Problem(name, f"{name} occurs more than once")])
    try:
        return msgspec.convert(_parse_yaml(head) or {}, type, strict=False)
    except msgspec.ValidationError as error:
        raise Invalid([Problem("", str(error))]) from error


def _parse_yaml(text: str) -> Any:
    parsed = parse_yaml(text, max_values=_MAX_VALUES)
    if isinstance(parsed, YamlProblem):
        where = "" if parsed.line is None else f" (line {parsed.line} of the fields)"
        raise Invalid([Problem("", f"the fields are not valid YAML{where}: {parsed.message}")])
    return string_data(parsed)
