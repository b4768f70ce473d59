# mypy: ignore-errors
# The official SDKs are not in our own environment.
"""What both official Python clients do with a fleet, and what they saw, as one JSON document."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Json = dict[str, Any]

PATIENCE_SECONDS = 10.0
UPDATED = "notifications/resources/updated"


class Ear:
    """Hears of resources that have changed."""

    def __init__(self) -> None:
        self._uris: asyncio.Queue[str] = asyncio.Queue()

    async def note(self, method: str, uri: Any) -> None:
        if method == UPDATED:
            await self._uris.put(str(uri))

    async def next(self) -> str:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._uris.get()


def plain(result: Any) -> Json:
    """A result as it travelled."""
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def visit(plan: Json, client: Any, watch: Callable[[str], Awaitable[Any]], ear: Ear) -> Json:
    """Go through the plan with a client that is connected."""
    name, uri = plan["name"], plan["uri"]

    async def call(tool: str, arguments: Json) -> Json:
        result = plain(await client.call_tool(tool, arguments))
        assert not result.get("isError"), result
        return result["structuredContent"]

    tools = [tool["name"] for tool in plain(await client.list_tools())["tools"]]
    await call("create_prompt", {"name": name, **plan["prompt"]})
    prompts = [prompt["name"] for prompt in plain(await client.list_prompts())["prompts"]]
    prompt = plain(await client.get_prompt(name, plan["arguments"]))
    await call("create_resource", {"name": name, "uri": uri, "content": "one"})
    resources = [str(resource["uri"]) for resource in plain(await client.list_resources())["resources"]]
    await watch(uri)
    await call("update_resource", {"name": name, "content": "two"})
    told = await ear.next()
    read = plain(await client.read_resource(uri))
    return {
        "tools": tools,
        "prompts": prompts,
        "prompt": prompt["messages"][0]["content"]["text"],
        "resources": resources,
        "told": told,
        "read": read["contents"][0]["text"],
    }


def run(main: Callable[[Json], Awaitable[Json]]) -> None:
    print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
