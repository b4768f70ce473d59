"""Fabric patterns: a folder with a `system.md`, named after the folder.

Fabric's piped input is the optional argument `input`: it replaces `{{input}}`, or is appended after a blank
line. `{{name}}` becomes an optional argument. Fabric's plugins (`{{plugin:text:upper x}}`) and everything
else are kept verbatim. A `user.md` is not read, because Fabric rarely uses it: the user's text is the
input. Patterns have no descriptions and all start with the same heading, so the first sentence below it is
the description.
"""

from __future__ import annotations

import re
from typing import Final

from dittybag.domain.prompts import MAX_ARGUMENTS
from dittybag.library.formats.argument_declarations import DeclaredArgument, build_signature
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.escaping import escape
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.summary_text import first_line

_VARIABLE: Final = re.compile(r"\{\{[ \t]*([A-Za-z_]\w{0,99})[ \t]*\}\}", re.ASCII)


def parse(file: str, key: str, text: str, diagnostics: Diagnostics) -> ParsedPrompt:
    """Parse a `system.md`."""
    used = list(dict.fromkeys(found[1] for found in _VARIABLE.finditer(text)))
    declared = [DeclaredArgument(source_name="input", description="The text to apply the pattern to")]
    declared += [DeclaredArgument(source_name=name) for name in used if name != "input"]
    if len(declared) > MAX_ARGUMENTS:
        diagnostics.warning(
            f"The pattern has more than {MAX_ARGUMENTS} variables; the others are kept as text"
        )
    found = build_signature(declared[:MAX_ARGUMENTS], diagnostics, rename=True)
    pieces = []
    at = 0
    for variable in _VARIABLE.finditer(text):
        if variable[1] in found.names:
            pieces += [escape(text[at : variable.start()]), f"{{{{ {found.names[variable[1]]} }}}}"]
            at = variable.end()
    pieces.append(escape(text[at:]))
    if "input" not in used:
        pieces.append(append_input(text))
    return ParsedPrompt(
        key=key,
        description=first_line(text, headings=False),
        arguments=found.arguments,
        text="".join(pieces),
        template=True,
        file=file,
    )


def append_input(text: str) -> str:
    """Template source that appends the input after a blank line."""
    gap = "" if text.endswith(("\n\n", "\n\r\n")) else "\n" if text.endswith("\n") else "\n\n"
    return f"{{% if input %}}{gap}{{{{ input }}}}{{% endif %}}"
