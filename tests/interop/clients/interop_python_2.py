"""The official Python SDK 2 as a client of the everything server."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from interop_scenario import ClientCallbacks, Json, NotificationQueue, OnProgress, run, run_scenario, to_json
from mcp import MCPError, StdioServerParameters
from mcp.client import Client
from mcp.client.subscriptions import ResourceUpdated, ServerEvent

LOG_LEVEL = "io.modelcontextprotocol/logLevel"


def target(server: Json) -> StdioServerParameters | str:
    """Return the server as the client's parameter: its URL or its command."""
    return server["url"] if "url" in server else StdioServerParameters(**server)


class Python2Adapter:
    error = MCPError

    def __init__(self, plan: Json) -> None:
        callbacks = ClientCallbacks(plan, types)
        self.input_requests, self.logs, self.changes = (
            callbacks.input_requests,
            callbacks.logs,
            NotificationQueue(),
        )
        self.client = Client(
            target(plan["server"]),
            mode=plan["mode"],
            client_info=types.Implementation(name="python-2", version="1"),
            message_handler=self._handle_message,
            **callbacks.as_keywords(),
        )

    async def _handle_message(self, message: Any) -> None:
        if isinstance(message, Exception):
            raise message
        if message.method.endswith(("/list_changed", "/updated")):
            params = {} if message.params is None else to_json(message.params)
            await self.changes.put({"method": message.method, "uri": params.get("uri")})

    @property
    def _stateless(self) -> bool:
        return self.client.protocol_version >= "2026"

    def connection(self) -> Json:
        return {
            "version": self.client.protocol_version,
            "server": self.client.server_info and to_json(self.client.server_info),
            "capabilities": to_json(self.client.server_capabilities),
            "instructions": self.client.instructions,
        }

    async def lists(self) -> Json:
        return {
            "tools": to_json(await self.client.list_tools())["tools"],
            "prompts": to_json(await self.client.list_prompts())["prompts"],
            "resources": to_json(await self.client.list_resources())["resources"],
            "templates": to_json(await self.client.list_resource_templates())["resourceTemplates"],
        }

    async def call(
        self, name: str, arguments: Json, *, on_progress: OnProgress | None = None, level: str | None = None
    ) -> Json:
        meta = None
        if level is not None and self._stateless:
            meta = {LOG_LEVEL: level}
        elif level is not None:
            await self.client.set_logging_level(level)
        return to_json(await self.client.call_tool(name, arguments, progress_callback=on_progress, meta=meta))

    async def prompt(self, name: str, arguments: Json) -> Json:
        return to_json(await self.client.get_prompt(name, arguments))

    async def read(self, uri: str) -> Json:
        return to_json(await self.client.read_resource(uri))

    async def complete(self, ref: Json, argument: Json, context: Json | None) -> Json:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return to_json(await self.client.complete(kind.model_validate(ref), argument, context))

    async def notify_cancelled(self) -> None:
        """Do nothing: the SDK sends the notification when the call is abandoned."""

    @asynccontextmanager
    async def subscribe(self, uri: str) -> AsyncIterator[Callable[[], Awaitable[Json]]]:
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
    # The SDK deprecates features that later revisions removed. Servers of earlier revisions need them.
    warnings.simplefilter("ignore")
    adapter = Python2Adapter(plan)
    async with adapter.client:
        return await run_scenario(adapter, plan)


if __name__ == "__main__":
    run(main)
