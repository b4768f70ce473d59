"""A minimal MCP client over HTTP that sends exactly the given headers and reads JSON or events."""

from __future__ import annotations

import http.client
from collections.abc import Iterable
from typing import Any, Self

import msgspec
from msgspec import Struct

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"

META = "io.modelcontextprotocol/"

Pairs = Iterable[tuple[str, str | bytes]]

#: The headers of a well-behaved POST.
JSON = ("Content-Type", "application/json")
BOTH = ("Accept", "application/json, text/event-stream")
EVENTS = ("Accept", "text/event-stream")


class ServerSentEvent(Struct, frozen=True):
    """A server-sent event."""

    id: str | None
    data: str
    retry: int | None

    @property
    def message(self) -> Any:
        return msgspec.json.decode(self.data)


class HttpReply:
    """A response that is read on demand."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._response = connection.getresponse()
        self.status = self._response.status
        self.headers = self._response.headers

    @property
    def media_type(self) -> str:
        return (self.headers.get("Content-Type") or "").partition(";")[0]

    def body(self) -> bytes:
        with self:
            return self._response.read()

    def json(self) -> Any:
        """Return the decoded body of a JSON response."""
        assert self.media_type == "application/json", (self.status, self.media_type)
        return msgspec.json.decode(self.body())

    def error(self) -> tuple[int, int, Any]:
        """Return the HTTP status, the error code and the request id."""
        response = self.json()
        return self.status, response["error"]["code"], response["id"]

    def result(self) -> Any:
        """Return the result from a JSON response or an event stream."""
        response = self.json() if self.media_type == "application/json" else self.messages()[-1]
        assert "result" in response, response
        return response["result"]

    def event(self) -> ServerSentEvent | None:
        """Return the next event, or `None` at the end of the stream."""
        assert self.media_type == "text/event-stream", (self.status, self.media_type)
        fields: dict[str, str] = {}
        while line := self._response.readline():
            name, _, value = line.decode().rstrip("\n").partition(":")
            if line == b"\n" and fields:
                retry = fields.get("retry")
                return ServerSentEvent(
                    fields.get("id"), fields.get("data", ""), None if retry is None else int(retry)
                )
            if line != b"\n" and name:
                fields[name] = value.removeprefix(" ")
        assert not fields, f"the stream broke off in an event: {fields}"
        return None

    def message(self) -> Any:
        """Return the next message; skip events without data."""
        while (event := self.event()) is not None:
            if event.data:
                return event.message
        raise AssertionError("the stream has ended")

    def messages(self) -> list[Any]:
        """Return all messages up to the end of the stream."""
        found = []
        with self:
            while (event := self.event()) is not None:
                if event.data:
                    found.append(event.message)
        return found

    def set_timeout(self, seconds: float) -> None:
        """Set the timeout of further reads."""
        self._connection.sock.settimeout(seconds)

    def close(self) -> None:
        """Disconnect."""
        self._response.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PlainHttpClient:
    """Sends each request on its own connection."""

    def __init__(self, port: int, seconds: float = 10.0) -> None:
        self.port = port
        self._seconds = seconds
        self._replies: list[HttpReply] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reply in self._replies:
            reply.close()

    def send(self, method: str, headers: Pairs = (), body: bytes = b"", path: str = "/mcp") -> HttpReply:
        """Send exactly these headers; `Host` and `Content-Length` are added if missing."""
        given = list(headers)
        names = {name.lower() for name, _ in given}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self._seconds)
        connection.putrequest(method, path, skip_host="host" in names, skip_accept_encoding=True)
        for name, value in given:
            connection.putheader(name, value)
        if body and "content-length" not in names:
            connection.putheader("Content-Length", str(len(body)))
        try:
            connection.endheaders(body)
            reply = HttpReply(connection)
        except BaseException:
            connection.close()
            raise
        self._replies.append(reply)
        return reply

    def post(self, message: Any, headers: Pairs = (JSON, BOTH)) -> HttpReply:
        body = message if isinstance(message, bytes) else msgspec.json.encode(message)
        return self.send("POST", headers, body)

    # Handshake revisions

    def initialize(self, version: str = HANDSHAKE, **capabilities: Any) -> HttpReply:
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}
        return self.post({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})

    def session(self, version: str = HANDSHAKE, **capabilities: Any) -> PlainHttpSession:
        """Return a session after its handshake."""
        reply = self.initialize(version, **capabilities)
        assert reply.result()["protocolVersion"] == version
        session = PlainHttpSession(self, reply.headers["Mcp-Session-Id"], version)
        assert session.post(notification("notifications/initialized")).status == 202
        return session

    # Stateless revisions

    def ask(
        self, method: str, params: dict[str, Any] | None = None, id: Any = 1, headers: Pairs = (), **meta: Any
    ) -> HttpReply:
        """Send a stateless request with the required headers and others."""
        message = stateless(method, params, id, **meta)
        return self.post(message, (JSON, BOTH, *routing(message), *headers))

    def use(self, tool: str, arguments: dict[str, Any] | None = None, id: Any = 1, **meta: Any) -> HttpReply:
        return self.ask("tools/call", {"name": tool, "arguments": arguments or {}}, id, **meta)

    def counts(self, **expected: int) -> dict[str, int]:
        """Return what the fixture has open, as soon as it is as expected or after a timeout."""
        text = self.post(call("counts", expected)).json()["result"]["content"][0]["text"]
        found: dict[str, int] = msgspec.json.decode(text)
        return found


class PlainHttpSession:
    """A session of the client."""

    def __init__(self, client: PlainHttpClient, id: str, version: str) -> None:
        self.client = client
        self.id = id
        self.headers = (("Mcp-Session-Id", id), ("MCP-Protocol-Version", version))

    def post(self, message: Any, headers: Pairs = (JSON, BOTH)) -> HttpReply:
        return self.client.post(message, (*headers, *self.headers))

    def use(self, tool: str, arguments: dict[str, Any] | None = None, id: Any = 1, **meta: Any) -> HttpReply:
        return self.post(call(tool, arguments, id, **meta))

    def listen(self, last_event: str | None = None) -> HttpReply:
        """Open a GET stream."""
        more = () if last_event is None else (("Last-Event-ID", last_event),)
        return self.client.send("GET", (EVENTS, *self.headers, *more))

    def delete(self) -> HttpReply:
        return self.client.send("DELETE", self.headers)


def request(method: str, params: dict[str, Any] | None = None, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def notification(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def call(tool: str, arguments: dict[str, Any] | None = None, id: Any = 1, **meta: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": tool, "arguments": arguments or {}}
    if meta:
        params["_meta"] = meta
    return request("tools/call", params, id)


def stateless(
    method: str,
    params: dict[str, Any] | None = None,
    id: Any = 1,
    *,
    version: str = STATELESS,
    capabilities: dict[str, Any] | None = None,
    **meta: Any,
) -> dict[str, Any]:
    all_meta = {f"{META}protocolVersion": version, f"{META}clientCapabilities": capabilities or {}, **meta}
    return request(method, {**(params or {}), "_meta": all_meta}, id)


def routing(message: dict[str, Any]) -> list[tuple[str, str | bytes]]:
    """Return the routing headers of a stateless request."""
    params = message["params"]
    found: list[tuple[str, str | bytes]] = [
        ("MCP-Protocol-Version", params["_meta"][f"{META}protocolVersion"]),
        ("Mcp-Method", message["method"]),
    ]
    member = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(message["method"])
    if member is not None and member in params:
        found.append(("Mcp-Name", params[member]))
    return found
