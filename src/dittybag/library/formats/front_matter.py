"""Front matter: the YAML between two `---` lines at the top of a text file.

Much of what people write there is nearly YAML (`argument-hint: [a] [b]`, `description: Foo: bar`). What
cannot be read as a whole is read field by field, a field that cannot be read as YAML is the text after its
colon, and its author gets a warning. What starts like front matter but has no end or no fields is text.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.yaml_nodes import YamlNode, parsed, text_of

_FENCE: Final = re.compile(r"---[ \t]*\r?")
_FIELD: Final = re.compile(r"([A-Za-z_][\w.-]{0,99})[ \t]*:(?:[ \t]+(.*))?")


class FrontMatterDocument(Struct, frozen=True):
    """A text, and what its front matter says about it."""

    fields: dict[str, YamlNode]
    body: str
    #: Lines of the file that stand before the body.
    lines_before: int = 0

    def text(self, field: str) -> str | None:
        return text_of(self.fields.get(field))


def read_document(content: str, notes: Diagnostics, *, comments_first: bool = False) -> FrontMatterDocument:
    """Take a file apart. With `comments_first`, comment lines (`#`) may stand above the front matter."""
    lines = content.split("\n")
    start = _start(lines, comments_first=comments_first)
    if start is None:
        return FrontMatterDocument({}, content)
    end = next((at for at in range(start + 1, len(lines)) if _FENCE.fullmatch(lines[at])), None)
    if end is None:
        return FrontMatterDocument({}, content)
    fields = _fields(lines[start + 1 : end], start + 1, notes)
    if fields is None:
        return FrontMatterDocument({}, content)
    return FrontMatterDocument(fields, "\n".join(lines[end + 1 :]), end + 1)


def _start(lines: list[str], *, comments_first: bool) -> int | None:
    for at, line in enumerate(lines):
        if _FENCE.fullmatch(line):
            return at
        if not comments_first or (line.strip() and not line.startswith("#")):
            return None
    return None


def _fields(lines: list[str], lines_before: int, notes: Diagnostics) -> dict[str, YamlNode] | None:
    """None if this is no front matter."""
    whole = parsed("\n".join(lines), lines_before)
    if whole is None:
        return {}
    if isinstance(whole, YamlNode):
        return whole.value if isinstance(whole.value, dict) else None
    fields = _field_by_field(lines, lines_before)
    if fields:
        notes.warning(
            f"Front matter is not valid YAML ({whole.message}); it was read line by line. "
            "Put values with special characters in quotes",
            whole.line,
        )
    return fields or None


def _field_by_field(lines: list[str], lines_before: int) -> dict[str, YamlNode]:
    found = [(at, field[1]) for at, line in enumerate(lines) if (field := _FIELD.fullmatch(line.rstrip()))]
    ends = [at for at, _ in found[1:]] + [len(lines)]
    return {
        name: _field(name, lines[at:end], lines_before + at)
        for (at, name), end in zip(found, ends, strict=False)
    }


def _field(name: str, lines: list[str], lines_before: int) -> YamlNode:
    alone = parsed("\n".join(lines), lines_before)
    if isinstance(alone, YamlNode) and isinstance(alone.value, dict) and list(alone.value) == [name]:
        return alone.value[name]
    _, _, first = lines[0].partition(":")
    words = " ".join(word for line in (first, *lines[1:]) if (word := line.strip()))
    return YamlNode(_unquoted(words), lines_before + 1, plain=True)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" else text
