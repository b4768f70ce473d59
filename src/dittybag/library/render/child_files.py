"""Runs in the child process: parse a library file."""

from __future__ import annotations

from typing import Any

import msgspec

from dittybag.library.formats.format_readers import FORMATS, read


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job of `dittybag.library.render.child_reader`."""
    reading: dict[str, Any] = msgspec.to_builtins(read(job["format"], job["file"], job["content"]))
    return reading


# Parsers import modules on first use. After `apply_limits` that would be too late.
for _format in FORMATS:
    read(_format, "file", "---\nname: value\n---\n{{ text }}")
