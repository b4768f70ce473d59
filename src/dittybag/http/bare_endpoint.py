"""The HTTP face of the task contract: `HEAD /`, and `POST /` with or without a JSON-RPC envelope."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dittybag.http.asgi_messages import (
    ANONYMOUS,
    AUTH_INFO,
    COUNT_UNREAD,
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
from dittybag.http.event_streams import ResponseOnlyStream
from dittybag.http.response_delivery import ResponseDelivery
from dittybag.http.unread_responses import UnreadResponses
from dittybag.protocol.dispatch import Session
from dittybag.protocol.frame_decoding import decode_body
from dittybag.protocol.jsonrpc import Decoded, MalformedFrame, encode
from dittybag.protocol.server import Server
from dittybag.protocol.wire_errors import METHOD_NOT_FOUND

_BODY_SECONDS: Final = 12.0


class BareEndpoint:
    """Answers a body without `jsonrpc` with the bare result, and passes a JSON-RPC body to the endpoint."""

    def __init__(self, server: Server, endpoint: Application, version: str, unread: UnreadResponses) -> None:
        """`version`: the MCP revision that `HEAD` advertises."""
        self._server = server
        self._unread = unread
        self._endpoint = endpoint
        self._version = (b"mcp-protocol-version", version.encode())

    async def head(self, send: Send) -> None:
        await respond(send, 200, headers=[self._version])

    async def post(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        headers = Headers.from_scope(scope)
        try:
            body = await read_body(headers, receive, self._server.limits.message_bytes, _BODY_SECONDS)
        except HttpError as error:
            await send_error(send, error, receive=receive)
            return
        try:
            decoded = await decode_body(body)
        except MalformedFrame as malformed:
            if b'"jsonrpc"' in body:
                await send_error(send, HttpError(400, malformed.error), malformed.request_id)
            else:
                await _fail(send, 400, malformed.error.code, malformed.error.message, malformed.error.data)
            return
        if type(decoded.value) is dict and "jsonrpc" not in decoded.value:
            await self._handle_bare(decoded, scope, receive, send)
        elif type(decoded.value) is not dict and type(decoded.value) is not list:
            await _fail(send, 400, -32600, "Invalid Request: a request must be a JSON object")
        else:
            await self._endpoint(scope, _replay(body, receive), send)

    async def _handle_bare(self, decoded: Decoded, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Add an envelope, run the request, and send the result without the envelope."""
        auth: AuthInfo = scope.get(AUTH_INFO, ANONYMOUS)
        # The response has no room for notifications.
        stream = ResponseOnlyStream()
        session = Session(self._server, stream, principal_id=auth.principal_id)
        session.set_principal(auth.principal, receives_notifications=auth.receives_notifications)
        request = {"jsonrpc": "2.0", "id": 0, **{key: decoded.value.get(key) for key in ("method", "params")}}
        if request["method"] is None:
            await _fail(send, 400, -32600, "Invalid Request: `method` is missing")
            return
        if str(request["method"]).startswith("notifications/"):
            # A notification has no response, and without a session it has no effect.
            await respond(send, 202)
            return
        if request["method"] == "subscriptions/listen":
            await _fail(send, 400, -32600, "Invalid Request: to listen, send a JSON-RPC request to /mcp")
            return
        session.receive_decoded(Decoded(request, decoded.may_have_surrogates), stream)

        async def unwrapped(message: Any) -> None:
            if message["type"] == "http.response.body":
                await _unwrap(send, message["body"])

        try:
            unread = self._unread.of(auth.principal_id, scope.get(COUNT_UNREAD))
            delivery = ResponseDelivery(stream, receive, unwrapped, unread)
            await delivery.send_response(lambda error: 200, as_json=True)
        finally:
            await session.close(0)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields a body that has already been read."""
    unread = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> Any:
        return unread.pop() if unread else await receive()

    return read


async def _unwrap(send: Send, frame: bytes) -> None:
    response = msgspec.json.decode(frame, type=dict[str, msgspec.Raw])
    if "result" in response:
        await respond(send, 200, bytes(response["result"]))
        return
    error = msgspec.json.decode(response["error"])
    status = 404 if error["code"] == METHOD_NOT_FOUND else 400
    await _fail(send, status, error["code"], error["message"], error.get("data"))


async def _fail(send: Send, status: int, code: int, message: str, data: Any = None) -> None:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    await respond(send, status, encode({"error": error}))
