"""Prompty files: `NAME.prompty` with front matter and a Jinja template.

`inputs` declares the arguments, as a mapping from names to defaults or tables, or as a list of tables. An
argument with a `default` is optional; without one it is required unless it has `required: false`. A
`sample` (or `example`) is not a default; names that only occur in `sample` are optional. Role lines
(`system:`, `user:`) are kept. With `template: mustache` the text is translated to Jinja.
"""

from __future__ import annotations

from dittybag.library.formats.argument_declarations import (
    DeclaredArgument,
    build_signature,
    parse_declarations,
)
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.dotprompt import build_handlebars_prompt
from dittybag.library.formats.front_matter import FrontMatterDocument
from dittybag.library.formats.handlebars import translate
from dittybag.library.formats.markdown import build_prompt
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.yaml_nodes import YamlNode, mapping_of, text_of


def parse(document: FrontMatterDocument, diagnostics: Diagnostics) -> ParsedPrompt | None:
    """Parse a `.prompty` file; None if its template cannot be translated."""
    is_mustache = "mustache" in _engine(document.fields.get("template"))
    found = build_signature(_declared_inputs(document, diagnostics), diagnostics, rename=is_mustache)
    if is_mustache:
        translation = translate(document.body, found.names, mustache=True)
        return build_handlebars_prompt(document, found, translation, diagnostics)
    return build_prompt(document, diagnostics, found, is_template=True)


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


def _engine(node: YamlNode | None) -> str:
    """The template engine: `template: NAME`, or `type`, `format` or `format.kind` in a table."""
    for member in ("format", "type", "kind"):
        node = mapping_of(node).get(member, node)
    return (text_of(node) or "").lower()
