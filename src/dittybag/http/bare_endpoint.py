"""The HTTP face of the task contract, in every profile: `HEAD /`, and `POST /` with or without envelope."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dittybag.protocol import Server, Session
from dittybag.protocol.jsonrpc import Decoded, MalformedFrame, decode, encode
from dittybag.protocol.transports.http.asgi_messages import (
    ANONYMOUS,
    AUTH_INFO,
    Application,
    AsgiScope,
    AuthInfo,
    Headers,
    HttpError,
    Receive,
    Send,
    read_body,
    respond,
    send_error,
)
from dittybag.protocol.transports.http.event_streams import ResponseOnlyStream
from dittybag.protocol.transports.http.response_delivery import ResponseDelivery
from dittybag.protocol.wire_errors import METHOD_NOT_FOUND

_BODY_BYTES: Final = 4 * 1024 * 1024
_BODY_SECONDS: Final = 12.0


class BareEndpoint:
    """Answers a body without `jsonrpc` with the bare result; one with it goes to the endpoint."""

    def __init__(self, server: Server, endpoint: Application, version: str) -> None:
        """`version`: the revision that `HEAD` advertises."""
        self._server = server
        self._endpoint = endpoint
        self._version = (b"mcp-protocol-version", version.encode())

    async def head(self, send: Send) -> None:
        await respond(send, 200, headers=[self._version])

    async def post(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        headers = Headers.from_scope(scope)
        try:
            body = await read_body(headers, receive, _BODY_BYTES, _BODY_SECONDS)
        except HttpError as refused:
            await send_error(send, refused)
            return
        try:
            decoded = decode(body)
        except MalformedFrame as malformed:
            if b'"jsonrpc"' in body:
                await send_error(send, HttpError(400, malformed.error), malformed.request_id)
            else:
                await _fail(send, 400, malformed.error.code, malformed.error.message)
            return
        if type(decoded.value) is dict and "jsonrpc" not in decoded.value:
            await self._bare(decoded, scope.get(AUTH_INFO, ANONYMOUS), receive, send)
        elif type(decoded.value) is not dict and type(decoded.value) is not list:
            await _fail(send, 400, -32600, "Invalid Request: a request is an object")
        else:
            await self._endpoint(scope, _again(body, receive), send)

    async def _bare(self, decoded: Decoded, auth: AuthInfo, receive: Receive, send: Send) -> None:
        """As if it had an envelope, which is taken off again."""
        # There is no room for anything but the result.
        stream = ResponseOnlyStream()
        session = Session(self._server, stream, principal_id=auth.principal_id)
        session.set_principal(auth.principal, receives_notifications=auth.receives_notifications)
        request = {"jsonrpc": "2.0", "id": 0, **{key: decoded.value.get(key) for key in ("method", "params")}}
        if request["method"] is None:
            await _fail(send, 400, -32600, "Invalid Request: a request needs a method")
            return
        if str(request["method"]).startswith("notifications/"):
            # Nobody waits for an answer, and nothing is kept that it could change.
            await respond(send, 202)
            return
        if request["method"] == "subscriptions/listen":
            await _fail(
                send, 400, -32600, "Invalid Request: to listen, send a request with an envelope to /mcp"
            )
            return
        session.take(Decoded(request, decoded.broken_text), stream)

        async def unwrapped(message: Any) -> None:
            if message["type"] == "http.response.body":
                await _unwrap(send, message["body"])

        try:
            await ResponseDelivery(stream, receive, unwrapped).answer(lambda error: 200, as_json=True)
        finally:
            await session.close(0)


def _again(body: bytes, receive: Receive) -> Receive:
    """The same body for somebody else to read."""
    unread = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> Any:
        return unread.pop() if unread else await receive()

    return read


async def _unwrap(send: Send, frame: bytes) -> None:
    answer = msgspec.json.decode(frame, type=dict[str, msgspec.Raw])
    if "result" in answer:
        await respond(send, 200, bytes(answer["result"]))
        return
    error = msgspec.json.decode(answer["error"])
    await _fail(send, 404 if error["code"] == METHOD_NOT_FOUND else 400, error["code"], error["message"])


async def _fail(send: Send, status: int, code: int, message: str) -> None:
    await respond(send, status, encode({"error": {"code": code, "message": message}}))
