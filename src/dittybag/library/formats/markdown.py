"""Markdown: a `.md` file with optional front matter.

`title` (or `name`), `description` and `arguments` are read. `arguments` may also be called `args`,
`variables`, `inputs` or `parameters`. It is a list of names, a list of tables with `name`, `description`,
`required`, `default` and `choices` (or `enum`, `options`), or a mapping from names to descriptions or such
tables. Arguments are optional unless they have `required: true`. A file that declares arguments is a Jinja
template. Any other file is used verbatim, because texts about prompts and templates often contain braces.
Without a description, the first meaningful line is the description. If the first line of the text is a
`--role` line, every `--role` line begins a message.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dittybag.domain.role_marks import find_role_lines
from dittybag.library.formats.argument_declarations import (
    DeclaredArgument,
    Signature,
    build_signature,
    parse_declarations,
)
from dittybag.library.formats.front_matter import FrontMatterDocument
from dittybag.library.formats.parsed_prompt import Diagnostics, ParsedPrompt
from dittybag.library.formats.summary_text import first_line, normalise_description, normalise_title

_ARGUMENTS: Final = ("arguments", "args", "variables", "inputs", "parameters")


def parse(document: FrontMatterDocument, diagnostics: Diagnostics) -> ParsedPrompt:
    """Parse a Markdown file."""
    found = build_signature(parse_declared_arguments(document, diagnostics), diagnostics, rename=False)
    prompt = build_prompt(document, diagnostics, found, is_template=bool(found.arguments))
    return replace(prompt, roles=find_role_lines(document.body, blank_lines_first=True))


def build_prompt(
    document: FrontMatterDocument, diagnostics: Diagnostics, signature: Signature, *, is_template: bool
) -> ParsedPrompt:
    """Build a prompt from its text, the title and description in its front matter, and its arguments."""
    return ParsedPrompt(
        key=diagnostics.key,
        title=normalise_title(document.text("title") or document.text("name")),
        description=_description(document, diagnostics),
        arguments=signature.arguments,
        defaults=signature.defaults,
        text=document.body,
        template=is_template,
        file=diagnostics.file,
        lines_before=document.lines_before,
    )


def _description(document: FrontMatterDocument, diagnostics: Diagnostics) -> str | None:
    """The description in the front matter, or else the first meaningful line of the text."""
    node = document.fields.get("description")
    if node is not None and not isinstance(node.value, str):
        diagnostics.warning("'description' must be text", node.line)
    return normalise_description(document.text("description")) or first_line(document.body)


def parse_declared_arguments(
    document: FrontMatterDocument, diagnostics: Diagnostics
) -> list[DeclaredArgument]:
    """The arguments in the front matter, from the first field that declares any."""
    for field in _ARGUMENTS:
        if field in document.fields:
            return list(parse_declarations(document.fields[field], diagnostics, scalar="description"))
    return []
