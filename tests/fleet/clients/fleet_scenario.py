# mypy: ignore-errors
# The official SDKs are installed in their own environments.
"""The scenario of both official Python clients against a fleet. Prints what they received as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Json = dict[str, Any]

TIMEOUT_SECONDS = 10.0
UPDATED = "notifications/resources/updated"


class UpdateListener:
    """Collects the URIs of updated resources."""

    def __init__(self) -> None:
        self._uris: asyncio.Queue[str] = asyncio.Queue()

    async def add(self, method: str, uri: Any) -> None:
        if method == UPDATED:
            await self._uris.put(str(uri))

    async def next(self) -> str:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await self._uris.get()


def to_json(result: Any) -> Json:
    """A result as JSON values."""
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def run_scenario(
    plan: Json, client: Any, subscribe: Callable[[str], Awaitable[Any]], listener: UpdateListener
) -> Json:
    """Run the scenario with a connected client. Returns what the client received."""
    name, uri = plan["name"], plan["uri"]

    async def call(tool: str, arguments: Json) -> Json:
        result = to_json(await client.call_tool(tool, arguments))
        assert not result.get("isError"), result
        return result["structuredContent"]

    tools = [tool["name"] for tool in to_json(await client.list_tools())["tools"]]
    await call("create_prompt", {"name": name, **plan["prompt"]})
    prompts = [prompt["name"] for prompt in to_json(await client.list_prompts())["prompts"]]
    prompt = to_json(await client.get_prompt(name, plan["arguments"]))
    await call("create_resource", {"name": name, "uri": uri, "content": "one"})
    resources = [str(resource["uri"]) for resource in to_json(await client.list_resources())["resources"]]
    await subscribe(uri)
    await call("update_resource", {"name": name, "content": "two"})
    updated_uri = await listener.next()
    read = to_json(await client.read_resource(uri))
    return {
        "tools": tools,
        "prompts": prompts,
        "prompt": prompt["messages"][0]["content"]["text"],
        "resources": resources,
        "updated_uri": updated_uri,
        "read": read["contents"][0]["text"],
    }


def run(main: Callable[[Json], Awaitable[Json]]) -> None:
    print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
