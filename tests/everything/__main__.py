"""Serves the fixture on standard input and output: `python -m tests.everything`, from the root."""

from __future__ import annotations

from dittybag.protocol.transports import stdio
from tests.everything.server import build

if __name__ == "__main__":
    stdio.run(build())
