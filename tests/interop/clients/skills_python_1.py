"""The official Python SDK 1 reads the skills of Dittybag."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from interop_python_1 import connect
from mcp import ClientSession
from pydantic import AnyUrl
from skills_scenario import AnyRequest, AnyResult, content_of, read_skills


async def main(plan: dict[str, Any]) -> dict[str, Any]:
    async with connect(plan["server"]) as streams, ClientSession(*streams[:2]) as session:
        hello = await session.initialize()

        async def send(method: str, params: dict[str, Any]) -> Any:
            request: Any = AnyRequest(method=method, params=params)
            return (await session.send_request(request, AnyResult)).model_dump()

        async def read(uri: str) -> bytes:
            return content_of(await session.read_resource(AnyUrl(uri)))

        capabilities = hello.capabilities.model_dump()
        return {"version": hello.protocolVersion, **await read_skills(capabilities, send, read)}


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
