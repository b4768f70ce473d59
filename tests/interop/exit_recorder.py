"""Runs the everything server for an official client and records how its process ended.

Official clients start a server and end it, but do not report its exit status. The report has one line for
each server process.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType


def main(report: str) -> int:
    signals: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        server.send_signal(number)

    server = subprocess.Popen([sys.executable, "-m", "tests.everything"])
    signal.signal(signal.SIGTERM, forward)
    status = server.wait()
    with Path(report).open("a") as lines:
        lines.write(json.dumps({"status": status, "signals": signals}) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
