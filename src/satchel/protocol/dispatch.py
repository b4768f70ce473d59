"""One client's conversation: frames in, exactly one answer out for every request, whatever happens."""

from __future__ import annotations

from collections.abc import Mapping
from types import CoroutineType
from typing import Any, Final

from msgspec import Struct

from satchel.protocol import eager
from satchel.protocol.aio import asyncio
from satchel.protocol.arguments import broken_text
from satchel.protocol.context import LOG_LEVELS, Context, InputRequired
from satchel.protocol.eras import METHODS, REVISIONS, STATELESS_VERSIONS, Revision
from satchel.protocol.errors import (
    InputRejected,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ProtocolError,
    UnsupportedVersion,
    WireError,
    to_wire,
    tool_message,
)
from satchel.protocol.inputs import Question
from satchel.protocol.jsonrpc import (
    Malformed,
    decode,
    encode,
    error_frame,
    notification_frame,
    request_frame,
    request_id_of,
    result_frame,
)
from satchel.protocol.methods import IMPLEMENTATIONS
from satchel.protocol.results import SERVER_INFO, encoded
from satchel.protocol.server import ListKind, Server
from satchel.protocol.transports import Outlet
from satchel.protocol.types import InputRequiredResult, JsonObject, RequestId, Result, ToolResult

PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

#: What a client of a handshake revision gets that has not set a level.
DEFAULT_LOG_LEVEL: Final = "info"

_SHUTTING_DOWN: Final = "The server is shutting down"


class _Listener(Struct, frozen=True):
    """An open `subscriptions/listen` request."""

    ctx: Context
    lists: frozenset[ListKind]
    uris: frozenset[str]

    def send(self, method: str, params: JsonObject) -> None:
        meta = {SUBSCRIPTION_ID: self.ctx.id}
        self.ctx.outlet.message(notification_frame(method, {"_meta": meta, **params}))


