"""The official Python SDK 2 as a client of the fixture."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp import MCPError, StdioServerParameters
from mcp.client import Client
from mcp.client.subscriptions import ResourceUpdated, ServerEvent
from scenario import Answers, Heard, Json, OnProgress, observe, plain, run

LOG_LEVEL = "io.modelcontextprotocol/logLevel"


def target(server: Json) -> StdioServerParameters | str:
    """A server in the client's words: its address or its command."""
    return server["url"] if "url" in server else StdioServerParameters(**server)


class Peer:
    error = MCPError

    def __init__(self, plan: Json) -> None:
        answers = Answers(plan, types)
        self.asked, self.logs, self.changes = answers.asked, answers.logs, Heard()
        self.client = Client(
            target(plan["server"]),
            mode=plan["mode"],
            client_info=types.Implementation(name="python-2", version="1"),
            message_handler=self._hear,
            **answers.callbacks(),
        )

    async def _hear(self, message: Any) -> None:
        if isinstance(message, Exception):
            raise message
        if message.method.endswith(("/list_changed", "/updated")):
            params = {} if message.params is None else plain(message.params)
            await self.changes.note({"method": message.method, "uri": params.get("uri")})

    @property
    def _stateless(self) -> bool:
        return self.client.protocol_version >= "2026"

    def connection(self) -> Json:
        return {
            "version": self.client.protocol_version,
            "server": self.client.server_info and plain(self.client.server_info),
            "capabilities": plain(self.client.server_capabilities),
            "instructions": self.client.instructions,
        }

    async def lists(self) -> Json:
        return {
            "tools": plain(await self.client.list_tools())["tools"],
            "prompts": plain(await self.client.list_prompts())["prompts"],
            "resources": plain(await self.client.list_resources())["resources"],
            "templates": plain(await self.client.list_resource_templates())["resourceTemplates"],
        }

    async def call(
        self, name: str, arguments: Json, *, on_progress: OnProgress | None = None, level: str | None = None
    ) -> Json:
        meta = None
        if level is not None and self._stateless:
            meta = {LOG_LEVEL: level}
        elif level is not None:
            await self.client.set_logging_level(level)
        return plain(await self.client.call_tool(name, arguments, progress_callback=on_progress, meta=meta))

    async def prompt(self, name: str, arguments: Json) -> Json:
        return plain(await self.client.get_prompt(name, arguments))

    async def read(self, uri: str) -> Json:
        return plain(await self.client.read_resource(uri))

    async def complete(self, ref: Json, argument: Json, context: Json | None) -> Json:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return plain(await self.client.complete(kind.model_validate(ref), argument, context))

    async def announce_cancellation(self) -> None:
        """The SDK does it by itself when the call is abandoned."""

    @asynccontextmanager
    async def watch(self, uri: str) -> AsyncIterator[Callable[[], Awaitable[Json]]]:
        if not self._stateless:
            await self.client.subscribe_resource(uri)
            yield self.changes.next
            return
        async with self.client.listen(
            tools_list_changed=True,
            prompts_list_changed=True,
            resources_list_changed=True,
            resource_subscriptions=[uri],
        ) as subscription:
            events = aiter(subscription)

            async def next_change() -> Json:
                return _change(await anext(events))

            yield next_change


def _change(event: ServerEvent) -> Json:
    if isinstance(event, ResourceUpdated):
        return {"method": "notifications/resources/updated", "uri": event.uri}
    kind = type(event).__name__.removesuffix("ListChanged").lower()
    return {"method": f"notifications/{kind}/list_changed", "uri": None}


async def main(plan: Json) -> Json:
    # The SDK marks what later revisions took away; servers of the earlier ones still need it.
    warnings.simplefilter("ignore")
    peer = Peer(plan)
    async with peer.client:
        return await observe(peer, plan)


if __name__ == "__main__":
    run(main)
