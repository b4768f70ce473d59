"""Prompty's files: `NAME.prompty` with front matter and a Jinja template.

`inputs` declares the arguments, as a mapping from names to defaults or tables, or as a list of tables. One
with a `default` is optional; one without is required unless it says `required: false`. A `sample` (or
`example`) is no default; names that only `sample` mentions are optional. The lines that give the roles
(`system:`, `user:`) stay as they are. With `template: mustache` the text is translated.
"""

from __future__ import annotations

from dittybag.library.formats.argument_declarations import DeclaredArgument, declared, signature
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.dotprompt import handlebars_draft
from dittybag.library.formats.front_matter import FrontMatterDocument
from dittybag.library.formats.handlebars import translated
from dittybag.library.formats.handlebars_lexer import Untranslatable
from dittybag.library.formats.markdown import description
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.summary_text import titled
from dittybag.library.formats.yaml_nodes import YamlNode, text_of


def draft(file: str, key: str, document: FrontMatterDocument, notes: Diagnostics) -> ParsedPrompt | None:
    """The prompt in a `.prompty` file; None if it cannot be translated."""
    wanted = _wanted(document, notes)
    if "mustache" in _engine(document.fields.get("template")):
        found = signature(wanted, notes, rename=True)
        done = translated(document.body, found.names, mustache=True)
        if isinstance(done, Untranslatable):
            notes.error(f"This cannot be read: {done.message}", done.line + document.lines_before)
            return None
        return handlebars_draft(file, key, document, (found, done), notes)
    found = signature(wanted, notes, rename=False)
    return ParsedPrompt(
        key=key,
        title=titled(document.text("title") or document.text("name")),
        description=description(document, notes),
        arguments=found.arguments,
        defaults=found.defaults,
        text=document.body,
        template=True,
        file=file,
        lines_before=document.lines_before,
    )


def _wanted(document: FrontMatterDocument, notes: Diagnostics) -> list[DeclaredArgument]:
    wanted: list[DeclaredArgument] = []
    for field in ("inputs", "inputSchema"):
        if (node := document.fields.get(field)) is not None:
            wanted += declared(_properties(node), notes, scalar="default", required=True)
    sample = document.fields.get("sample")
    if sample is not None and isinstance(sample.value, dict):
        known = {one.written for one in wanted}
        wanted += [
            DeclaredArgument(written=name, line=value.line)
            for name, value in sample.value.items()
            if name not in known
        ]
    return wanted


def _properties(node: YamlNode) -> YamlNode:
    """The inputs themselves, which some versions put one level deeper."""
    inner = node.value.get("properties") if isinstance(node.value, dict) else None
    return inner if inner is not None and not isinstance(inner.value, str) else node


def _engine(node: YamlNode | None) -> str:
    """`template: mustache`, or a table that says so under `type`, `format` or `format.kind`."""
    for member in ("format", "type", "kind"):
        if node is not None and isinstance(node.value, dict):
            node = node.value.get(member, node)
    return (text_of(node) or "").lower()
