"""aiohttp as a client: MCP over HTTP, in a session or without one, with or without tokens."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from typing import Any

import aiohttp
from client_plan import Calls, reply, requests

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
CLIENT = {"name": "benchmark", "version": "1"}


def message(method: str, params: dict[str, Any], number: int | None = None) -> bytes:
    found: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(found if number is None else {**found, "id": number}).encode()


class Requests:
    """The headers and bodies of the calls of a plan."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.url, self._plan = plan["url"], plan
        self._headers = {**ACCEPT, "MCP-Protocol-Version": HANDSHAKE if plan["session"] else STATELESS}
        self._meta: dict[str, Any] = {}
        if not plan["session"]:
            self._headers |= {"Mcp-Method": "tools/call", "Mcp-Name": plan["tool"]}
            described = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": CLIENT}
            self._meta = {f"io.modelcontextprotocol/{name}": value for name, value in described.items()}

    async def open_session(self, client: aiohttp.ClientSession) -> None:
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT}
        body = message("initialize", params, 0)
        async with client.post(self.url, data=body, headers=self._headers) as response:
            self._headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
        body = message("notifications/initialized", {})
        async with client.post(self.url, data=body, headers=self._headers) as response:
            assert response.status == 202, response.status

    def prepare(self) -> None:
        """Encode all calls, and put each token into its own headers."""
        for number, call in enumerate(self._plan["calls"]):
            arguments, _, note = call
            params = {
                "name": self._plan["tool"],
                "arguments": arguments,
                "_meta": {**self._meta, "note": note},
            }
            call[0] = message("tools/call", params, 1 + number)
        tokens = [{"Authorization": f"Bearer {token}"} for token in self._plan["tokens"]] or [{}]
        self.next_headers = itertools.cycle([{**self._headers, **token} for token in tokens]).__next__


async def open_plan(plan: dict[str, Any]) -> Requests:
    found, started = Requests(plan), time.perf_counter()
    if plan["session"]:
        async with aiohttp.ClientSession() as client:
            await found.open_session(client)
    found.prepare()
    seconds = time.perf_counter() - started
    reply({"initialize": seconds, "tools": seconds})
    return found


async def run_load(sent: Requests, calls: Calls, load: dict[str, Any]) -> None:
    connector = aiohttp.TCPConnector(limit=load["at_a_time"])
    async with aiohttp.ClientSession(connector=connector) as client:

        async def call(planned: list[Any]) -> str:
            async with client.post(sent.url, data=planned[0], headers=sent.next_headers()) as response:
                return (await response.read()).decode()

        # The connections are open before the load begins.
        await calls.run({**load, "seconds": 60, "most": load["at_a_time"]}, call)
        reply(await calls.run(load, call))


if __name__ == "__main__":
    for request in requests():
        if request["do"] == "open":
            prepared = asyncio.run(open_plan(request))
            planned_calls = Calls(request)
        elif request["do"] == "load":
            asyncio.run(run_load(prepared, planned_calls, request))
        else:
            reply({})
