"""URI templates of RFC 6570 level 1: literal text with `{variables}`."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

#: Longer URIs never match, because templates with several variables are slow to match.
MAX_URI_CHARACTERS: Final = 4096

_VARIABLE: Final = re.compile(r"\{([A-Za-z0-9_.]+)\}")


class UriTemplate(Struct, frozen=True):
    """A parsed template."""

    text: str
    variables: tuple[str, ...]
    pattern: re.Pattern[str]

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the values of the variables in `uri`, or `None` if it does not match."""
        found = self.pattern.fullmatch(uri) if len(uri) <= MAX_URI_CHARACTERS else None
        if found is None:
            return None
        # Imported on first use: it is slow to import, and many servers have no templates.
        from urllib.parse import unquote

        return {name: unquote(value) for name, value in zip(self.variables, found.groups(), strict=True)}


def parse(text: str) -> UriTemplate:
    """Parse a template. Raises `ValueError` if it is not a level 1 template."""
    parts = _VARIABLE.split(text)
    literals, variables = parts[::2], parts[1::2]
    if not variables:
        raise ValueError(f"a URI template must have at least one {{variable}}: {text!r}")
    if any("{" in literal or "}" in literal for literal in literals):
        raise ValueError(f"a URI template supports only simple {{variables}}: {text!r}")
    if len(set(variables)) != len(variables):
        raise ValueError(f"a variable occurs twice in the URI template: {text!r}")
    if any(not literal for literal in literals[1:-1]):
        raise ValueError(f"adjacent variables in a URI template need text between them: {text!r}")
    pattern = re.escape(literals[0])
    for literal in literals[1:]:
        pattern += "([^/?#]+)" + re.escape(literal)
    return UriTemplate(text, tuple(variables), re.compile(pattern))
