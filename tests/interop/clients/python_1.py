"""The official Python SDK 1 as a client of the fixture."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from mcp import ClientSession, McpError, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl
from scenario import Answers, Heard, Json, OnProgress, observe, plain, run


class Peer:
    error = McpError

    def __init__(self, plan: Json, streams: tuple[Any, ...]) -> None:
        answers = Answers(plan, types)
        self.asked, self.logs, self.changes = answers.asked, answers.logs, Heard()
        self._last_request: int | str = 0
        self._hello: types.InitializeResult | None = None
        self.session = ClientSession(
            *streams[:2],
            client_info=types.Implementation(name="python-1", version="1"),
            message_handler=self._hear,
            **answers.callbacks(),
        )

    async def _hear(self, message: Any) -> None:
        if isinstance(message, Exception):
            raise message
        notification = getattr(message, "root", None)
        method = getattr(notification, "method", "")
        if method.endswith(("/list_changed", "/updated")):
            params = {} if notification.params is None else plain(notification.params)
            await self.changes.note({"method": method, "uri": params.get("uri")})

    async def greet(self) -> None:
        self._hello = await self.session.initialize()

    def connection(self) -> Json:
        assert self._hello is not None
        hello = plain(self._hello)
        return {
            "version": hello["protocolVersion"],
            "server": hello["serverInfo"],
            "capabilities": hello["capabilities"],
            "instructions": hello["instructions"],
        }

    async def lists(self) -> Json:
        return {
            "tools": plain(await self.session.list_tools())["tools"],
            "prompts": plain(await self.session.list_prompts())["prompts"],
            "resources": plain(await self.session.list_resources())["resources"],
            "templates": plain(await self.session.list_resource_templates())["resourceTemplates"],
        }

    async def call(
        self, name: str, arguments: Json, *, on_progress: OnProgress | None = None, level: str | None = None
    ) -> Json:
        if level is not None:
            await self.session.set_logging_level(level)
        self._last_request = self.session._request_id
        return plain(await self.session.call_tool(name, arguments, progress_callback=on_progress))

    async def prompt(self, name: str, arguments: Json) -> Json:
        return plain(await self.session.get_prompt(name, arguments))

    async def read(self, uri: str) -> Json:
        return plain(await self.session.read_resource(AnyUrl(uri)))

    async def complete(self, ref: Json, argument: Json, context: Json | None) -> Json:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return plain(await self.session.complete(kind.model_validate(ref), argument, context))

    async def announce_cancellation(self) -> None:
        # This SDK leaves it to its users to say that a call was abandoned.
        params = types.CancelledNotificationParams(requestId=self._last_request, reason="Not wanted any more")
        await self.session.send_notification(
            types.ClientNotification(
                types.CancelledNotification(method="notifications/cancelled", params=params)
            )
        )

    @asynccontextmanager
    async def watch(self, uri: str) -> AsyncIterator[Callable[[], Awaitable[Json]]]:
        await self.session.subscribe_resource(AnyUrl(uri))
        yield self.changes.next


def connect(server: Json) -> AbstractAsyncContextManager[tuple[Any, ...]]:
    """The streams from and to a server, which has an address or a command; over HTTP there is more."""
    if "url" in server:
        return streamable_http_client(server["url"])
    return stdio_client(StdioServerParameters(**server))


async def main(plan: Json) -> Json:
    async with connect(plan["server"]) as streams:
        peer = Peer(plan, streams)
        async with peer.session:
            await peer.greet()
            return await observe(peer, plan)


if __name__ == "__main__":
    run(main)
