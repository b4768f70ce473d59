"""Agent Skills: a folder with a `SKILL.md`, called by the folder.

Its front matter's `name` is the title. The text is handed out as it is, unless it takes arguments
(`$ARGUMENTS`, an `argument-hint` or an `arguments:` list), then it is read as a command is. The other files
of the folder are the skill's own: whoever runs it reads them there.
"""

from __future__ import annotations

from dittybag.library.formats import claude_command, markdown
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.front_matter import FrontMatterDocument
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.prompt_names import own_key
from dittybag.library.formats.summary_text import titled


def draft(file: str, key: str, document: FrontMatterDocument, notes: Diagnostics) -> ParsedPrompt:
    """The prompt in a `SKILL.md`."""
    key = key or own_key(document.text("name"))
    if claude_command.is_jinja(document, notes):
        return markdown.draft(file, key, document, notes)
    has_arguments = any(field in document.fields for field in ("argument-hint", "arguments"))
    if has_arguments or claude_command.takes_arguments(document):
        return claude_command.draft(file, key, document, notes)
    return ParsedPrompt(
        key=key,
        title=titled(document.text("title") or document.text("name")),
        description=markdown.description(document, notes),
        text=document.body,
        file=file,
        lines_before=document.lines_before,
    )