class Session:
    """The state of one client's conversation."""

    def __init__(self, server: Server, outlet: Outlet, *, principal: str = "") -> None:
        """`outlet`: for what belongs to no request. `principal`: who the transport knows the client to be."""
        self.server = server
        self.outlet = outlet
        self.principal = principal
        #: The revision agreed on by handshake, or the server's own before that.
        self.revision: Revision = server.default_revision
        self.capabilities: JsonObject = {}
        self.client: JsonObject = {}
        self.log_level: str = DEFAULT_LOG_LEVEL
        self._greeted = False
        self._ready = False
        self._closing = False
        self._running: dict[RequestId, Context] = {}
        self._listeners: dict[RequestId, _Listener] = {}
        self._subscribed: set[str] = set()
        self._questions: dict[RequestId, asyncio.Future[Any]] = {}
        self._questions_asked = 0

    # Frames in

    def receive(self, frame: bytes, outlet: Outlet | None = None) -> None:
        """Take one frame; what there is to say to it goes to `outlet`, or else to the session's own."""
        outlet = outlet or self.outlet
        try:
            decoded = decode(frame)
        except Malformed as malformed:
            self.refuse(malformed.error, malformed.request_id, outlet)
            return
        if type(decoded.value) is list:
            self._receive_batch(decoded.value, outlet, broken=decoded.broken_text)
        else:
            self._receive_message(decoded.value, outlet, broken=decoded.broken_text)

    def refuse(
        self, error: ProtocolError, request_id: RequestId | None, outlet: Outlet | None = None
    ) -> None:
        """Answer a frame that did not become a request."""
        self._send_error(outlet or self.outlet, request_id, to_wire(error, self.revision), self.revision)

    def _receive_batch(self, messages: list[Any], outlet: Outlet, *, broken: bool) -> None:
        limit = self.server.limits.batch_messages
        if not self._greeted or not self.revision.batches:
            self.refuse(
                InvalidRequest("Invalid Request: send one message at a time, not an array"), None, outlet
            )
        elif not messages:
            self.refuse(InvalidRequest("Invalid Request: an empty batch"), None, outlet)
        elif len(messages) > limit:
            problem = f"Invalid Request: a batch holds at most {limit} messages, this one {len(messages)}"
            self.refuse(InvalidRequest(problem), None, outlet)
        else:
            together = _BatchOutlet(outlet, sum(map(_expects_answer, messages)))
            for message in messages:
                self._receive_message(message, together, broken=broken)

    def _receive_message(self, message: Any, outlet: Outlet, *, broken: bool) -> None:
        if type(message) is not dict:
            self.refuse(InvalidRequest("Invalid Request: a message is an object"), None, outlet)
        elif "method" in message:
            if "id" in message:
                self._receive_request(message, outlet, broken=broken)
            else:
                self._receive_notification(message)
        elif "result" in message or "error" in message:
            self._receive_response(message)
        else:
            problem = InvalidRequest("Invalid Request: a message needs a method, a result or an error")
            self.refuse(problem, request_id_of(message), outlet)

    def _receive_request(self, message: JsonObject, outlet: Outlet, *, broken: bool) -> None:
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
        elif request_id in self._running or request_id in self._listeners:
            self.refuse(InvalidRequest("Invalid Request: this id is already in use"), request_id, outlet)
        else:
            ctx = Context(self, outlet, request_id, method, params)
            ctx.broken_text = broken
            self._start(ctx)

    def _start(self, ctx: Context) -> None:
        try:
            self._read_meta(ctx)
            outcome = self._implementation(ctx)(ctx)
            if type(outcome) is CoroutineType:
                task = eager.start(self._finish(ctx, outcome), asyncio.get_running_loop())
                if not task.done():
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
            self._forget(ctx)
            self._fail(ctx, InternalError(_SHUTTING_DOWN) if self._closing else error)
        except BaseException as error:  # noqa: BLE001  # the boundary: whatever it is, the request is answered
            self._forget(ctx)
            self._fail(ctx, error)
        else:
            self._forget(ctx)
            self._succeed(ctx, result)

    def _forget(self, ctx: Context) -> None:
        # Another request may have its id by now, if it was cancelled.
        if self._running.get(ctx.id) is ctx:
            del self._running[ctx.id]

    def _read_meta(self, ctx: Context) -> None:
        """Decide the revision of a request, and take what its `_meta` says of it."""
        meta = ctx.params.get("_meta")
        if meta is None:
            meta = {}
        elif type(meta) is not dict:
            raise InvalidParams("Invalid params: `_meta` must be an object")
        if PROTOCOL_VERSION in meta and ctx.method != "initialize":
            self._read_envelope(ctx, meta)
        elif self._greeted and ctx.method != "initialize":
            self._ready = True
        if ctx.broken_text:
            whole = {**ctx.params, "arguments": None} if ctx.method == "tools/call" else ctx.params
            if any(broken_text(whole)):
                raise InvalidParams("Invalid params: half a surrogate pair is not valid Unicode text")
        token = meta.get("progressToken")
        if type(token) is int or type(token) is str:
            ctx.progress_token = token
        elif token is not None:
            raise InvalidParams("Invalid params: `progressToken` must be a string or an integer")

    def _read_envelope(self, ctx: Context, meta: JsonObject) -> None:
        # From here on errors are those of the newest stateless revision, whichever is asked for.
        ctx.revision = REVISIONS[STATELESS_VERSIONS[-1]]
        version, capabilities = meta[PROTOCOL_VERSION], meta.get(CLIENT_CAPABILITIES)
        client, level = meta.get(CLIENT_INFO, {}), meta.get(LOG_LEVEL)
        if type(version) is not str:
            raise InvalidParams(f"Invalid params: `{PROTOCOL_VERSION}` must be a string")
        if type(capabilities) is not dict:
            raise InvalidParams(f"Invalid params: `{CLIENT_CAPABILITIES}` is required and must be an object")
        if type(client) is not dict:
            raise InvalidParams(f"Invalid params: `{CLIENT_INFO}` must be an object")
        if version not in STATELESS_VERSIONS:
            raise UnsupportedVersion(version, STATELESS_VERSIONS)
        if level is not None and (type(level) is not str or level not in LOG_LEVELS):
            raise InvalidParams(f"Invalid params: `{LOG_LEVEL}` must be one of {', '.join(LOG_LEVELS)}")
        if isinstance(ctx.outlet, _BatchOutlet):
            raise InvalidRequest(f"Invalid Request: {version} has no batches")
        ctx.revision = REVISIONS[version]
        ctx.capabilities = capabilities
        ctx.client = client
        ctx.log_level = level

    def _implementation(self, ctx: Context) -> Any:
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
        if isinstance(ctx.outlet, _BatchOutlet) and ctx.method == "initialize":
            raise InvalidRequest("Invalid Request: `initialize` cannot be part of a batch")
        if method.asks and ctx.revision.stateless:
            self._read_answers(ctx)
        return IMPLEMENTATIONS[ctx.method]

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
                    sealed, principal=self.principal, method=ctx.method, params=ctx.params
                )
            )
        if given is not None:
            if type(given) is not dict or not all(type(answer) is dict for answer in given.values()):
                raise InvalidParams("Invalid params: `inputResponses` must be an object of objects")
            answers.update(given)
        ctx.answers = answers

    # Answers out

    def _succeed(self, ctx: Context, result: Result | bytes) -> None:
        if ctx.over:
            return
        try:
            body = result if isinstance(result, bytes) else encoded(result, ctx)
        except (UnicodeEncodeError, TypeError, ValueError, RecursionError) as error:
            self._fail(ctx, error)
            return
        frame = result_frame(ctx.id, body)
        limit = self.server.limits.answer_bytes
        if len(frame) > limit:
            self._fail_as_too_large(ctx, len(frame), limit)
        else:
            ctx.over = True
            ctx.outlet.answer(frame, None)

    def _fail_as_too_large(self, ctx: Context, size: int, limit: int) -> None:
        message = f"The answer has {size} bytes, more than the {limit} that fit in a message; ask for less"
        if ctx.method == "tools/call":
            self._succeed(ctx, ToolResult.of(message, is_error=True))
        else:
            self._fail(ctx, InternalError(message))

    def _fail(self, ctx: Context, error: BaseException) -> None:
        if ctx.over:
            return
        if isinstance(error, InputRequired):
            self._ask_back(ctx, error)
            return
        words = tool_message(error, ctx.revision) if ctx.method == "tools/call" else None
        if words is not None:
            self._succeed(ctx, ToolResult.of(words, is_error=True))
            return
        ctx.over = True
        self._send_error(ctx.outlet, ctx.id, to_wire(error, ctx.revision), ctx.revision)

    def _ask_back(self, ctx: Context, required: InputRequired) -> None:
        if not METHODS[ctx.method, ctx.revision.version].asks:
            self._fail(ctx, RuntimeError(f"a handler of {ctx.method} asked the client something"))
            return
        state = self.server.sealer.seal(
            dict(ctx.answers), principal=self.principal, method=ctx.method, params=ctx.params
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
        outlet.answer(frame, error.code)

    # Notifications in

    def _receive_notification(self, message: JsonObject) -> None:
        method, params = message["method"], message.get("params")
        if method == "notifications/initialized":
            self._ready = self._greeted
        elif method == "notifications/cancelled" and type(params) is dict:
            request_id = params.get("requestId")
            if type(request_id) is int or type(request_id) is str:
                self.cancel(request_id)

    def cancel(self, request_id: RequestId) -> None:
        """Stop a request; it will not be answered. Unknown or finished ones are none of our business."""
        if listener := self._listeners.pop(request_id, None):
            listener.ctx.outlet.drop()
            self._detach_if_idle()
        elif ctx := self._running.pop(request_id, None):
            ctx.over = True
            ctx.outlet.drop()
            if ctx.task is not None:
                ctx.task.cancel()

    # The handshake, and what it lets a session do

    def open_as(self, revision: Revision, capabilities: JsonObject, client: JsonObject) -> None:
        """A handshake has settled on `revision`."""
        self.revision = revision
        self.capabilities = capabilities
        self.client = client
        self.log_level = DEFAULT_LOG_LEVEL
        self._subscribed.clear()
        self._greeted = True
        self._ready = False
        self.server.attach(self)

    def subscribe(self, uri: str) -> None:
        limit = self.server.limits.subscribed_uris
        if len(self._subscribed) >= limit:
            raise InvalidRequest(f"Too many subscriptions: {limit} at most")
        self._subscribed.add(uri)

    def unsubscribe(self, uri: str) -> None:
        self._subscribed.discard(uri)

    def listen(self, ctx: Context, wanted: JsonObject, uris: list[str]) -> None:
        """Keep a `subscriptions/listen` request open."""
        limits = self.server.limits
        if len(self._listeners) >= limits.listen_streams:
            raise InvalidRequest(f"Too many listen streams: {limits.listen_streams} at most")
        if len(uris) > limits.subscribed_uris:
            raise InvalidRequest(f"Too many subscriptions: {limits.subscribed_uris} at most")
        capabilities = self.server.capabilities
        honoured: JsonObject = {}
        lists: set[ListKind] = set()
        for kind in _LIST_KINDS:
            feature = getattr(capabilities, kind)
            if wanted.get(f"{kind}ListChanged") and feature is not None and feature.list_changed:
                honoured[f"{kind}ListChanged"] = True
                lists.add(kind)
        watched: list[str] = []
        if uris and capabilities.resources is not None and capabilities.resources.subscribe:
            honoured["resourceSubscriptions"] = watched = uris
        listener = _Listener(ctx, frozenset(lists), frozenset(watched))
        listener.send("notifications/subscriptions/acknowledged", {"notifications": honoured})
        self._listeners[ctx.id] = listener
        self.server.attach(self)

    def list_changed(self, kind: ListKind) -> None:
        """Tell the client that a list has changed, if it wants to know."""
        method = f"notifications/{kind}/list_changed"
        feature = getattr(self.server.capabilities, kind)
        if self._ready and feature is not None and feature.list_changed:
            self.outlet.message(notification_frame(method))
        for listener in self._listeners.values():
            if kind in listener.lists:
                listener.send(method, {})

    def resource_updated(self, uri: str) -> None:
        """Tell the client that a resource has changed, if it watches it."""
        method = "notifications/resources/updated"
        if uri in self._subscribed:
            self.outlet.message(notification_frame(method, {"uri": uri}))
        for listener in self._listeners.values():
            if uri in listener.uris:
                listener.send(method, {"uri": uri})

    def _detach_if_idle(self) -> None:
        if not self._greeted and not self._listeners:
            self.server.detach(self)

    # Questions to the client (handshake revisions)

    async def ask_client(self, ctx: Context, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        """Put questions to the client, all at once, and wait for the answers."""
        loop = asyncio.get_running_loop()
        waiting: dict[str, tuple[RequestId, asyncio.Future[Any]]] = {}
        try:
            for key, question in questions.items():
                self._questions_asked += 1
                question_id = self._questions_asked
                waiting[key] = (question_id, loop.create_future())
                self._questions[question_id] = waiting[key][1]
                params = question.params(ctx.revision, key)
                ctx.outlet.message(request_frame(question_id, question.method, params))
            return {key: _heard(questions[key], await future) for key, (_, future) in waiting.items()}
        finally:
            for asked_as, future in waiting.values():
                self._questions.pop(asked_as, None)
                if not future.done() or future.cancelled():
                    params = {"requestId": asked_as, "reason": "The request that needed it has ended"}
                    ctx.outlet.message(notification_frame("notifications/cancelled", params))

    def _receive_response(self, message: JsonObject) -> None:
        request_id = message.get("id")
        if type(request_id) is not int:
            return
        future = self._questions.pop(request_id, None)
        if future is not None and not future.done():
            future.set_result(message)

    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return not self._running

    # The end

    async def close(self, grace: float) -> None:
        """End the conversation: `grace` seconds for what is under way, and an answer to everything."""
        self._closing = True
        for listener in self._listeners.values():
            meta = {SUBSCRIPTION_ID: listener.ctx.id, SERVER_INFO: self.server.info}
            body = encode({"resultType": "complete", "_meta": meta})
            listener.ctx.outlet.answer(result_frame(listener.ctx.id, body), None)
        self._listeners.clear()
        self.server.detach(self)
        for future in self._questions.values():
            if not future.done():
                future.set_result({"error": {"code": 0, "message": "The connection was closed"}})
        await self._wait(grace)
        for ctx in tuple(self._running.values()):
            if ctx.task is not None:
                ctx.task.cancel()
        await self._wait(0.1)
        for ctx in tuple(self._running.values()):
            self._fail(ctx, InternalError(_SHUTTING_DOWN))

    async def _wait(self, seconds: float) -> None:
        tasks = [ctx.task for ctx in self._running.values() if ctx.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)


_LIST_KINDS: Final[tuple[ListKind, ...]] = ("tools", "prompts", "resources")


class _BatchOutlet:
    """Gathers the answers to a batch into one."""

    def __init__(self, outlet: Outlet, expected: int) -> None:
        self._outlet = outlet
        self._left = expected
        self._answers: list[bytes] = []

    @property
    def full(self) -> bool:
        return self._outlet.full

    def message(self, frame: bytes) -> None:
        self._outlet.message(frame)

    def answer(self, frame: bytes, error: int | None) -> None:
        self._answers.append(frame)
        self._count_one()

    def drop(self) -> None:
        self._count_one()

    def _count_one(self) -> None:
        self._left -= 1
        if self._left == 0:
            if self._answers:
                self._outlet.answer(b"[" + b",".join(self._answers) + b"]", None)
            else:
                self._outlet.drop()


def _expects_answer(message: Any) -> bool:
    if type(message) is not dict:
        return True
    return "id" in message if "method" in message else not ("result" in message or "error" in message)


def _heard(question: Question[Any], message: JsonObject) -> Any:
    """The answer in a client's response."""
    error = message.get("error")
    if error is not None:
        known = isinstance(error, dict)
        code = error.get("code") if known else None
        words = error.get("message") if known else None
        raise InputRejected(
            question.method, code if isinstance(code, int) else 0, str(words or "no reason given")
        )
    try:
        return question.read(message.get("result"))
    except InvalidParams as invalid:
        raise InputRejected(question.method, invalid.code, invalid.message) from None
