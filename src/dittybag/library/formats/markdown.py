"""Markdown: a `.md` file with optional front matter.

`title` (or `name`), `description` and `arguments` are read; the last may also be called `args`,
`variables`, `inputs` or `parameters`, and is a list of names, a list of tables with `name`, `description`,
`required`, `default` and `choices` (or `enum`, `options`), or a mapping from names to descriptions or such
tables. Arguments are optional unless they say `required: true`. A file that declares arguments is a Jinja
template; any other is handed out as it is, because much of what is written about prompts, templates and
workflows is full of braces.
Without a description, the first line that says something describes the prompt.
"""

from __future__ import annotations

from typing import Final

from dittybag.library.formats.argument_declarations import DeclaredArgument, declared, signature
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.front_matter import FrontMatterDocument
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.summary_text import described, first_line, titled

_ARGUMENTS: Final = ("arguments", "args", "variables", "inputs", "parameters")


def draft(file: str, key: str, document: FrontMatterDocument, notes: Diagnostics) -> ParsedPrompt:
    """The prompt in a Markdown file."""
    found = signature(declared_arguments(document, notes), notes, rename=False)
    return ParsedPrompt(
        key=key,
        title=titled(document.text("title") or document.text("name")),
        description=description(document, notes),
        arguments=found.arguments,
        defaults=found.defaults,
        text=document.body,
        template=bool(found.arguments),
        file=file,
        lines_before=document.lines_before,
    )


def description(document: FrontMatterDocument, notes: Diagnostics) -> str | None:
    """What the front matter says about the text, else how it begins."""
    said = document.fields.get("description")
    if said is not None and not isinstance(said.value, str):
        notes.warning("'description' must be text", said.line)
    return described(document.text("description")) or first_line(document.body)


def declared_arguments(document: FrontMatterDocument, notes: Diagnostics) -> list[DeclaredArgument]:
    """The arguments that the front matter declares, under the first of their names that is there."""
    for field in _ARGUMENTS:
        if field in document.fields:
            return list(declared(document.fields[field], notes, scalar="description"))
    return []
