"""Entities as Markdown files for editing: front matter with all fields, then the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct

from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.text import one_line
from dittybag.exchange.record_front_matter import format_record, parse_fields, split_front_matter

T = TypeVar("T", bound=Struct)

_FENCE: Final = "---\n"


def format_document(fields: Mapping[str, Any], body: str, *comments: str) -> str:
    """Return a file with these fields, also the empty ones, below the comments, and with this text."""
    notes = "".join(f"# {comment}\n" for comment in comments)
    lines = "".join(_format_field(name, value) for name, value in fields.items())
    return f"{_FENCE}{notes}{lines}{_FENCE}{body}"


def _format_field(name: str, value: Any) -> str:
    line = format_record({name: value}).decode()
    empty = "[]" if isinstance(value, tuple) else '""'
    return line or f"{name}: {empty}\n"


def parse_document(text: str, fields: type[T]) -> tuple[T | None, str]:
    """Return the fields and the text of a file; without front matter, no fields. Raises `Invalid`."""
    head, body = split_front_matter(text)
    if not head and body == text:
        names = "|".join(fields.__struct_fields__)
        if re.match(rf"\W*(?:{names}):", text):
            raise Invalid([Problem("", "the front matter has no beginning: the first line must be ---")])
        return None, text
    known = fields.__struct_fields__
    for name in parse_fields(head, dict[str, Any]):
        if name not in known:
            problem = f"'{one_line(name, 100)}' is not a field; the fields are {', '.join(known)}"
            raise Invalid([Problem(name, problem)])
    return parse_fields(head, fields), body
