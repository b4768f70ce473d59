"""What the Python load programs share: the plan in their first argument, and the requests in it."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable
from typing import Any

PLAN: dict[str, Any] = json.loads(sys.argv[1])
VERSION = "2025-11-25"
STATELESS = "2026-07-28"
META = "io.modelcontextprotocol/"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
#: The number of different bodies.
BODIES = 2000

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": {"name": "load", "version": "1"},
    },
}


def headers() -> dict[str, str]:
    """The headers of all requests outside of a session."""
    return {
        **ACCEPT,
        "MCP-Protocol-Version": STATELESS,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "get_prompt",
    }


def note(number: int) -> str:
    """A text that gives the request of this number its length."""
    return "x" * (random.Random(number).randrange(300) if PLAN["vary"] else 100)


def bodies() -> list[bytes]:
    """The encoded requests."""
    meta: dict[str, Any] = {}
    if not PLAN["session"]:
        names = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": {"name": "load"}}
        meta = {f"{META}{name}": value for name, value in names.items()}
        meta[f"{META}clientInfo"]["version"] = "1"
    found = []
    for number in range(BODIES):
        arguments = {"id": PLAN["ids"][number % len(PLAN["ids"])]}
        params = {"name": "get_prompt", "arguments": arguments, "_meta": {**meta, "note": note(number)}}
        message = {"jsonrpc": "2.0", "id": 10_000 + number, "method": "tools/call", "params": params}
        found.append(json.dumps(message).encode())
    return found


async def run_load(call: Callable[[int], Awaitable[None]]) -> None:
    """Make all calls, as many at the same time as the plan says."""
    numbers = iter(range(PLAN["count"]))

    async def work() -> None:
        for number in numbers:
            await call(number)

    await asyncio.gather(*(work() for _ in range(PLAN["connections"])))
