"""Fabric patterns: a folder with a `system.md`, named after the folder.

Fabric's piped input is the optional argument `input`: it replaces `{{input}}`, or is appended after a blank
line. `{{name}}` becomes an optional argument. Fabric's plugins (`{{plugin:text:upper x}}`) and everything
else are kept verbatim. A `user.md` is not read, because Fabric rarely uses it: the user's text is the
input. Patterns have no descriptions and all start with the same heading, so the first sentence below it is
the description.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dittybag.domain.prompts import MAX_ARGUMENTS
from dittybag.library.formats.argument_declarations import DeclaredArgument, build_signature
from dittybag.library.formats.escaping import replace_placeholders
from dittybag.library.formats.parsed_prompt import Diagnostics, ParsedPrompt
from dittybag.library.formats.summary_text import first_line

_VARIABLE: Final = re.compile(r"\{\{[ \t]*([A-Za-z_]\w{0,99})[ \t]*\}\}", re.ASCII)


def read(text: str, diagnostics: Diagnostics) -> Iterator[ParsedPrompt]:
    """Parse a `system.md`."""
    used = list(dict.fromkeys(found[1] for found in _VARIABLE.finditer(text)))
    declared = [DeclaredArgument(source_name="input", description="The text to apply the pattern to")]
    declared += [DeclaredArgument(source_name=name) for name in used if name != "input"]
    if len(declared) > MAX_ARGUMENTS:
        diagnostics.warning(
            f"The pattern has more than {MAX_ARGUMENTS} variables; the others are kept as text"
        )
    found = build_signature(declared[:MAX_ARGUMENTS], diagnostics, rename=True)

    def tag(variable: re.Match[str]) -> str | None:
        name = found.names.get(variable[1])
        return None if name is None else f"{{{{ {name} }}}}"

    source = replace_placeholders(text, _VARIABLE.finditer(text), tag)
    yield ParsedPrompt(
        key=diagnostics.key,
        description=first_line(text, headings=False),
        arguments=found.arguments,
        text=source if "input" in used else source + append_input(text),
        template=True,
        file=diagnostics.file,
    )


def append_input(text: str) -> str:
    """Template source that appends the input after a blank line."""
    gap = "" if text.endswith(("\n\n", "\n\r\n")) else "\n" if text.endswith("\n") else "\n\n"
    return f"{{% if input %}}{gap}{{{{ input }}}}{{% endif %}}"
