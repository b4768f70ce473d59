"""The program of a child process: a job a line in, an answer a line out, until its parent hangs up.

It reads and writes JSON with the standard library, because whatever it imports delays a render.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

from dittybag.library.render.resource_limits import confine, deadline

#: The parent sends no longer jobs.
_JOB_BYTES: Final = 64 * 1024 * 1024


def main(role: str) -> None:
    """Do the jobs of a role: "templates" or "files"."""
    answer = _answer_of(role)
    # Standard input is one end of a socket pair.
    wire = socket.socket(fileno=0)
    lines = wire.makefile("rb")
    confine()
    wire.sendall(b"{}\n")
    while line := lines.readline(_JOB_BYTES):
        with deadline():
            begun = perf_counter()
            result = answer(json.loads(line))
            # A job may be one of several that belong together, and have to share the time.
            result["seconds"] = perf_counter() - begun
            text = json.dumps(result)
        wire.sendall(text.encode() + b"\n")


def _answer_of(role: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    if role == "files":
        from dittybag.library.render import child_files

        return child_files.answer
    from dittybag.library.render import child_templates

    return child_templates.answer


if __name__ == "__main__":
    main(sys.argv[1])
