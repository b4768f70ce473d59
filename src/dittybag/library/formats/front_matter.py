"""Front matter: the YAML between two `---` lines at the top of a text file.

Front matter is often not quite valid YAML (`argument-hint: [a] [b]`, `description: Foo: bar`). If it cannot
be parsed as a document, it is parsed field by field, with a warning; a field that is not valid YAML is the
text after its colon. Front matter without an end or without fields is part of the text.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from dittybag.library.formats.parsed_prompt import Diagnostics
from dittybag.yaml_nodes import YamlNode, parse_yaml, text_of

_FENCE: Final = re.compile(r"---[ \t]*\r?")
_FIELD: Final = re.compile(r"([A-Za-z_][\w.-]{0,99})[ \t]*:(?:[ \t]+(.*))?")


class FrontMatterDocument(Struct, frozen=True):
    """A text and its front matter."""

    fields: dict[str, YamlNode]
    body: str
    #: Number of lines before the body.
    lines_before: int = 0

    def text(self, field: str) -> str | None:
        return text_of(self.fields.get(field))


def parse_front_matter(content: str, diagnostics: Diagnostics) -> FrontMatterDocument:
    """Split a file into front matter and text."""
    lines = content.split("\n")
    if not _FENCE.fullmatch(lines[0]):
        return FrontMatterDocument({}, content)
    end = next((index for index in range(1, len(lines)) if _FENCE.fullmatch(lines[index])), None)
    if end is None:
        return FrontMatterDocument({}, content)
    fields = _fields(lines[1:end], 1, diagnostics)
    if fields is None:
        return FrontMatterDocument({}, content)
    return FrontMatterDocument(fields, "\n".join(lines[end + 1 :]), end + 1)


def _fields(lines: list[str], lines_before: int, diagnostics: Diagnostics) -> dict[str, YamlNode] | None:
    """The fields by name; None if this is not front matter."""
    document = parse_yaml("\n".join(lines), lines_before)
    if document is None:
        return {}
    if isinstance(document, YamlNode):
        return document.value if isinstance(document.value, dict) else None
    fields = _field_by_field(lines, lines_before)
    if fields:
        diagnostics.warning(
            f"The front matter is not valid YAML ({document.message}) and was parsed line by line. "
            "Quote values that contain special characters",
            document.line,
        )
    return fields or None


def _field_by_field(lines: list[str], lines_before: int) -> dict[str, YamlNode]:
    found = [
        (index, field[1]) for index, line in enumerate(lines) if (field := _FIELD.fullmatch(line.rstrip()))
    ]
    ends = [index for index, _ in found[1:]] + [len(lines)]
    return {
        name: _field(name, lines[index:end], lines_before + index)
        for (index, name), end in zip(found, ends, strict=False)
    }


def _field(name: str, lines: list[str], lines_before: int) -> YamlNode:
    document = parse_yaml("\n".join(lines), lines_before)
    if isinstance(document, YamlNode) and isinstance(document.value, dict) and list(document.value) == [name]:
        return document.value[name]
    _, _, first = lines[0].partition(":")
    words = " ".join(word for line in (first, *lines[1:]) if (word := line.strip()))
    return YamlNode(_unquoted(words), lines_before + 1, plain=True)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" else text
