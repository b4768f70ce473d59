"""Fabric's patterns: a folder with a `system.md`, called by the folder.

What Fabric pipes in is the optional argument `input`: it takes the place of `{{input}}`, else it follows
the text after a blank line. `{{name}}` with nothing but a name in it is an optional argument; Fabric's
plugins (`{{plugin:text:upper x}}`) and everything else come out as they are written. A `user.md` beside it
is not read: in Fabric it is hardly used any more, and what the user says is the input.
Patterns have no descriptions and all begin with the same heading, so the first sentence below it describes
one.
"""

from __future__ import annotations

import re
from typing import Final

from dittybag.domain.prompts import MAX_ARGUMENTS
from dittybag.library.formats.argument_declarations import DeclaredArgument, signature
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.escaping import literal
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.summary_text import first_line

_VARIABLE: Final = re.compile(r"\{\{[ \t]*([A-Za-z_]\w{0,99})[ \t]*\}\}", re.ASCII)


def draft(file: str, key: str, text: str, notes: Diagnostics) -> ParsedPrompt:
    """The prompt in a `system.md`."""
    used = list(dict.fromkeys(found[1] for found in _VARIABLE.finditer(text)))
    wanted = [DeclaredArgument(written="input", description="What the pattern is applied to")]
    wanted += [DeclaredArgument(written=name) for name in used if name != "input"]
    if len(wanted) > MAX_ARGUMENTS:
        notes.warning(f"It has more than {MAX_ARGUMENTS} variables; the others come out as they are written")
    found = signature(wanted[:MAX_ARGUMENTS], notes, rename=True)
    pieces = []
    at = 0
    for variable in _VARIABLE.finditer(text):
        if variable[1] in found.names:
            pieces += [literal(text[at : variable.start()]), f"{{{{ {found.names[variable[1]]} }}}}"]
            at = variable.end()
    pieces.append(literal(text[at:]))
    if "input" not in used:
        pieces.append(appended_input(text))
    return ParsedPrompt(
        key=key,
        description=first_line(text, headings=False),
        arguments=found.arguments,
        text="".join(pieces),
        template=True,
        file=file,
    )


def appended_input(text: str) -> str:
    """What puts the input after a text, with a blank line between."""
    gap = "" if text.endswith(("\n\n", "\n\r\n")) else "\n" if text.endswith("\n") else "\n\n"
    return f"{{% if input %}}{gap}{{{{ input }}}}{{% endif %}}"
