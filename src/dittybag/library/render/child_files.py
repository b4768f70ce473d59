"""Runs in the child process: parse a library file, or the front matter of a skill."""

from __future__ import annotations

from typing import Any

import msgspec

from dittybag.library.formats.format_readers import FORMATS, read
from dittybag.library.formats.skill_header import InvalidHeader, parse_header


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job of `dittybag.library.render.child_reader`."""
    if "header" in job:
        return _read_header(job["header"])
    reading: dict[str, Any] = msgspec.to_builtins(read(job["format"], job["file"], job["content"]))
    return reading


def _read_header(text: str) -> dict[str, Any]:
    try:
        return {"fields": parse_header(text), "problem": None}
    except InvalidHeader as error:
        return {"fields": {}, "problem": str(error)}


# Parsers import modules on first use. After `apply_limits` that would be too late.
for _format in FORMATS:
    read(_format, "file", "---\nname: value\n---\n{{ text }}")
