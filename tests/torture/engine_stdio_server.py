"""Runs the engine's test server over stdio, for hostile clients."""

from __future__ import annotations

from dittybag.protocol.transports import stdio
from tests.protocol.engine_servers import full_server

if __name__ == "__main__":
    stdio.run(full_server)
