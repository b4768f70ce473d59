"""Run the everything server over stdio: `python -m tests.everything`, from the repository root."""

from __future__ import annotations

from dittybag.protocol.transports import stdio
from tests.everything.everything_server import build

if __name__ == "__main__":
    stdio.run(build())
