"""Formats: from the files of a library to the prompts they describe.

`recognised` looks at paths only and is cheap. `read` parses text that strangers wrote, and belongs into a
process that can be killed.
"""

from __future__ import annotations

from typing import Final

from dittybag.library.formats.drafts import Draft, Reading
from dittybag.library.formats.recognise import recognised

__all__ = ["FORMATS", "Draft", "Reading", "read", "recognised"]

FORMATS: Final = (
    "twig",
    "markdown",
    "claude-command",
    "skill",
    "fabric",
    "dotprompt",
    "prompty",
    "llm-template",
)


def read(format: str, file: str, content: str) -> Reading:
    """The prompts in a file of this format, and what is wrong with it. Never raises."""
    from dittybag.library.formats.readers import reading

    return reading(format, file, content)
