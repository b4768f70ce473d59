"""Questions that a handler can ask the client: elicitation, sampling and roots."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct

from dittybag.protocol.argument_schemas import find_violations, schema_of
from dittybag.protocol.eras.revisions import Revision
from dittybag.protocol.types import JsonObject, Meta, Role, WireStruct
from dittybag.protocol.wire_errors import InvalidParams

A_co = TypeVar("A_co", covariant=True)
T = TypeVar("T")


class Question(Protocol[A_co]):
    """A question to the client."""

    @property
    def method(self) -> str:
        """The method of the request to the client."""
        ...

    @property
    def capability(self) -> tuple[str, ...]:
        """The path of the client capability that this question needs."""
        ...

    def params(self, revision: Revision, key: str) -> JsonObject:
        """Return the request parameters in the form of `revision`."""
        ...

    def read(self, answer: Any) -> A_co:
        """Convert the client's answer. Raises `InvalidParams` if it is not valid."""
        ...


def _convert_answer(question: Question[Any], answer: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as problem:
        raise InvalidParams(f"The client's answer to {question.method} is not valid: {problem}") from None


class ElicitationResult(Struct, frozen=True, rename="camel"):
    """The user's response to a form. `content` is set only if it was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


class SamplingResult(Struct, frozen=True, rename="camel"):
    """The response of the client's model."""

    role: Role
    content: JsonObject | list[JsonObject]
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The concatenated text blocks."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        return "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")


class Root(Struct, frozen=True):
    """A root folder of the client."""

    uri: str
    name: str | None = None


class RootList(Struct, frozen=True):
    roots: list[Root]


class Elicit(Struct, frozen=True):
    """A form for the user: a flat struct, or a JSON Schema of an object with primitive properties."""

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
        found = find_violations(elicited.content or {}, self.schema) if elicited.action == "accept" else []
        if found:
            listed = "; ".join(map(str, found))
            raise InvalidParams(f"The client's answer to {self.method} is not valid: {listed}")
        return elicited


class SamplingMessage(WireStruct, frozen=True, kw_only=True):
    role: Role
    content: Any
    meta: Meta | None = msgspec.field(name="_meta", default=None)


class SampleModel(Struct, frozen=True, kw_only=True):
    """A completion by the client's model. `more` holds further parameters, named as in the protocol."""

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
    """A request for the client's root folders."""

    method: ClassVar[str] = "roots/list"
    capability: ClassVar[tuple[str, ...]] = ("roots",)

    def params(self, revision: Revision, key: str) -> JsonObject:
        return {}

    def read(self, answer: Any) -> RootList:
        return _convert_answer(self, answer, RootList)


def declares_capability(capabilities: JsonObject, path: tuple[str, ...]) -> bool:
    """Return whether the capabilities include the one at `path`."""
    if path == Elicit.capability and capabilities.get("elicitation") == {}:
        # The first revision with elicitation had only forms, and declared them with an empty object.
        return True
    value: Any = capabilities
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value is not None and value is not False


def nest_capability(path: tuple[str, ...]) -> JsonObject:
    """Return a capabilities object that declares only `path`."""
    value: JsonObject = {}
    for name in reversed(path):
        value = {name: value}
    return value
