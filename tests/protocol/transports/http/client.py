"""A bare HTTP client that says exactly what it is told to, and reads answers as JSON or as events."""

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


class Event(Struct, frozen=True):
    """A server-sent event."""

    id: str | None
    data: str
    retry: int | None

    @property
    def message(self) -> Any:
        return msgspec.json.decode(self.data)


class Reply:
    """An answer, of which as much is read as is asked for."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._response = connection.getresponse()
        self.status = self._response.status
        self.headers = self._response.headers

    @property
    def kind(self) -> str:
        return (self.headers.get("Content-Type") or "").partition(";")[0]

    def body(self) -> bytes:
        with self:
            return self._response.read()

    def json(self) -> Any:
        """The body of an answer that is JSON."""
        assert self.kind == "application/json", (self.status, self.kind)
        return msgspec.json.decode(self.body())

    def error(self) -> tuple[int, int, Any]:
        """The status, the code of the error and the id that it is for."""
        told = self.json()
        return self.status, told["error"]["code"], told["id"]

    def result(self) -> Any:
        """The result, whichever way it is brought."""
        told = self.json() if self.kind == "application/json" else self.messages()[-1]
        assert "result" in told, told
        return told["result"]

    def event(self) -> Event | None:
        """The next event; nothing if the stream has ended properly."""
        assert self.kind == "text/event-stream", (self.status, self.kind)
        fields: dict[str, str] = {}
        while line := self._response.readline():
            name, _, value = line.decode().rstrip("\n").partition(":")
            if line == b"\n" and fields:
                retry = fields.get("retry")
                return Event(fields.get("id"), fields.get("data", ""), None if retry is None else int(retry))
            if line != b"\n" and name:
                fields[name] = value.removeprefix(" ")
        assert not fields, f"the stream broke off in an event: {fields}"
        return None

    def message(self) -> Any:
        """The next message; events that hold none are passed over."""
        while (event := self.event()) is not None:
            if event.data:
                return event.message
        raise AssertionError("the stream has ended")

    def messages(self) -> list[Any]:
        """All messages up to the end of the stream."""
        found = []
        with self:
            while (event := self.event()) is not None:
                if event.data:
                    found.append(event.message)
        return found

    def be_patient(self, seconds: float) -> None:
        """From now on wait so long for what comes next."""
        self._connection.sock.settimeout(seconds)

    def close(self) -> None:
        """Go away."""
        self._response.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client:
    """Somebody who sends requests, each on a connection of its own."""

    def __init__(self, port: int, seconds: float = 10.0) -> None:
        self.port = port
        self._seconds = seconds
        self._replies: list[Reply] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reply in self._replies:
            reply.close()

    def send(self, method: str, headers: Pairs = (), body: bytes = b"", path: str = "/mcp") -> Reply:
        """Send just these headers; Host and Content-Length are added where they are missing."""
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
            reply = Reply(connection)
        except BaseException:
            connection.close()
            raise
        self._replies.append(reply)
        return reply

    def post(self, message: Any, headers: Pairs = (JSON, BOTH)) -> Reply:
        body = message if isinstance(message, bytes) else msgspec.json.encode(message)
        return self.send("POST", headers, body)

    # Handshake revisions

    def initialize(self, version: str = HANDSHAKE, **capabilities: Any) -> Reply:
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}
        return self.post({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})

    def session(self, version: str = HANDSHAKE, **capabilities: Any) -> Session:
        """A session that is past its handshake."""
        reply = self.initialize(version, **capabilities)
        assert reply.result()["protocolVersion"] == version
        session = Session(self, reply.headers["Mcp-Session-Id"], version)
        assert session.post(notification("notifications/initialized")).status == 202
        return session

    # Stateless revisions

    def ask(
        self, method: str, params: dict[str, Any] | None = None, id: Any = 1, headers: Pairs = (), **meta: Any
    ) -> Reply:
        """A stateless request with the headers that it must have, and others."""
        message = stateless(method, params, id, **meta)
        return self.post(message, (JSON, BOTH, *routing(message), *headers))

    def use(self, tool: str, arguments: dict[str, Any] | None = None, id: Any = 1, **meta: Any) -> Reply:
        return self.ask("tools/call", {"name": tool, "arguments": arguments or {}}, id, **meta)

    def counts(self, **wanted: int) -> dict[str, int]:
        """What the fixture has open, once that is as wanted or will not be."""
        told = self.post(call("counts", wanted)).json()["result"]["content"][0]["text"]
        found: dict[str, int] = msgspec.json.decode(told)
        return found


class Session:
    """A client's session."""

    def __init__(self, client: Client, id: str, version: str) -> None:
        self.client = client
        self.id = id
        self.headers = (("Mcp-Session-Id", id), ("MCP-Protocol-Version", version))

    def post(self, message: Any, headers: Pairs = (JSON, BOTH)) -> Reply:
        return self.client.post(message, (*headers, *self.headers))

    def use(self, tool: str, arguments: dict[str, Any] | None = None, id: Any = 1, **meta: Any) -> Reply:
        return self.post(call(tool, arguments, id, **meta))

    def listen(self, last_event: str | None = None) -> Reply:
        """A GET stream."""
        more = () if last_event is None else (("Last-Event-ID", last_event),)
        return self.client.send("GET", (EVENTS, *self.headers, *more))

    def delete(self) -> Reply:
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
    about = {f"{META}protocolVersion": version, f"{META}clientCapabilities": capabilities or {}, **meta}
    return request(method, {**(params or {}), "_meta": about}, id)


def routing(message: dict[str, Any]) -> list[tuple[str, str | bytes]]:
    """The headers that repeat what a stateless request says."""
    params = message["params"]
    found: list[tuple[str, str | bytes]] = [
        ("MCP-Protocol-Version", params["_meta"][f"{META}protocolVersion"]),
        ("Mcp-Method", message["method"]),
    ]
    member = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(message["method"])
    if member is not None and member in params:
        found.append(("Mcp-Name", params[member]))
    return found
