"""Agent Skills: a folder with a `SKILL.md`, named after the folder.

The `name` in the front matter is the title. The text is used verbatim, unless it takes arguments
(`$ARGUMENTS`, an `argument-hint` or an `arguments:` list); then it is parsed like a command. The other
files of the folder are not read: the agent that runs the skill reads them there.
"""

from __future__ import annotations

from msgspec.structs import replace

from dittybag.library.formats import claude_command, markdown
from dittybag.library.formats.argument_declarations import Signature
from dittybag.library.formats.front_matter import FrontMatterDocument
from dittybag.library.formats.parsed_prompt import Diagnostics, ParsedPrompt
from dittybag.library.formats.prompt_names import skill_key


def parse(document: FrontMatterDocument, diagnostics: Diagnostics) -> ParsedPrompt:
    """Parse a `SKILL.md`."""
    has_arguments = any(field in document.fields for field in ("argument-hint", "arguments"))
    if claude_command.uses_jinja(document, diagnostics):
        prompt = markdown.parse(document, diagnostics)
    elif has_arguments or claude_command.takes_arguments(document):
        prompt = claude_command.parse(document, diagnostics)
    else:
        prompt = markdown.build_prompt(document, diagnostics, Signature(), is_template=False)
    return replace(prompt, key=diagnostics.key or skill_key(document.text("name")))
