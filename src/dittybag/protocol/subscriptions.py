"""The change subscriptions of one client."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.protocol.jsonrpc import encode, notification_frame, result_frame
from dittybag.protocol.outlet import Outlet
from dittybag.protocol.request_context import Context
from dittybag.protocol.result_encoding import SERVER_INFO
from dittybag.protocol.server import ListKind, Server
from dittybag.protocol.types import JsonObject, RequestId
from dittybag.protocol.wire_errors import InvalidRequest, UnknownResource

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

LIST_KINDS: Final[tuple[ListKind, ...]] = ("tools", "prompts", "resources")


class _Stream(Struct, frozen=True):
    """An open `subscriptions/listen` request."""

    ctx: Context
    lists: frozenset[ListKind]
    uris: frozenset[str]

    def send(self, method: str, params: JsonObject) -> None:
        meta = {SUBSCRIPTION_ID: self.ctx.id}
        self.ctx.outlet.send_message(notification_frame(method, {"_meta": meta, **params}))


class Subscriptions:
    """The subscriptions of one session.

    After a handshake, the client is notified of all declared list changes and of subscribed resources. In
    stateless revisions, each `subscriptions/listen` stream names what it wants.
    """

    def __init__(self, server: Server, outlet: Outlet, *, receives_notifications: bool = True) -> None:
        """`receives_notifications`: whether the client may receive any notifications."""
        self.receives_notifications = receives_notifications
        #: See `Session.selection`.
        self.selection: int | None = None
        self._server = server
        self._outlet = outlet
        #: The handshake is finished, so unsolicited notifications may be sent.
        self.ready = False
        self._handshake_started = False
        #: The resources subscribed to with `resources/subscribe`.
        self.uris: set[str] = set()
        #: The open `subscriptions/listen` requests, by id.
        self.streams: dict[RequestId, _Stream] = {}

    def start_handshake(self) -> None:
        """Start a handshake and drop the subscriptions of an earlier one."""
        self.uris.clear()
        self._handshake_started = True
        self.ready = False
        self._server.add_listener(self)

    def finish_handshake(self) -> None:
        """Allow notifications, if a handshake was started."""
        self.ready = self._handshake_started

    def subscribe(self, uri: str) -> None:
        if not self.receives_notifications:
            raise UnknownResource(uri)
        limit = self._server.limits.subscribed_uris
        if len(self.uris) >= limit:
            raise InvalidRequest(f"Too many subscriptions (maximum {limit})")
        self.uris.add(uri)

    def unsubscribe(self, uri: str) -> None:
        self.uris.discard(uri)

    def listen(self, ctx: Context, wanted: JsonObject, uris: list[str]) -> None:
        """Open a stream for a `subscriptions/listen` request, limited to what the server offers."""
        limits = self._server.limits
        if len(self.streams) >= limits.listen_streams:
            raise InvalidRequest(f"Too many listen streams (maximum {limits.listen_streams})")
        if len(uris) > limits.subscribed_uris:
            raise InvalidRequest(f"Too many subscriptions (maximum {limits.subscribed_uris})")
        lists = [
            kind
            for kind in LIST_KINDS
            if wanted.get(f"{kind}ListChanged") and self._declares_list_changed(kind)
        ]
        accepted: JsonObject = {f"{kind}ListChanged": True for kind in lists}
        resources = self._server.capabilities.resources
        watched = uris if resources is not None and resources.subscribe else []
        if watched:
            accepted["resourceSubscriptions"] = watched
        stream = _Stream(ctx, frozenset(lists), frozenset(watched))
        stream.send("notifications/subscriptions/acknowledged", {"notifications": accepted})
        self.streams[ctx.id] = stream
        self._server.add_listener(self)

    def cancel(self, request_id: RequestId) -> None:
        """Close a stream that the client cancelled."""
        self.streams.pop(request_id).ctx.outlet.drop_response()
        if not self._handshake_started and not self.streams:
            self._server.remove_listener(self)

    def list_changed(self, kind: ListKind) -> None:
        """Notify the client that a list has changed, if it is subscribed."""
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

    def subscribed_uris(self) -> set[str]:
        return self.uris.union(*(stream.uris for stream in self.streams.values()))

    def resource_updated(self, uri: str) -> None:
        """Notify the client that a resource has changed, if it is subscribed."""
        if not self.receives_notifications:
            return
        method = "notifications/resources/updated"
        if uri in self.uris:
            self._outlet.send_message(notification_frame(method, {"uri": uri}))
        for stream in self.streams.values():
            if uri in stream.uris:
                stream.send(method, {"uri": uri})

    def close(self) -> None:
        """Finish all streams and stop listening for changes."""
        for stream in self.streams.values():
            meta = {SUBSCRIPTION_ID: stream.ctx.id, SERVER_INFO: self._server.info}
            body = encode({"resultType": "complete", "_meta": meta})
            stream.ctx.outlet.send_response(result_frame(stream.ctx.id, body), None)
        self.streams.clear()
        self._server.remove_listener(self)
