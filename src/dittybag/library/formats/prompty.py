"""Prompty files: `NAME.prompty` with front matter and a Jinja template.

`inputs` declares the arguments, as a mapping from names to defaults or tables, or as a list of tables. An
argument with a `default` is optional; without one it is required unless it has `required: false`. A
`sample` (or `example`) is not a default; names that only occur in `sample` are optional. Templates of
another engine (`template: mustache`) are not read.

A message begins at a role line: `system:`, `user:`, `assistant:` or `developer:`, in any case, perhaps as a
heading or with attributes (`# User[name="Ann"]:`). Text before the first one is a system message. At a line
`![thread]`, which stands for earlier messages, a message of the user begins. Messages of tools
(`function:`, `tool:`) are text, because MCP has no such role.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import Final

from msgspec.structs import replace

from dittybag.domain.role_marks import RoleMark, widen
from dittybag.library.formats.argument_declarations import (
    DeclaredArgument,
    build_signature,
    parse_declarations,
)
from dittybag.library.formats.front_matter import FrontMatterDocument
from dittybag.library.formats.markdown import build_prompt
from dittybag.library.formats.parsed_prompt import Diagnostics, ParsedPrompt
from dittybag.yaml_nodes import YamlNode, mapping_of, text_of

_ROLE_LINE: Final = re.compile(
    r"^[ \t]*(?:(?:#[ \t]*)?(system|developer|user|assistant)(?:\[[^\]\n]*\])?[ \t]*:[ \t]*"
    r"|!\[thread\][^\r\n]*)\r?$",
    re.IGNORECASE | re.MULTILINE,
)
_TOOL_LINE: Final = re.compile(
    r"^[ \t]*(?:#[ \t]*)?(function|tools?)(?:\[[^\]\n]*\])?[ \t]*:[ \t]*\r?$", re.IGNORECASE | re.MULTILINE
)
_ROLES: Final = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def parse(document: FrontMatterDocument, diagnostics: Diagnostics) -> ParsedPrompt | None:
    """Parse a `.prompty` file; None if its template is not a Jinja template."""
    template = document.fields.get("template")
    if template is not None and "mustache" in _engine(template):
        diagnostics.error("Mustache templates are not read; write the template in Jinja", template.line)
        return None
    found = build_signature(_declared_inputs(document, diagnostics), diagnostics, rename=False)
    prompt = build_prompt(document, diagnostics, found, is_template=True)
    return replace(prompt, roles=_find_roles(prompt, diagnostics))


def _find_roles(prompt: ParsedPrompt, diagnostics: Diagnostics) -> tuple[RoleMark, ...]:
    text = prompt.text or ""
    marks = (
        RoleMark(*line.span(), _ROLES[(line[1] or "user").lower()]) for line in _ROLE_LINE.finditer(text)
    )
    first = next(marks, None)
    if first is None:
        return ()
    if (tool := _TOOL_LINE.search(text)) is not None:
        number = text.count("\n", 0, tool.start(1)) + 1 + prompt.lines_before
        diagnostics.warning(f"'{tool[1].lower()}:' is text: MCP has no messages with this role", number)
    before = [RoleMark(0, 0, "system")] if first.start else []
    return widen(text, chain(before, [first], marks))


def _declared_inputs(document: FrontMatterDocument, diagnostics: Diagnostics) -> list[DeclaredArgument]:
    declared: list[DeclaredArgument] = []
    for field in ("inputs", "inputSchema"):
        if (node := document.fields.get(field)) is not None:
            declared += parse_declarations(_properties(node), diagnostics, scalar="default", required=True)
    known = {argument.source_name for argument in declared}
    samples = mapping_of(document.fields.get("sample"))
    return declared + [
        DeclaredArgument(source_name=name, line=value.line)
        for name, value in samples.items()
        if name not in known
    ]


def _properties(node: YamlNode) -> YamlNode:
    """The node with the inputs, which some versions nest in `properties`."""
    inner = mapping_of(node).get("properties")
    return inner if inner is not None and not isinstance(inner.value, str) else node


def _engine(node: YamlNode) -> str:
    """The template engine: `template: NAME`, or `type`, `format` or `format.kind` in a table."""
    for member in ("format", "type", "kind"):
        node = mapping_of(node).get(member, node)
    return (text_of(node) or "").lower()
