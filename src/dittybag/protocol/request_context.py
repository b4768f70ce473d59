"""The context of a request, which handlers use to read its metadata and to talk to the client."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from dittybag.protocol.client_input import (
    Elicit,
    ElicitationResult,
    ListRoots,
    Question,
    Root,
    SampleModel,
    SamplingMessage,
    SamplingResult,
    declares_capability,
    nest_capability,
)
from dittybag.protocol.eras.method_table import CLIENT_METHODS
from dittybag.protocol.eras.revisions import Revision
from dittybag.protocol.jsonrpc import notification_frame
from dittybag.protocol.types import InputRequest, JsonObject, LogLevel, RequestId
from dittybag.protocol.wire_errors import MissingClientCapability

if TYPE_CHECKING:
    from msgspec import Struct

    from dittybag.protocol.dispatch import Session
    from dittybag.protocol.lazy_asyncio import asyncio
    from dittybag.protocol.outlet import Outlet

LOG_LEVELS: Final[dict[str, int]] = {
    level: severity
    for severity, level in enumerate(
        ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    )
}

#: What a request does with the data that requests share.
Effect = Literal["reads", "writes"]

T = TypeVar("T")


class InputRequired(BaseException):
    """Ends the handler of a stateless request until the client repeats the request with its answers.

    A `BaseException`, so that a handler's `except Exception` does not catch it.
    """

    def __init__(self, questions: dict[str, InputRequest]) -> None:
        self.questions = questions


class Context:
    """One request. Handlers receive it as their last argument."""

    # Defaults are class attributes, to keep the creation of a context cheap.
    progress_token: RequestId | None = None
    #: Answered or cancelled: no further messages may be sent.
    is_finished = False
    #: A string in the request may contain a lone surrogate.
    may_have_surrogates = False
    #: The client's answers from earlier rounds of this request.
    answers: Mapping[str, Any] = MappingProxyType({})
    task: asyncio.Task[None] | None = None
    #: Whether it reads or writes what other requests write; set only if its order matters.
    effect: Effect | None = None
    #: Counted as running by the `RequestOrder` of its session.
    is_ordered = False
    has_fixed_order = False
    #: It asked the client, so that later requests no longer wait for it.
    has_left_order = False
    #: It waits for something that may never happen, so that it ends with its connection.
    is_waiting = False
    #: The length of the message, if it is long.
    size = 0
    #: When the request arrived; set only if the server has an observer.
    started_at = 0.0
    _question_count = 0
    _last_progress: float | None = None

    def __init__(
        self,
        session: Session,
        outlet: Outlet,
        request_id: RequestId,
        method: str,
        params: JsonObject,
    ) -> None:
        self.session = session
        self.outlet = outlet
        #: The authenticated principal, in a type chosen by the application; `None` if there is none.
        self.principal: object | None = session.principal
        self.revision: Revision = session.revision
        self.id = request_id
        self.method = method
        self.params = params
        self.capabilities: JsonObject = session.capabilities
        #: The client's `clientInfo`. Unverified: for display only.
        self.client: JsonObject = session.client
        self.log_level: str | None = session.log_level

    @property
    def principal_id(self) -> str:
        """The id that the transport authenticated; empty if it did not."""
        return self.session.principal_id

    def fix_order(self) -> None:
        """Let the client's next write start: whatever it does takes effect after this one.

        A handler calls this in the step in which it passes its write to a queue that keeps the order.
        """
        self.has_fixed_order = True
        self.session.wake_waiting()

    def start_waiting(self) -> None:
        """Let the client's later requests start before this one ends, which may take long.

        From now on, the request is cancelled as soon as the client disconnects or the server stops.
        """
        self.is_waiting = True
        self.session.leave_order(self)

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send a progress notification, if the client requested progress."""
        if self.progress_token is None or self.is_finished:
            return
        if self._last_progress is not None and progress <= self._last_progress:
            return
        self._last_progress = progress
        params: JsonObject = {"progressToken": self.progress_token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None and self.revision.progress_messages:
            params["message"] = message
        self._notify("notifications/progress", params)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send a log message to the client, if its log level includes this one."""
        if self.log_level is None or self.is_finished or not self.session.server.logging:
            return
        if LOG_LEVELS[level] < LOG_LEVELS[self.log_level]:
            return
        params: JsonObject = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        self._notify("notifications/message", params)

    def _notify(self, method: str, params: JsonObject) -> None:
        if not self.outlet.full:
            self.outlet.send_message(notification_frame(method, params))

    def can_ask(self, question: type[Question[Any]] | Question[Any]) -> bool:
        """Return whether the client supports this kind of question."""
        if (str(question.method), self.revision.version) not in CLIENT_METHODS:
            return False
        path: Any = question.capability
        return declares_capability(self.capabilities, path)

    async def elicit(
        self, message: str, form: type[Struct] | JsonObject, *, key: str | None = None
    ) -> ElicitationResult:
        """Ask the user to fill in a form."""
        return await self._ask_one(Elicit(message, form), key)

    async def sample(
        self,
        *messages: SamplingMessage,
        max_tokens: int,
        system_prompt: str | None = None,
        more: JsonObject | None = None,
        key: str | None = None,
    ) -> SamplingResult:
        """Ask the client's model for a completion."""
        question = SampleModel(
            messages=messages, max_tokens=max_tokens, system_prompt=system_prompt, more=more or {}
        )
        return await self._ask_one(question, key)

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Ask for the client's root folders."""
        return (await self._ask_one(ListRoots(), key)).roots

    async def _ask_one(self, question: Question[T], key: str | None) -> T:
        self._question_count += 1
        key = key or f"input-{self._question_count}"
        answer: T = (await self.ask({key: question}))[key]
        return answer

    async def ask(self, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        """Ask several questions together. Returns the answers by key.

        In a stateless revision the handler ends here and runs again from its start when the client has the
        answers. Anything before this call must be safe to repeat, and the keys must stay the same.

        Raises `MissingClientCapability` if the client does not support a question, and `InputRejected` if it
        responds with an error.
        """
        for question in questions.values():
            if not self.can_ask(question):
                raise MissingClientCapability(nest_capability(question.capability))
        if self.revision.stateless:
            return self._collect_answers(questions)
        return await self.session.pending_requests.ask(self, questions)

    def _collect_answers(self, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        missing = {
            key: InputRequest(method=question.method, params=question.params(self.revision, key))
            for key, question in questions.items()
            if key not in self.answers
        }
        if missing:
            raise InputRequired(missing)
        return {key: question.read(self.answers[key]) for key, question in questions.items()}
