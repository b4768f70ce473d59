"""The HTTP face of the task contract: `HEAD /`, and `POST /` with or without a JSON-RPC envelope."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from dittybag.http.asgi_messages import Header, HttpError
from dittybag.http.endpoint import HttpEndpoint
from dittybag.http.event_streams import ResponseOnlyStream
from dittybag.http.http_request import HttpRequest
from dittybag.http.http_sessions import open_for_request
from dittybag.http.response_delivery import ResponseDelivery, run_and_deliver
from dittybag.http.unread_responses import UnreadResponses
from dittybag.protocol.frame_decoding import decode_body
from dittybag.protocol.jsonrpc import Decoded, MalformedFrame, encode
from dittybag.protocol.server import Server
from dittybag.protocol.wire_errors import METHOD_NOT_FOUND

_BODY_SECONDS: Final = 12.0


class BareEndpoint:
    """Answers a body without `jsonrpc` with the bare result, and passes a JSON-RPC body to the endpoint."""

    def __init__(self, server: Server, endpoint: HttpEndpoint, version: str, unread: UnreadResponses) -> None:
        """`version`: the MCP revision that `HEAD` advertises."""
        self._server = server
        self._unread = unread
        self._endpoint = endpoint
        self._version = (b"mcp-protocol-version", version.encode())

    async def head(self, request: HttpRequest) -> None:
        await request.respond(200, headers=[self._version])

    async def post(self, request: HttpRequest) -> None:
        body = await request.read_body(self._server.limits.message_bytes, _BODY_SECONDS)
        try:
            decoded = await decode_body(body)
        except MalformedFrame as malformed:
            error = malformed.error
            if b'"jsonrpc"' in body:
                await request.fail(HttpError(400, error), malformed.request_id)
            else:
                await _fail(request, 400, error.code, error.message, error.data)
            return
        if type(decoded.value) is dict and "jsonrpc" not in decoded.value:
            await self._handle_bare(decoded, request)
        elif type(decoded.value) is not dict and type(decoded.value) is not list:
            await _fail(request, 400, -32600, "Invalid Request: a request must be a JSON object")
        else:
            await self._endpoint.post_decoded(request, decoded)

    async def _handle_bare(self, decoded: Decoded, request: HttpRequest) -> None:
        """Add an envelope, run the request, and send the result without the envelope."""
        message = {"jsonrpc": "2.0", "id": 0, **{key: decoded.value.get(key) for key in ("method", "params")}}
        if message["method"] is None:
            await _fail(request, 400, -32600, "Invalid Request: `method` is missing")
            return
        if str(message["method"]).startswith("notifications/"):
            # A notification has no response, and without a session it has no effect.
            await request.respond(202)
            return
        if message["method"] == "subscriptions/listen":
            await _fail(request, 400, -32600, "Invalid Request: to listen, send a JSON-RPC request to /mcp")
            return
        # The response has no room for notifications.
        stream = ResponseOnlyStream()
        session = open_for_request(self._server, stream, request.auth)

        async def unwrapped(status: int, frame: bytes, headers: Iterable[Header]) -> None:
            await _unwrap(request, frame)

        async def deliver() -> None:
            delivery = ResponseDelivery(stream, request, self._unread, respond=unwrapped)
            if not await delivery.send_response(lambda error: 200, as_json=True):
                session.cancel(0)

        await run_and_deliver(session, Decoded(message, decoded.may_have_surrogates), stream, deliver)


async def _unwrap(request: HttpRequest, frame: bytes) -> None:
    response = msgspec.json.decode(frame, type=dict[str, msgspec.Raw])
    if "result" in response:
        await request.respond(200, bytes(response["result"]))
        return
    error = msgspec.json.decode(response["error"])
    status = 404 if error["code"] == METHOD_NOT_FOUND else 400
    await _fail(request, status, error["code"], error["message"], error.get("data"))


async def _fail(request: HttpRequest, status: int, code: int, message: str, data: Any = None) -> None:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    await request.respond(status, encode({"error": error}))
