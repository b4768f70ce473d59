"""Questions that a handler puts to the client or its user while it answers a request."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct

from dittybag.protocol.argument_schemas import find_violations, schema_of
from dittybag.protocol.eras import Revision
from dittybag.protocol.types import JsonObject, Meta, Role, Wire
from dittybag.protocol.wire_errors import InvalidParams

A_co = TypeVar("A_co", covariant=True)
T = TypeVar("T")


class Question(Protocol[A_co]):
    """Something a client can be asked."""

    @property
    def method(self) -> str:
        """The request that carries the question."""
        ...

    @property
    def capability(self) -> tuple[str, ...]:
        """The path in the client's capabilities that says it can be asked."""
        ...

    def params(self, revision: Revision, key: str) -> JsonObject:
        """The parameters of the request, as `revision` spells them."""
        ...

    def read(self, answer: Any) -> A_co:
        """The client's answer as a value. Raises `InvalidParams` if it is not one."""
        ...


def _convert_answer(question: Question[Any], answer: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as problem:
        raise InvalidParams(f"The answer to {question.method} is not valid: {problem}") from None


class ElicitationResult(Struct, frozen=True, rename="camel"):
    """What the user did with a form or a page; the content is there only when it was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


class SamplingResult(Struct, frozen=True, rename="camel"):
    """What the client's model said."""

    role: Role
    content: JsonObject | list[JsonObject]
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """All text in the answer."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        return "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")


class Root(Struct, frozen=True):
    """A place the client works in."""

    uri: str
    name: str | None = None


class RootList(Struct, frozen=True):
    roots: list[Root]


class Elicit(Struct, frozen=True):
    """A form for the user: a flat struct, or a JSON Schema of an object with plain properties."""

    method: ClassVar[str] = "elicitation/create"
    capability: ClassVar[tuple[str, ...]] = ("elicitation", "form")

    message: str
    form: type[Struct] | JsonObject

    @property
    def schema(self) -> JsonObject:
        return self.form if isinstance(self.form, dict) else schema_of(self.form)

    def params(self, revision: Revision, key: str) -> JsonObject:
        return {"message": self.message, "requestedSchema": self.schema}

    def read(self, answer: Any) -> ElicitationResult:
        elicited = _convert_answer(self, answer, ElicitationResult)
        broken = find_violations(elicited.content or {}, self.schema) if elicited.action == "accept" else []
        if broken:
            listed = "; ".join(map(str, broken))
            raise InvalidParams(f"The answer to {self.method} is not valid: {listed}")
        return elicited


class ElicitUrl(Struct, frozen=True):
    """A page for the user to visit, outside the conversation."""

    method: ClassVar[str] = "elicitation/create"
    capability: ClassVar[tuple[str, ...]] = ("elicitation", "url")

    message: str
    url: str

    def params(self, revision: Revision, key: str) -> JsonObject:
        params = {"mode": "url", "message": self.message, "url": self.url}
        return {**params, "elicitationId": key} if revision.elicitation_ids else params

    def read(self, answer: Any) -> ElicitationResult:
        return _convert_answer(self, answer, ElicitationResult)


class SamplingMessage(Wire, frozen=True, kw_only=True):
    role: Role
    content: Any
    meta: Meta | None = msgspec.field(name="_meta", default=None)


class SampleModel(Struct, frozen=True, kw_only=True):
    """A completion by the client's model. `more` holds the rarer parameters, as the protocol spells them."""

    method: ClassVar[str] = "sampling/createMessage"
    capability: ClassVar[tuple[str, ...]] = ("sampling",)

    messages: tuple[SamplingMessage, ...]
    max_tokens: int
    system_prompt: str | None = None
    more: JsonObject = {}

    def params(self, revision: Revision, key: str) -> JsonObject:
        params: JsonObject = {
            "messages": msgspec.to_builtins(self.messages),
            "maxTokens": self.max_tokens,
            **self.more,
        }
        if self.system_prompt is not None:
            params["systemPrompt"] = self.system_prompt
        return params

    def read(self, answer: Any) -> SamplingResult:
        return _convert_answer(self, answer, SamplingResult)


class ListRoots(Struct, frozen=True):
    """The places the client works in."""

    method: ClassVar[str] = "roots/list"
    capability: ClassVar[tuple[str, ...]] = ("roots",)

    def params(self, revision: Revision, key: str) -> JsonObject:
        return {}

    def read(self, answer: Any) -> RootList:
        return _convert_answer(self, answer, RootList)


def declares_capability(capabilities: JsonObject, path: tuple[str, ...]) -> bool:
    """Whether a client's capabilities include what `path` leads to."""
    if path == Elicit.capability and capabilities.get("elicitation") == {}:
        # The first revision with elicitation knew only forms, and its clients are still understood.
        return True
    value: Any = capabilities
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value is not None and value is not False


def nest_capability(path: tuple[str, ...]) -> JsonObject:
    """The capabilities that declare just `path`."""
    value: JsonObject = {}
    for name in reversed(path):
        value = {name: value}
    return value
