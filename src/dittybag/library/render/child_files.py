"""Inside the child: what a library's file says."""

from __future__ import annotations

from typing import Any

import msgspec

from dittybag.library.formats import FORMATS, read


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """The answer to a job of `dittybag.library.render.child_reader`."""
    reading: dict[str, Any] = msgspec.to_builtins(read(job["format"], job["file"], job["content"]))
    return reading


# What readers import when they are first used cannot be imported later.
for _format in FORMATS:
    read(_format, "file", "---\nname: value\n---\n{{ text }}")
