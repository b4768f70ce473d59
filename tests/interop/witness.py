"""Runs the fixture for an official client, and writes down how its process ended.

Official clients start a server and end it, but do not tell what became of it. The report gets one line for
each process that was started.
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

    def note(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        server.send_signal(number)

    server = subprocess.Popen([sys.executable, "-m", "tests.everything"])
    signal.signal(signal.SIGTERM, note)
    status = server.wait()
    with Path(report).open("a") as lines:
        lines.write(json.dumps({"status": status, "signals": signals}) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
