"""The request in hand, as a handler sees it: who asks, in which revision, and ways to talk back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dittybag.protocol.client_input import (
    Elicit,
    ElicitationResult,
    ElicitUrl,
    ListRoots,
    Question,
    Root,
    SampleModel,
    SamplingMessage,
    SamplingResult,
    declares_capability,
    nest_capability,
)
from dittybag.protocol.eras import CLIENT_METHODS, Revision
from dittybag.protocol.jsonrpc import notification_frame
from dittybag.protocol.types import InputRequest, JsonObject, LogLevel, RequestId
from dittybag.protocol.wire_errors import MissingClientCapability

if TYPE_CHECKING:
    from msgspec import Struct

    from dittybag.protocol.dispatch import Session
    from dittybag.protocol.lazy_tls import asyncio
    from dittybag.protocol.transports import Outlet

LOG_LEVELS: Final[dict[str, int]] = {
    level: severity
    for severity, level in enumerate(
        ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    )
}

T = TypeVar("T")


class InputRequired(BaseException):
    """Ends a handler of a stateless request: the client has to answer first, and then asks again.

    A `BaseException`, so that a handler's own `except Exception` does not swallow it.
    """

    def __init__(self, questions: dict[str, InputRequest]) -> None:
        self.questions = questions


class Context:
    """One request. Handlers get it as their last argument."""

    # Defaults on the class: a request costs only what it sets.
    progress_token: RequestId | None = None
    #: Answered or cancelled: nothing more is to be said.
    is_finished = False
    #: A string in it holds half a surrogate pair.
    has_lone_surrogates = False
    #: Answers of the client from earlier rounds of this request.
    answers: Mapping[str, Any] = MappingProxyType({})
    task: asyncio.Task[None] | None = None
    #: Its handler needs no task before it waits.
    starts_without_task = False
    #: When it came, if somebody wants to know how long it takes.
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
        #: What whoever asks may do, as far as the transport has made sure of it.
        self.principal: object | None = session.principal
        self.revision: Revision = session.revision
        self.id = request_id
        self.method = method
        self.params = params
        self.capabilities: JsonObject = session.capabilities
        #: What the client says of itself; for display only.
        self.client: JsonObject = session.client
        self.log_level: str | None = session.log_level

    @property
    def principal_id(self) -> str:
        """Who asks, as far as the transport has made sure of it; empty if it has not."""
        return self.session.principal_id

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far this request is. Nothing is sent unless it asked to know."""
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
        """Send a log message to the client, if it wants messages of this level."""
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
        """Whether the client can be asked this kind of question."""
        if (str(question.method), self.revision.version) not in CLIENT_METHODS:
            return False
        path: Any = question.capability
        return declares_capability(self.capabilities, path)

    async def elicit(
        self, message: str, form: type[Struct] | JsonObject, *, key: str | None = None
    ) -> ElicitationResult:
        """Ask the user to fill in a form."""
        return await self._ask_one(Elicit(message, form), key)

    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> ElicitationResult:
        """Ask the user to visit a page."""
        return await self._ask_one(ElicitUrl(message, url), key)

    async def sample(
        self,
        *messages: SamplingMessage,
        max_tokens: int,
        system_prompt: str | None = None,
        more: JsonObject | None = None,
        key: str | None = None,
    ) -> SamplingResult:
        """Ask the client's model."""
        question = SampleModel(
            messages=messages, max_tokens=max_tokens, system_prompt=system_prompt, more=more or {}
        )
        return await self._ask_one(question, key)

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Ask where the client works."""
        return (await self._ask_one(ListRoots(), key)).roots

    async def _ask_one(self, question: Question[T], key: str | None) -> T:
        self._question_count += 1
        key = key or f"input-{self._question_count}"
        answer: T = (await self.ask({key: question}))[key]
        return answer

    async def ask(self, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        """Ask several questions at once; the answers come under the same keys.

        In a stateless revision the handler ends here and runs again, from its start, when the client has
        the answers: do nothing before it that must not happen twice, and use the same keys each time.
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
