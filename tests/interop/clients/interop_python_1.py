"""The official Python SDK 1 as a client of the everything server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from interop_scenario import ClientCallbacks, Json, NotificationQueue, OnProgress, run, run_scenario, to_json
from mcp import ClientSession, McpError, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl


class Python1Adapter:
    error = McpError

    def __init__(self, plan: Json, streams: tuple[Any, ...]) -> None:
        callbacks = ClientCallbacks(plan, types)
        self.input_requests, self.logs, self.changes = (
            callbacks.input_requests,
            callbacks.logs,
            NotificationQueue(),
        )
        self._last_request: int | str = 0
        self._initialize_result: types.InitializeResult | None = None
        self.session = ClientSession(
            *streams[:2],
            client_info=types.Implementation(name="python-1", version="1"),
            message_handler=self._handle_message,
            **callbacks.as_keywords(),
        )

    async def _handle_message(self, message: Any) -> None:
        if isinstance(message, Exception):
            raise message
        notification = getattr(message, "root", None)
        method = getattr(notification, "method", "")
        if method.endswith(("/list_changed", "/updated")):
            params = {} if notification.params is None else to_json(notification.params)
            await self.changes.put({"method": method, "uri": params.get("uri")})

    async def initialize(self) -> None:
        self._initialize_result = await self.session.initialize()

    def connection(self) -> Json:
        assert self._initialize_result is not None
        result = to_json(self._initialize_result)
        return {
            "version": result["protocolVersion"],
            "server": result["serverInfo"],
            "capabilities": result["capabilities"],
            "instructions": result["instructions"],
        }

    async def lists(self) -> Json:
        return {
            "tools": to_json(await self.session.list_tools())["tools"],
            "prompts": to_json(await self.session.list_prompts())["prompts"],
            "resources": to_json(await self.session.list_resources())["resources"],
            "templates": to_json(await self.session.list_resource_templates())["resourceTemplates"],
        }

    async def call(
        self, name: str, arguments: Json, *, on_progress: OnProgress | None = None, level: str | None = None
    ) -> Json:
        if level is not None:
            await self.session.set_logging_level(level)
        self._last_request = self.session._request_id
        return to_json(await self.session.call_tool(name, arguments, progress_callback=on_progress))

    async def prompt(self, name: str, arguments: Json) -> Json:
        return to_json(await self.session.get_prompt(name, arguments))

    async def read(self, uri: str) -> Json:
        return to_json(await self.session.read_resource(AnyUrl(uri)))

    async def complete(self, ref: Json, argument: Json, context: Json | None) -> Json:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return to_json(await self.session.complete(kind.model_validate(ref), argument, context))

    async def notify_cancelled(self) -> None:
        # This SDK does not send the notification when a call is abandoned.
        params = types.CancelledNotificationParams(requestId=self._last_request, reason="No longer needed")
        await self.session.send_notification(
            types.ClientNotification(
                types.CancelledNotification(method="notifications/cancelled", params=params)
            )
        )

    @asynccontextmanager
    async def subscribe(self, uri: str) -> AsyncIterator[Callable[[], Awaitable[Json]]]:
        await self.session.subscribe_resource(AnyUrl(uri))
        yield self.changes.next


def connect(server: Json) -> AbstractAsyncContextManager[tuple[Any, ...]]:
    """Open the streams from and to a server with a URL or a command. HTTP adds a third item."""
    if "url" in server:
        return streamable_http_client(server["url"])
    return stdio_client(StdioServerParameters(**server))


async def main(plan: Json) -> Json:
    async with connect(plan["server"]) as streams:
        adapter = Python1Adapter(plan, streams)
        async with adapter.session:
            await adapter.initialize()
            return await run_scenario(adapter, plan)


if __name__ == "__main__":
    run(main)
