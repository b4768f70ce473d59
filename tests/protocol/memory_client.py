"""An in-process client for tests. Its messages are encoded as frames, as on a real transport."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Self

import msgspec

from dittybag.protocol.dispatch import Session
from dittybag.protocol.eras.versions import NEWEST_HANDSHAKE, STATELESS_VERSIONS
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.request_meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from dittybag.protocol.server import Server
from dittybag.protocol.types import JsonObject, RequestId

CLIENT: Final = {"name": "memory", "version": "1"}


class MemoryClient:
    """A client of one protocol revision. Use it with `async with`."""

    def __init__(
        self,
        server: Server,
        version: str = NEWEST_HANDSHAKE,
        *,
        capabilities: JsonObject | None = None,
        principal_id: str = "",
        timeout: float = 5.0,
    ) -> None:
        self.version = version
        self.capabilities = capabilities or {}
        self.session = Session(server, self, principal_id=principal_id)
        #: Messages other than responses to pending requests, in order.
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        self.dropped = 0
        self.full = False
        self._timeout = timeout
        self._last_id = 0
        self._waiting: dict[RequestId, asyncio.Future[JsonObject]] = {}

    async def __aenter__(self) -> Self:
        if self.version not in STATELESS_VERSIONS:
            await self.request(
                "initialize",
                {"protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": CLIENT},
            )
            self.notify("notifications/initialized")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.close(grace=1.0)

    # Outlet: messages from the session

    def send_message(self, frame: bytes) -> None:
        self._deliver(msgspec.json.decode(frame))

    def send_response(self, frame: bytes, error: int | None) -> None:
        self._deliver(msgspec.json.decode(frame))

    def drop_response(self) -> None:
        self.dropped += 1

    def _deliver(self, message: Any) -> None:
        waiting = None
        if isinstance(message, dict) and "method" not in message and "id" in message:
            waiting = self._waiting.pop(message["id"], None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)
        else:
            self.inbox.put_nowait(message)

    # Messages from the client

    def send(self, frame: bytes) -> None:
        """Send a raw frame."""
        self.session.receive(frame)

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        message: JsonObject = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(msgspec.json.encode(message))

    def respond(self, request: JsonObject, result: JsonObject) -> None:
        """Respond to a request from the server."""
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": request["id"], "result": result}))

    def start(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        meta: JsonObject | None = None,
        request_id: RequestId | None = None,
    ) -> tuple[RequestId, asyncio.Future[JsonObject]]:
        """Send a request without waiting. Returns its id and a future for the response."""
        if request_id is None:
            self._last_id += 1
            request_id = self._last_id
        future: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        message: JsonObject = {"jsonrpc": "2.0", "id": request_id, "method": method}
        meta = {**self.request_meta(), **(meta or {})}
        if params is not None or meta:
            message["params"] = {**(params or {}), **({"_meta": meta} if meta else {})}
        self.send(msgspec.json.encode(message))
        return request_id, future

    def request_meta(self) -> JsonObject:
        """Return the `_meta` of every request of this client."""
        if self.version not in STATELESS_VERSIONS:
            return {}
        return {PROTOCOL_VERSION: self.version, CLIENT_CAPABILITIES: self.capabilities, CLIENT_INFO: CLIENT}

    async def exchange(
        self, method: str, params: JsonObject | None = None, *, meta: JsonObject | None = None
    ) -> JsonObject:
        """Send a request and return the whole response, with a result or an error."""
        _, future = self.start(method, params, meta=meta)
        return await asyncio.wait_for(future, self._timeout)

    async def request(
        self, method: str, params: JsonObject | None = None, *, meta: JsonObject | None = None
    ) -> JsonObject:
        """Send a request and return its result. Fails on an error response."""
        response = await self.exchange(method, params, meta=meta)
        if "result" not in response:
            raise AssertionError(f"{method} was answered with {response.get('error')}")
        result: JsonObject = response["result"]
        return result

    async def error(
        self, method: str, params: JsonObject | None = None, *, meta: JsonObject | None = None
    ) -> JsonObject:
        """Send a request that must fail, and return the error."""
        response = await self.exchange(method, params, meta=meta)
        if "error" not in response:
            raise AssertionError(f"{method} was answered with {response.get('result')}")
        error: JsonObject = response["error"]
        return error

    async def call(self, tool: str, arguments: JsonObject | None = None) -> JsonObject:
        """Call a tool and return its result."""
        return await self.request("tools/call", {"name": tool, "arguments": arguments or {}})

    async def next(self) -> JsonObject:
        """Return the next message from the inbox."""
        message: JsonObject = await asyncio.wait_for(self.inbox.get(), self._timeout)
        return message
