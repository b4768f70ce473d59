"""Agent Skills: a folder with a `SKILL.md`, named after the folder.

The `name` in the front matter is the title. The text is used verbatim, unless it takes arguments
(`$ARGUMENTS`, an `argument-hint` or an `arguments:` list); then it is parsed like a command. The other
files of the folder are not read: the agent that runs the skill reads them there.
"""

from __future__ import annotations

from dittybag.library.formats import claude_command, markdown
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.front_matter import FrontMatterDocument
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.prompt_names import skill_key
from dittybag.library.formats.summary_text import normalise_title


def parse(file: str, key: str, document: FrontMatterDocument, diagnostics: Diagnostics) -> ParsedPrompt:
    """Parse a `SKILL.md`."""
    key = key or skill_key(document.text("name"))
    if claude_command.uses_jinja(document, diagnostics):
        return markdown.parse(file, key, document, diagnostics)
    has_arguments = any(field in document.fields for field in ("argument-hint", "arguments"))
    if has_arguments or claude_command.takes_arguments(document):
        return claude_command.parse(file, key, document, diagnostics)
    return ParsedPrompt(
        key=key,
        title=normalise_title(document.text("title") or document.text("name")),
        description=markdown.description(document, diagnostics),
        text=document.body,
        file=file,
        lines_before=document.lines_before,
    )
