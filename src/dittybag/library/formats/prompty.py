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
from dittybag.library.formats.handlebars_lexer import Untranslatable
from dittybag.library.formats.markdown import description
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.summary_text import normalise_title
from dittybag.library.formats.yaml_nodes import YamlNode, text_of


def parse(
    file: str, key: str, document: FrontMatterDocument, diagnostics: Diagnostics
) -> ParsedPrompt | None:
    """Parse a `.prompty` file; None if its template cannot be translated."""
    declared = _declared_inputs(document, diagnostics)
    if "mustache" in _engine(document.fields.get("template")):
        found = build_signature(declared, diagnostics, rename=True)
        translation = translate(document.body, found.names, mustache=True)
        if isinstance(translation, Untranslatable):
            diagnostics.error(
                f"The template cannot be translated: {translation.message}",
                translation.line + document.lines_before,
            )
            return None
        return build_handlebars_prompt(file, key, document, (found, translation), diagnostics)
    found = build_signature(declared, diagnostics, rename=False)
    return ParsedPrompt(
        key=key,
        title=normalise_title(document.text("title") or document.text("name")),
        description=description(document, diagnostics),
        arguments=found.arguments,
        defaults=found.defaults,
        text=document.body,
        template=True,
        file=file,
        lines_before=document.lines_before,
    )


def _declared_inputs(document: FrontMatterDocument, diagnostics: Diagnostics) -> list[DeclaredArgument]:
    declared: list[DeclaredArgument] = []
    for field in ("inputs", "inputSchema"):
        if (node := document.fields.get(field)) is not None:
            declared += parse_declarations(_properties(node), diagnostics, scalar="default", required=True)
    sample = document.fields.get("sample")
    if sample is not None and isinstance(sample.value, dict):
        known = {argument.source_name for argument in declared}
        declared += [
            DeclaredArgument(source_name=name, line=value.line)
            for name, value in sample.value.items()
            if name not in known
        ]
    return declared


def _properties(node: YamlNode) -> YamlNode:
    """The node with the inputs, which some versions nest in `properties`."""
    inner = node.value.get("properties") if isinstance(node.value, dict) else None
    return inner if inner is not None and not isinstance(inner.value, str) else node


def _engine(node: YamlNode | None) -> str:
    """The template engine: `template: NAME`, or `type`, `format` or `format.kind` in a table."""
    for member in ("format", "type", "kind"):
        if node is not None and isinstance(node.value, dict):
            node = node.value.get(member, node)
    return (text_of(node) or "").lower()
