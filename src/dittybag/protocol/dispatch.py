"""One client's conversation: frames in, exactly one answer out for every request, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from types import CoroutineType
from typing import Any, Final

from dittybag.protocol import eager_tasks, request_meta
from dittybag.protocol.batches import BatchOutlet
from dittybag.protocol.eras import METHODS, Revision
from dittybag.protocol.jsonrpc import (
    Decoded,
    MalformedFrame,
    decode,
    error_frame,
    request_id_of,
    result_frame,
)
from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.method_handlers import HANDLERS
from dittybag.protocol.pending_requests import PendingRequests
from dittybag.protocol.request_context import Context, InputRequired
from dittybag.protocol.result_encoding import encode_result
from dittybag.protocol.server import Server
from dittybag.protocol.subscriptions import Subscriptions
from dittybag.protocol.transports import Outlet
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

#: What a client of a handshake revision gets that has not set a level.
DEFAULT_LOG_LEVEL: Final = "info"

_SHUTTING_DOWN: Final = "The server is shutting down"


class Session:
    """The state of one client's conversation."""

    # Over HTTP a session may last for one request: it costs only what it needs.
    _closing = False
    #: What whoever asks may do, in the words of whoever builds the server.
    principal: object | None = None
    #: Whether the client is told of changes.
    receives_notifications = True
    _subscriptions: Subscriptions | None = None
    _pending_requests: PendingRequests | None = None

    def __init__(self, server: Server, outlet: Outlet, *, principal_id: str = "") -> None:
        """`outlet`: for what belongs to no request. `principal`: who the transport knows the client to be."""
        self.server = server
        self.outlet = outlet
        self.principal_id = principal_id
        #: The revision agreed on by handshake, or the server's own before that.
        self.revision: Revision = server.default_revision
        self.capabilities: JsonObject = {}
        self.client: JsonObject = {}
        self.log_level: str = DEFAULT_LOG_LEVEL
        self._running: dict[RequestId, Context] = {}

    @property
    def subscriptions(self) -> Subscriptions:
        """What the client wants to be told of."""
        if self._subscriptions is None:
            self._subscriptions = Subscriptions(
                self.server, self.outlet, receives_notifications=self.receives_notifications
            )
        return self._subscriptions

    @property
    def pending_requests(self) -> PendingRequests:
        """What the client has been asked."""
        if self._pending_requests is None:
            self._pending_requests = PendingRequests()
        return self._pending_requests

    def set_principal(self, principal: object | None, *, receives_notifications: bool = True) -> None:
        """The requests that come from now on are made by somebody with this grant."""
        self.principal = principal
        self.receives_notifications = receives_notifications
        if self._subscriptions is not None:
            self._subscriptions.receives_notifications = receives_notifications

    # Frames in

    def receive(self, frame: bytes, outlet: Outlet | None = None) -> None:
        """Take one frame; what there is to say to it goes to `outlet`, or else to the session's own."""
        outlet = outlet or self.outlet
        try:
            decoded = decode(frame)
        except MalformedFrame as malformed:
            self.refuse(malformed.error, malformed.request_id, outlet)
        else:
            self.receive_decoded(decoded, outlet)

    def receive_decoded(self, decoded: Decoded, outlet: Outlet) -> None:
        """Take a frame that somebody has decoded already."""
        if type(decoded.value) is list:
            self._receive_batch(decoded.value, outlet, lone_surrogates=decoded.has_lone_surrogates)
        else:
            self._receive_message(decoded.value, outlet, lone_surrogates=decoded.has_lone_surrogates)

    def refuse(
        self, error: ProtocolError, request_id: RequestId | None, outlet: Outlet | None = None
    ) -> None:
        """Answer a frame that did not become a request."""
        self._send_error(outlet or self.outlet, request_id, to_wire(error, self.revision), self.revision)

    def _receive_batch(self, messages: list[Any], outlet: Outlet, *, lone_surrogates: bool) -> None:
        limit = self.server.limits.batch_messages
        if not self.revision.batches:
            self.refuse(
                InvalidRequest("Invalid Request: send one message at a time, not an array"), None, outlet
            )
        elif not messages:
            self.refuse(InvalidRequest("Invalid Request: an empty batch"), None, outlet)
        elif len(messages) > limit:
            problem = f"Invalid Request: a batch holds at most {limit} messages, this one {len(messages)}"
            self.refuse(InvalidRequest(problem), None, outlet)
        else:
            together = BatchOutlet(outlet, messages)
            for message in messages:
                self._receive_message(message, together, lone_surrogates=lone_surrogates)

    def _receive_message(self, message: Any, outlet: Outlet, *, lone_surrogates: bool) -> None:
        if type(message) is not dict:
            self.refuse(InvalidRequest("Invalid Request: a message is an object"), None, outlet)
        elif "method" in message:
            if "id" in message:
                self._receive_request(message, outlet, lone_surrogates=lone_surrogates)
            else:
                self._receive_notification(message)
        elif "result" in message or "error" in message:
            self.pending_requests.resolve(message)
        else:
            problem = InvalidRequest("Invalid Request: a message needs a method, a result or an error")
            self.refuse(problem, request_id_of(message), outlet)

    def _receive_request(self, message: JsonObject, outlet: Outlet, *, lone_surrogates: bool) -> None:
        request_id = request_id_of(message)
        if request_id is None:
            problem = "Invalid Request: an id is a string or an integer"
            self.refuse(InvalidRequest(problem), None, outlet)
            return
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
            self.refuse(InvalidRequest("Invalid Request: this id is already in use"), request_id, outlet)
        else:
            ctx = Context(self, outlet, request_id, method, params)
            ctx.has_lone_surrogates = lone_surrogates
            if self.server.observe is not None:
                ctx.started_at = perf_counter()
            self._start(ctx)

    def _start(self, ctx: Context) -> None:
        try:
            request_meta.read(ctx)
            outcome = self._find_handler(ctx)(ctx)
            if type(outcome) is CoroutineType:
                start = eager_tasks.start_without_task if ctx.starts_without_task else eager_tasks.start
                task = start(self._finish(ctx, outcome), asyncio.get_running_loop())
                if task is not None and not task.done():
                    ctx.task = task
                    self._running[ctx.id] = ctx
                return
        except BaseException as error:  # noqa: BLE001  # the boundary: whatever it is, the request is answered
            self._fail(ctx, error)
            return
        if outcome is not None:
            self._succeed(ctx, outcome)

    async def _finish(self, ctx: Context, outcome: CoroutineType[Any, Any, Result | bytes]) -> None:
        try:
            result = await outcome
        except asyncio.CancelledError as error:
            self._remove_running(ctx)
            self._fail(ctx, InternalError(_SHUTTING_DOWN) if self._closing else error)
        except BaseException as error:  # noqa: BLE001  # the boundary: whatever it is, the request is answered
            self._remove_running(ctx)
            self._fail(ctx, error)
        else:
            self._remove_running(ctx)
            self._succeed(ctx, result)

    def _remove_running(self, ctx: Context) -> None:
        # Another request may have its id by now, if it was cancelled.
        if self._running.get(ctx.id) is ctx:
            del self._running[ctx.id]

    def _find_handler(self, ctx: Context) -> Callable[[Context], Any]:
        """What answers this request, if it may be asked here and now."""
        limit = self.server.limits.requests_in_flight
        if len(self._running) >= limit:
            raise InternalError(f"Too many requests at once: {limit} are unanswered, wait for some of them")
        method = METHODS.get((ctx.method, ctx.revision.version))
        if method is None:
            raise MethodNotFound(f"Method not found: {ctx.method}")
        if method.capability is not None:
            declared = getattr(self.server.capabilities, method.capability)
            if declared is None or (method.needs_subscribe and not declared.subscribe):
                raise MethodNotFound(
                    f"Method not found: {ctx.method} (this server has no {method.capability})"
                )
        if ctx.revision.stateless or ctx.method == "initialize":
            if isinstance(ctx.outlet, BatchOutlet):
                raise InvalidRequest(f"Invalid Request: {ctx.method} cannot be part of a batch here")
        elif self._subscriptions is not None and not self._subscriptions.ready:
            self._subscriptions.finish_handshake()
        if method.may_ask and ctx.revision.stateless:
            self._read_answers(ctx)
        return HANDLERS[ctx.method]

    def _read_answers(self, ctx: Context) -> None:
        """Take the client's answers to the questions of earlier rounds of this request."""
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

    # Answers out

    def _succeed(self, ctx: Context, result: Result | bytes) -> None:
        if ctx.is_finished:
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
        message = f"The answer has {size} bytes, more than the {limit} that fit in a message; ask for less"
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
        if not METHODS[ctx.method, ctx.revision.version].may_ask:
            self._fail(ctx, RuntimeError(f"a handler of {ctx.method} asked the client something"))
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
        elif method == "notifications/cancelled" and type(params) is dict:
            request_id = params.get("requestId")
            if type(request_id) is int or type(request_id) is str:
                self.cancel(request_id)

    def cancel(self, request_id: RequestId) -> None:
        """Stop a request; it will not be answered. Unknown or finished ones are none of our business."""
        if self._is_listening(request_id):
            self.subscriptions.cancel(request_id)
        elif ctx := self._running.pop(request_id, None):
            ctx.is_finished = True
            self._observe(ctx, "cancelled")
            ctx.outlet.drop_response()
            if ctx.task is not None:
                ctx.task.cancel()

    def _is_listening(self, request_id: RequestId) -> bool:
        return self._subscriptions is not None and request_id in self._subscriptions.streams

    def apply_handshake(self, revision: Revision, capabilities: JsonObject, client: JsonObject) -> None:
        """A handshake has settled on `revision`."""
        self.revision = revision
        self.capabilities = capabilities
        self.client = client
        self.log_level = DEFAULT_LOG_LEVEL
        self.subscriptions.start_handshake()

    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return not self._running

    # The end

    async def close(self, grace: float) -> None:
        """End the conversation: `grace` seconds for what is under way, and an answer to everything."""
        self._closing = True
        if self._subscriptions is not None:
            self._subscriptions.close()
        if self._pending_requests is not None:
            self._pending_requests.close()
        await self._wait(grace)
        for ctx in tuple(self._running.values()):
            if ctx.task is not None:
                ctx.task.cancel()
        await self._wait(0.1)
        for ctx in tuple(self._running.values()):
            self._fail(ctx, InternalError(_SHUTTING_DOWN))

    async def wait_until_idle(self) -> None:
        """Wait until nothing is under way."""
        while tasks := [ctx.task for ctx in self._running.values() if ctx.task is not None]:
            await asyncio.wait(tasks)

    async def _wait(self, seconds: float) -> None:
        tasks = [ctx.task for ctx in self._running.values() if ctx.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
