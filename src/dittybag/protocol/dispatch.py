"""Sessions: each dispatches the frames of one client and sends exactly one response per request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dittybag.protocol import eager_tasks, request_meta
from dittybag.protocol.batches import BatchOutlet, expects_response
from dittybag.protocol.eras.method_table import READING_METHODS
from dittybag.protocol.eras.revisions import Revision
from dittybag.protocol.extensions import ExtensionMethod
from dittybag.protocol.jsonrpc import (
    Decoded,
    MalformedFrame,
    decode,
    error_frame,
    request_id_of,
    result_frame,
)
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.method_handlers import HANDLERS
from dittybag.protocol.outlet import Outlet
from dittybag.protocol.request_context import Context, Effect, InputRequired
from dittybag.protocol.result_encoding import encode_result
from dittybag.protocol.server import Server
from dittybag.protocol.subscriptions import Subscriptions
from dittybag.protocol.types import InputRequiredResult, JsonObject, RequestId, Result, ToolResult
from dittybag.protocol.wire_errors import (
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ProtocolError,
    WireError,
    to_wire,
)

if TYPE_CHECKING:
    from dittybag.protocol.pending_requests import PendingRequests
    from dittybag.protocol.request_order import RequestOrder

#: The log level of a handshake session until the client sets one.
DEFAULT_LOG_LEVEL: Final = "info"

_SHUTTING_DOWN: Final = "The server is shutting down"
_DISCONNECTED: Final = "The connection was lost while the request waited, so it was cancelled"
_OUTCOME_UNKNOWN: Final = (
    "The server is shutting down, and it is not known whether this change was made; "
    "check that before you repeat it"
)

#: Maximum number of waiting requests, and of bytes in unanswered long messages, until the transport should
#: stop reading from the client.
_MAX_WAITING: Final = 256
_MAX_HELD_BYTES: Final = 32 * 1024 * 1024

#: A request whose handler has been called, and is to be awaited.
_Started: TypeAlias = "tuple[Context, CoroutineType[Any, Any, Result | bytes | None]]"


class Session:
    """The state of one client connection."""

    # Over HTTP a session may last for a single request, so optional state is created on first use.
    _closing = False
    #: The authenticated principal, in a type chosen by the application.
    principal: object | None = None
    #: Whether the client may receive change notifications.
    receives_notifications = True
    #: Whether it ends with its request: nothing can be remembered for the client.
    is_temporary = False
    #: A secret id of the connection; empty if nothing lasts longer than a request.
    connection = ""
    #: Whether other processes may have handled requests of this session.
    is_shared = False
    _selection: int | None = None
    _subscriptions: Subscriptions | None = None
    _pending_requests: PendingRequests | None = None
    _order: RequestOrder | None = None
    #: Set whenever no request is running.
    _idle: asyncio.Event | None = None
    _held_bytes = 0
    _is_room_awaited = False

    def __init__(self, server: Server, outlet: Outlet, *, principal_id: str = "") -> None:
        """Open a session.

        `outlet`: receives messages that belong to no request.
        `principal_id`: the id that the transport authenticated; empty if it did not.
        """
        self.server = server
        self.outlet = outlet
        self.principal_id = principal_id
        #: The negotiated revision; before a handshake, the server's default.
        self.revision: Revision = server.default_revision
        self.capabilities: JsonObject = {}
        self.client: JsonObject = {}
        self.log_level: str = DEFAULT_LOG_LEVEL
        #: See `has_room`.
        self.on_room: Callable[[], None] = _do_nothing
        self._running: dict[RequestId, Context] = {}

    @property
    def subscriptions(self) -> Subscriptions:
        """The client's subscriptions."""
        if self._subscriptions is None:
            self._subscriptions = Subscriptions(
                self.server, self.outlet, receives_notifications=self.receives_notifications
            )
            self._subscriptions.selection = self._selection
        return self._subscriptions

    @property
    def pending_requests(self) -> PendingRequests:
        """Requests to the client that are waiting for a response."""
        if self._pending_requests is None:
            from dittybag.protocol.pending_requests import PendingRequests

            self._pending_requests = PendingRequests()
        return self._pending_requests

    @property
    def selection(self) -> int | None:
        """The part of the data that this client sees, numbered by the application; `None` for the default.

        Change notifications are for a part of the data, and cursors do not outlast a change of the selection.
        """
        return self._selection

    @selection.setter
    def selection(self, selection: int | None) -> None:
        self._selection = selection
        self.subscriptions.selection = selection

    def set_principal(self, principal: object | None, *, receives_notifications: bool = True) -> None:
        """Set the principal of all subsequent requests."""
        self.principal = principal
        self.receives_notifications = receives_notifications
        if self._subscriptions is not None:
            self._subscriptions.receives_notifications = receives_notifications

    # Incoming frames

    def receive(self, frame: bytes, outlet: Outlet | None = None) -> None:
        """Handle one frame. Responses go to `outlet`, by default the session's own."""
        outlet = outlet or self.outlet
        try:
            decoded = decode(frame)
        except MalformedFrame as malformed:
            self.refuse(malformed.error, malformed.request_id, outlet)
        else:
            self.receive_decoded(decoded, outlet)

    def receive_decoded(self, decoded: Decoded, outlet: Outlet) -> None:
        """Handle a frame that is already decoded. Handlers that have to wait go on in tasks."""
        if type(decoded.value) is list:
            self._receive_batch(decoded.value, outlet, decoded)
        else:
            started = self._receive_message(decoded.value, outlet, decoded)
            if started is not None:
                self._run_in_task(*started)

    async def run(self, decoded: Decoded, outlet: Outlet, on_wait: Callable[[], object]) -> None:
        """Handle a frame in the current task. `on_wait`: called when the handler has to wait.

        A batch, and a request that waits for earlier ones, go on in other tasks after this has returned.
        """
        if type(decoded.value) is list:
            self._receive_batch(decoded.value, outlet, decoded)
            return
        started = self._receive_message(decoded.value, outlet, decoded)
        if started is not None:
            ctx, handler = started
            try:
                waits_for = handler.send(None)
            except StopIteration as ended:
                self._succeed(ctx, ended.value)
            except BaseException as error:  # noqa: BLE001  # every failure must become a response
                self._fail(ctx, error)
            else:
                self._add_task(ctx, asyncio.current_task())
                on_wait()
                await self._finish(ctx, eager_tasks.resume(handler, waits_for))

    def refuse(
        self, error: ProtocolError, request_id: RequestId | None, outlet: Outlet | None = None
    ) -> None:
        """Send an error for a frame that is not a valid request."""
        self._send_error(outlet or self.outlet, request_id, to_wire(error, self.revision), self.revision)

    def _receive_batch(self, messages: list[Any], outlet: Outlet, decoded: Decoded) -> None:
        limit = self.server.limits.batch_messages
        if not self.revision.batches:
            self.refuse(
                InvalidRequest("Invalid Request: send one message at a time, not an array"), None, outlet
            )
        elif not messages:
            self.refuse(InvalidRequest("Invalid Request: the batch is empty"), None, outlet)
        elif len(messages) > limit:
            problem = f"Invalid Request: a batch must have at most {limit} messages, not {len(messages)}"
            self.refuse(InvalidRequest(problem), None, outlet)
        else:
            batch = BatchOutlet(outlet, messages)
            for message in messages:
                started = self._receive_message(message, batch, decoded)
                if started is not None:
                    self._run_in_task(*started)

    def _receive_message(self, message: Any, outlet: Outlet, decoded: Decoded) -> _Started | None:
        """Handle a message. Returns a request whose handler is to be awaited."""
        if type(message) is not dict:
            self.refuse(InvalidRequest("Invalid Request: a message must be an object"), None, outlet)
        elif "method" in message:
            if "id" in message:
                return self._receive_request(message, outlet, decoded)
            if expects_response(message):
                problem = 'Invalid Request: add `"jsonrpc": "2.0"` and an `id` to this message'
                self.refuse(InvalidRequest(problem), None, outlet)
            else:
                self._receive_notification(message)
        elif "result" in message or "error" in message:
            self.pending_requests.resolve(message)
        else:
            problem = "Invalid Request: a message must have `method`, `result` or `error`"
            self.refuse(InvalidRequest(problem), request_id_of(message), outlet)
        return None

    def _receive_request(self, message: JsonObject, outlet: Outlet, decoded: Decoded) -> _Started | None:
        request_id = request_id_of(message)
        if request_id is None:
            problem = "Invalid Request: `id` must be a string or an integer"
            self.refuse(InvalidRequest(problem), None, outlet)
            return None
        method, params = message["method"], message.get("params")
        if params is None:
            params = {}
        if message.get("jsonrpc") != "2.0":
            self.refuse(InvalidRequest('Invalid Request: `jsonrpc` must be "2.0"'), request_id, outlet)
        elif type(method) is not str:
            self.refuse(InvalidRequest("Invalid Request: `method` must be a string"), request_id, outlet)
        elif type(params) is not dict:
            self.refuse(InvalidParams("Invalid params: `params` must be an object"), request_id, outlet)
        elif request_id in self._running or self._is_listening(request_id):
            self.refuse(InvalidRequest("Invalid Request: this `id` is already in use"), request_id, outlet)
        else:
            ctx = Context(self, outlet, request_id, method, params)
            ctx.may_have_surrogates = decoded.may_have_surrogates
            if self.server.observe is not None:
                ctx.started_at = perf_counter()
            if decoded.size:
                ctx.size = decoded.size
            if not self._running or not self._must_wait(ctx):
                return self._start(ctx)
            self._add_running(ctx)
        return None

    def _start(self, ctx: Context) -> _Started | None:
        """Call the handler of a request. If it must be awaited, return it; otherwise send the response."""
        try:
            request_meta.read(ctx)
            handler = self._find_handler(ctx)
            prepare = self.server.prepare
            if prepare is None or (preparation := prepare(ctx)) is None:
                outcome = handler(ctx)
            else:
                outcome = _run_prepared(ctx, preparation, handler)
        except BaseException as error:  # noqa: BLE001  # every failure must become a response
            self._fail(ctx, error)
            return None
        if type(outcome) is CoroutineType:
            return ctx, outcome
        self._succeed(ctx, outcome)
        return None

    def _run_in_task(self, ctx: Context, handler: CoroutineType[Any, Any, Result | bytes | None]) -> None:
        task = eager_tasks.start(self._finish(ctx, handler), asyncio.get_running_loop())
        if not task.done():
            self._add_task(ctx, task)

    def _add_task(self, ctx: Context, task: asyncio.Task[Any] | None) -> None:
        """Record that the handler of a request has to wait, in this task."""
        ctx.task = task
        self._add_running(ctx)
        ctx.effect = ctx.effect or self._effect_of(ctx)
        if ctx.effect is not None and not ctx.has_left_order:
            self._requests_in_order().begin(ctx)

    async def _finish(self, ctx: Context, handler: Awaitable[Result | bytes | None]) -> None:
        try:
            result = await handler
        except asyncio.CancelledError as error:
            self._remove_running(ctx)
            self._fail(ctx, self._cancellation_error(ctx, error))
            if ctx.task is not None:
                # The task may have more to do: it may deliver the response.
                ctx.task.uncancel()
        except BaseException as error:  # noqa: BLE001  # every failure must become a response
            self._remove_running(ctx)
            self._fail(ctx, error)
        else:
            if ctx.task is not None:
                self._remove_running(ctx)
            self._succeed(ctx, result)
        finally:
            if ctx.is_ordered and self._order is not None:
                self._order.end(ctx)

    def _cancellation_error(self, ctx: Context, error: BaseException) -> BaseException:
        if ctx.is_waiting:
            return InternalError(_SHUTTING_DOWN if self._closing else _DISCONNECTED)
        return _shutdown_error(ctx) if self._closing else error

    def _add_running(self, ctx: Context) -> None:
        self._running[ctx.id] = ctx
        self._held_bytes += ctx.size

    def _remove_running(self, ctx: Context) -> None:
        # After a cancellation, another request may already use the same id.
        if self._running.get(ctx.id) is ctx:
            del self._running[ctx.id]
            self._held_bytes -= ctx.size
            if self._idle is not None and not self._running:
                self._idle.set()
            if self._is_room_awaited:
                self._notify_room()

    # Order

    def _requests_in_order(self) -> RequestOrder:
        if self._order is None:
            from dittybag.protocol.request_order import RequestOrder

            self._order = RequestOrder(self._start_waiting)
        return self._order

    def _effect_of(self, ctx: Context) -> Effect | None:
        if ctx.method == "tools/call":
            name = ctx.params.get("name")
            tool = self.server.tools.get(name) if type(name) is str else None
            return None if tool is None else tool.effect
        reads = ctx.method in READING_METHODS or self.server.extensions.reads(ctx.method)
        return "reads" if reads else None

    def _must_wait(self, ctx: Context) -> bool:
        """Return whether a request must wait for earlier ones. If so, it is started after them."""
        if len(self._running) >= self.server.limits.requests_in_flight:
            # Starting it fails.
            return False
        ctx.effect = self._effect_of(ctx)
        return ctx.effect is not None and self._requests_in_order().must_wait(ctx)

    def _start_waiting(self, ctx: Context) -> None:
        self._remove_running(ctx)
        if (started := self._start(ctx)) is not None:
            self._run_in_task(*started)

    def leave_order(self, ctx: Context) -> None:
        """Let later requests start before one that waits for minutes: for the user, or for others."""
        if ctx.is_waiting or (ctx.effect or self._effect_of(ctx)) != "writes":
            ctx.has_left_order = True
            if self._order is not None:
                self._order.end(ctx)

    def wake_waiting(self) -> None:
        """Start the waiting requests that need not wait any longer."""
        if self._order is not None:
            self._order.wake()

    def pause(self) -> None:
        """Start no waiting requests until `resume`, because the client does not read its responses."""
        self._requests_in_order().paused = True

    def resume(self) -> None:
        self._requests_in_order().paused = False
        self.wake_waiting()

    def has_room(self) -> bool:
        """Return whether the transport may pass more messages. If not, `on_room` is called once it may."""
        if not self._running and not self._is_room_awaited:
            return True
        waiting = 0 if self._order is None else len(self._order)
        has_room = waiting < _MAX_WAITING and self._held_bytes <= _MAX_HELD_BYTES
        if not has_room and self._pending_requests is not None and self._pending_requests.is_waiting:
            # The responses that a request waits for must get through.
            has_room = True
        self._is_room_awaited = not has_room
        return has_room

    def _notify_room(self) -> None:
        if self._is_room_awaited and self.has_room():
            asyncio.get_running_loop().call_soon(self.on_room)

    def _find_handler(self, ctx: Context) -> Callable[[Context], Any]:
        """Return the handler of a request. Raises `ProtocolError` if the request is not allowed now."""
        limit = self.server.limits.requests_in_flight
        if len(self._running) >= limit:
            raise InternalError(f"Too many concurrent requests: wait for some of the {limit} pending ones")
        method = self.server.find_method(ctx.method, ctx.revision.version)
        if method is None:
            raise MethodNotFound(f"Method not found: {ctx.method}")
        if method.capability is not None:
            declared = getattr(self.server.capabilities, method.capability)
            if declared is None or (method.needs_subscribe and not declared.subscribe):
                missing = method.capability if declared is None else "resource subscriptions"
                raise MethodNotFound(f"Method not found: {ctx.method} (this server does not offer {missing})")
        if ctx.revision.stateless or ctx.method == "initialize":
            if isinstance(ctx.outlet, BatchOutlet):
                raise InvalidRequest(f"Invalid Request: {ctx.method} cannot be sent in a batch")
        elif self._subscriptions is not None and not self._subscriptions.ready:
            self._subscriptions.finish_handshake()
        if method.may_ask and ctx.revision.stateless:
            self._read_answers(ctx)
        return method.handle if isinstance(method, ExtensionMethod) else HANDLERS[ctx.method]

    def _read_answers(self, ctx: Context) -> None:
        """Read the client's answers to questions from earlier rounds of this request."""
        given = ctx.params.get("inputResponses")
        sealed = ctx.params.get("requestState")
        if given is None and sealed is None:
            return
        answers: JsonObject = {}
        if sealed is not None:
            answers.update(
                self.server.sealer.open(
                    sealed, principal_id=self.principal_id, method=ctx.method, params=ctx.params
                )
            )
        if given is not None:
            if type(given) is not dict or not all(type(answer) is dict for answer in given.values()):
                raise InvalidParams("Invalid params: `inputResponses` must be an object of objects")
            answers.update(given)
        ctx.answers = answers

    # Responses

    def _succeed(self, ctx: Context, result: Result | bytes | None) -> None:
        """Send the result of a request; `None` if a stream has been opened, which ends with it later."""
        if ctx.is_finished or result is None:
            return
        try:
            body = result if isinstance(result, bytes) else encode_result(result, ctx)
        except (UnicodeEncodeError, TypeError, ValueError, RecursionError) as error:
            self._fail(ctx, error)
            return
        frame = result_frame(ctx.id, body)
        limit = self.server.limits.response_bytes
        if len(frame) > limit:
            self._fail_as_too_large(ctx, len(frame), limit)
        else:
            ctx.is_finished = True
            self._observe(ctx, "ok")
            ctx.outlet.send_response(frame, None)

    def _fail_as_too_large(self, ctx: Context, size: int, limit: int) -> None:
        message = f"The response has {size} bytes, more than the maximum of {limit}; request less data"
        if ctx.method == "tools/call":
            self._succeed(ctx, ToolResult.from_text(message, is_error=True))
        else:
            self._fail(ctx, InternalError(message))

    def _fail(self, ctx: Context, error: BaseException) -> None:
        if ctx.is_finished:
            return
        if isinstance(error, InputRequired):
            self._request_input(ctx, error)
            return
        ctx.is_finished = True
        self._observe(ctx, "error")
        self._send_error(ctx.outlet, ctx.id, to_wire(error, ctx.revision), ctx.revision)

    def _observe(self, ctx: Context, outcome: str) -> None:
        if self.server.observe is not None:
            self.server.observe(ctx, outcome, perf_counter() - ctx.started_at)

    def _request_input(self, ctx: Context, required: InputRequired) -> None:
        method = self.server.find_method(ctx.method, ctx.revision.version)
        if method is None or not method.may_ask:
            self._fail(ctx, RuntimeError(f"a handler of {ctx.method} must not ask the client"))
            return
        state = self.server.sealer.seal(
            dict(ctx.answers), principal_id=self.principal_id, method=ctx.method, params=ctx.params
        )
        self._succeed(ctx, InputRequiredResult(input_requests=required.questions, request_state=state))

    def _send_error(
        self, outlet: Outlet, request_id: RequestId | None, error: WireError, revision: Revision
    ) -> None:
        try:
            frame = error_frame(request_id, error, null_id=revision.null_id_in_errors)
        except (UnicodeEncodeError, TypeError, ValueError):
            message = error.message.encode("ascii", "backslashreplace").decode()
            plain = WireError(error.code, message)
            frame = error_frame(request_id, plain, null_id=revision.null_id_in_errors)
        outlet.send_response(frame, error.code)

    def _receive_notification(self, message: JsonObject) -> None:
        method, params = message["method"], message.get("params")
        if method == "notifications/initialized":
            self.subscriptions.finish_handshake()
        elif method == "notifications/roots/list_changed":
            self.server.on_roots_changed(self)
        elif method == "notifications/cancelled" and type(params) is dict:
            request_id = params.get("requestId")
            if type(request_id) is int or type(request_id) is str:
                self.cancel(request_id)

    def cancel(self, request_id: RequestId) -> None:
        """Cancel a request without a response. Unknown and finished requests are ignored."""
        if self._is_listening(request_id):
            self.subscriptions.cancel(request_id)
        elif ctx := self._running.get(request_id):
            self._remove_running(ctx)
            ctx.is_finished = True
            self._observe(ctx, "cancelled")
            ctx.outlet.drop_response()
            if ctx.task is not None:
                ctx.task.cancel()

    def abandon(self, request_id: RequestId) -> None:
        """Fail a request that waits, because its client has disconnected. Other requests go on."""
        ctx = self._running.get(request_id)
        if ctx is not None and ctx.is_waiting and ctx.task is not None:
            ctx.task.cancel()

    def _is_listening(self, request_id: RequestId) -> bool:
        return self._subscriptions is not None and request_id in self._subscriptions.streams

    def apply_handshake(self, revision: Revision, capabilities: JsonObject, client: JsonObject) -> None:
        """Apply the outcome of a handshake."""
        self.revision = revision
        self.capabilities = capabilities
        self.client = client
        self.log_level = DEFAULT_LOG_LEVEL
        self.subscriptions.start_handshake()

    def is_idle(self) -> bool:
        """Return whether no request is running."""
        return not self._running

    # Shutdown

    async def close(self, grace: float) -> None:
        """Close the session: wait up to `grace` seconds for running requests, then fail the rest."""
        self._closing = True
        if self._subscriptions is not None:
            self._subscriptions.close()
        if self._pending_requests is not None:
            self._pending_requests.close()
        for ctx in tuple(self._running.values()):
            self.abandon(ctx.id)
        await self._wait(grace)
        for ctx in tuple(self._running.values()):
            if ctx.task is not None:
                ctx.task.cancel()
            else:
                # It has not started, and never will.
                self._fail(ctx, InternalError(_SHUTTING_DOWN))
                self._remove_running(ctx)
        await self._wait(0.1)
        for ctx in tuple(self._running.values()):
            self._fail(ctx, _shutdown_error(ctx))

    async def wait_until_idle(self) -> None:
        """Wait until no request is running."""
        await self._wait(None)

    async def _wait(self, seconds: float | None) -> None:
        self._idle = self._idle or asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                # When a request ends, one that waits for it may start.
                while self._running:
                    self._idle.clear()
                    await self._idle.wait()


async def _run_prepared(ctx: Context, preparation: Awaitable[None], handler: Callable[[Context], Any]) -> Any:
    """Run a handler after the application has prepared its request."""
    await preparation
    outcome = handler(ctx)
    return await outcome if type(outcome) is CoroutineType else outcome


def _shutdown_error(ctx: Context) -> InternalError:
    """Return the error for a request that was started and did not end in time."""
    return InternalError(_OUTCOME_UNKNOWN if ctx.effect == "writes" else _SHUTTING_DOWN)


def _do_nothing() -> None:
    pass
