"""The main program of a child process: reads one job per line and writes one result per line.

It uses the standard library's JSON module, because every other import delays the first render.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

from dittybag.library.render.resource_limits import READY_LIMITED, READY_UNLIMITED, apply_limits, deadline

#: The parent never sends a longer job.
_JOB_BYTES: Final = 64 * 1024 * 1024


def main(role: str) -> None:
    """Run the jobs of a role, "templates" or "files", until the parent closes the socket."""
    run_job = _job_runner(role)
    # Standard input is one end of a socket pair.
    connection = socket.socket(fileno=0)
    lines = connection.makefile("rb")
    connection.sendall(READY_LIMITED if apply_limits() else READY_UNLIMITED)
    while line := lines.readline(_JOB_BYTES):
        with deadline():
            begun = perf_counter()
            result = run_job(json.loads(line))
            # Reported to the parent, because related jobs share one time limit.
            result["seconds"] = perf_counter() - begun
            text = json.dumps(result)
        connection.sendall(text.encode() + b"\n")


def _job_runner(role: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    if role == "files":
        from dittybag.library.render import child_files

        return child_files.run_job
    from dittybag.library.render import child_templates

    return child_templates.run_job


if __name__ == "__main__":
    main(sys.argv[1])
