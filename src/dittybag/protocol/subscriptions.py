"""What one client wants to be told of when it changes, and how it is told."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.protocol.jsonrpc import encode, notification_frame, result_frame
from dittybag.protocol.request_context import Context
from dittybag.protocol.result_encoding import SERVER_INFO
from dittybag.protocol.server import ListKind, Server
from dittybag.protocol.transports import Outlet
from dittybag.protocol.types import JsonObject, RequestId
from dittybag.protocol.wire_errors import InvalidRequest, UnknownResource

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

_LIST_KINDS: Final[tuple[ListKind, ...]] = ("tools", "prompts", "resources")


class _Stream(Struct, frozen=True):
    """An open `subscriptions/listen` request."""

    ctx: Context
    lists: frozenset[ListKind]
    uris: frozenset[str]

    def send(self, method: str, params: JsonObject) -> None:
        meta = {SUBSCRIPTION_ID: self.ctx.id}
        self.ctx.outlet.send_message(notification_frame(method, {"_meta": meta, **params}))


class Subscriptions:
    """Those of one session: by handshake for everything declared, or by streams for what they name."""

    def __init__(self, server: Server, outlet: Outlet, *, receives_notifications: bool = True) -> None:
        """`receives_notifications`: whether the client may be told of anything at all."""
        self.receives_notifications = receives_notifications
        self._server = server
        self._outlet = outlet
        #: The client has shaken hands, and may be sent what it did not ask for.
        self.ready = False
        self._handshake_started = False
        #: The resources that it is told of by handshake.
        self.uris: set[str] = set()
        #: The open `subscriptions/listen` requests, by their ids.
        self.streams: dict[RequestId, _Stream] = {}

    def start_handshake(self) -> None:
        """A handshake begins; what an earlier one subscribed to is forgotten."""
        self.uris.clear()
        self._handshake_started = True
        self.ready = False
        self._server.add_listener(self)

    def finish_handshake(self) -> None:
        """The client is past its handshake, if there was one."""
        self.ready = self._handshake_started

    def subscribe(self, uri: str) -> None:
        if not self.receives_notifications:
            raise UnknownResource(uri)
        limit = self._server.limits.subscribed_uris
        if len(self.uris) >= limit:
            raise InvalidRequest(f"Too many subscriptions: {limit} at most")
        self.uris.add(uri)

    def unsubscribe(self, uri: str) -> None:
        self.uris.discard(uri)

    def listen(self, ctx: Context, wanted: JsonObject, uris: list[str]) -> None:
        """Keep a `subscriptions/listen` request open, for as much of what it wants as there is."""
        limits = self._server.limits
        if len(self.streams) >= limits.listen_streams:
            raise InvalidRequest(f"Too many listen streams: {limits.listen_streams} at most")
        if len(uris) > limits.subscribed_uris:
            raise InvalidRequest(f"Too many subscriptions: {limits.subscribed_uris} at most")
        lists = [
            kind
            for kind in _LIST_KINDS
            if wanted.get(f"{kind}ListChanged") and self._declares_list_changed(kind)
        ]
        honoured: JsonObject = {f"{kind}ListChanged": True for kind in lists}
        resources = self._server.capabilities.resources
        watched = uris if resources is not None and resources.subscribe else []
        if watched:
            honoured["resourceSubscriptions"] = watched
        stream = _Stream(ctx, frozenset(lists), frozenset(watched))
        stream.send("notifications/subscriptions/acknowledged", {"notifications": honoured})
        self.streams[ctx.id] = stream
        self._server.add_listener(self)

    def cancel(self, request_id: RequestId) -> None:
        """End a stream at the client's wish."""
        self.streams.pop(request_id).ctx.outlet.drop_response()
        if not self._handshake_started and not self.streams:
            self._server.remove_listener(self)

    def list_changed(self, kind: ListKind) -> None:
        """Tell the client that a list has changed, if it wants to know."""
        if not self.receives_notifications:
            return
        method = f"notifications/{kind}/list_changed"
        if self.ready and self._declares_list_changed(kind):
            self._outlet.send_message(notification_frame(method))
        for stream in self.streams.values():
            if kind in stream.lists:
                stream.send(method, {})

    def _declares_list_changed(self, kind: ListKind) -> bool:
        feature = getattr(self._server.capabilities, kind)
        return feature is not None and feature.list_changed

    def resource_updated(self, uri: str) -> None:
        """Tell the client that a resource has changed, if it watches it."""
        if not self.receives_notifications:
            return
        method = "notifications/resources/updated"
        if uri in self.uris:
            self._outlet.send_message(notification_frame(method, {"uri": uri}))
        for stream in self.streams.values():
            if uri in stream.uris:
                stream.send(method, {"uri": uri})

    def close(self) -> None:
        """End all streams gracefully, and hear of nothing any more."""
        for stream in self.streams.values():
            meta = {SUBSCRIPTION_ID: stream.ctx.id, SERVER_INFO: self._server.info}
            body = encode({"resultType": "complete", "_meta": meta})
            stream.ctx.outlet.send_response(result_frame(stream.ctx.id, body), None)
        self.streams.clear()
        self._server.remove_listener(self)
