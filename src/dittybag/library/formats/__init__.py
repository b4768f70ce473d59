"""Prompt file formats: detect the format of a file and parse its prompts.

`detect_formats` only uses paths and is cheap. `read` parses untrusted text and must run in a child process.
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
    """Parse the prompts of a file, and collect its problems. Never raises."""
    from dittybag.library.formats.format_readers import parse_content

    return parse_content(format, file, content)
