"""Formats: from the files of a library to the prompts they describe.

`detect_formats` looks at paths only and is cheap. `read` parses text that strangers wrote, and belongs into a
process that can be killed.
"""

from __future__ import annotations

from typing import Final

from dittybag.library.formats.format_detection import detect_formats
from dittybag.library.formats.parsed_prompt import ParsedFile, ParsedPrompt

__all__ = ["FORMATS", "ParsedFile", "ParsedPrompt", "detect_formats", "read"]

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


def read(format: str, file: str, content: str) -> ParsedFile:
    """The prompts in a file of this format, and what is wrong with it. Never raises."""
    from dittybag.library.formats.format_readers import reading

    return reading(format, file, content)
