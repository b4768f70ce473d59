"""The official Python SDK 2 reads the skills of Dittybag."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from interop_python_2 import target
from mcp.client import Client
from skills_scenario import AnyRequest, AnyResult, content_of, read_skills


async def main(plan: dict[str, Any]) -> dict[str, Any]:
    async with Client(target(plan["server"]), mode=plan["mode"]) as client:

        async def send(method: str, params: dict[str, Any]) -> Any:
            request: Any = AnyRequest(method=method, params=params)
            return (await client.session.send_request(request, AnyResult)).model_dump()

        async def read(uri: str) -> bytes:
            return content_of(await client.read_resource(uri))

        # A client that is pinned to a revision asks for the capabilities only when it needs them.
        discovered = client.server_capabilities
        capabilities = discovered.model_dump() if discovered is not None else None
        return {"version": client.protocol_version, **await read_skills(capabilities, send, read)}


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
