"""Definitions of tools, prompts, resources and completions: each a description with a handler.

Prompts and resources can also come from a custom source (`PromptSource`, `ResourceSource`), which is queried
page by page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from dittybag.protocol import uri_templates
from dittybag.protocol.argument_schemas import NoArguments
from dittybag.protocol.cursors import Position
from dittybag.protocol.request_context import Context, Effect
from dittybag.protocol.types import (
    Annotations,
    BlobContents,
    Completion,
    Content,
    Icon,
    JsonObject,
    Meta,
    PromptArgument,
    PromptInfo,
    PromptMessage,
    PromptResult,
    ReadResult,
    ResourceInfo,
    ResourceTemplateInfo,
    TextContents,
    ToolAnnotations,
    ToolResult,
)
from dittybag.protocol.wire_errors import InvalidParams, ToolError, UnknownResource

T = TypeVar("T")
Arguments = TypeVar("Arguments")
Info = TypeVar("Info", PromptInfo, ResourceInfo, ResourceTemplateInfo)

#: A handler may be an ordinary function or a coroutine function.
MaybeAwaitable: TypeAlias = Awaitable[T] | T

ToolReturn = ToolResult | str | Content | Sequence[str | Content] | Struct
PromptReturn = PromptResult | str | Sequence[str | PromptMessage]
ResourceReturn = ReadResult | str | bytes
CompletionReturn = Completion | Sequence[str]

#: The allowed values, or a function of the typed text and the other arguments.
Completer = Sequence[str] | Callable[[str, Mapping[str, str]], MaybeAwaitable[CompletionReturn]]

#: Large enough for typical lists to fit on one page, because some clients ignore cursors.
PAGE_SIZE: Final = 1000

#: The protocol's maximum number of completion values in one response.
MAX_COMPLETIONS: Final = 100


class ToolDefinition(Struct, Generic[Arguments], frozen=True, kw_only=True):
    """A tool: a function and an argument struct, which is both the schema and the validator."""

    name: str
    run: Callable[[Arguments, Context], MaybeAwaitable[ToolReturn]]
    arguments: type[Arguments] = NoArguments  # type: ignore[assignment]  # for tools without arguments
    description: str | None = None
    title: str | None = None
    annotations: ToolAnnotations | None = None
    #: The struct (or other type) that the tool returns as `structuredContent`; also the output schema.
    output: Any = None
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = None
    #: Overrides the schema of `arguments` in `tools/list`.
    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None
    #: Formats this tool's errors, including invalid arguments. `None`: the default format.
    format_error: Callable[[ToolError], ToolResult] | None = None
    #: What it does with the data that requests share; `None` if that does not matter. The requests of
    #: one client take effect in the order in which they were sent.
    effect: Effect | None = None


def _build_info(definition: Struct, kind: type[Info]) -> Info:
    """Return the part of a definition that lists show."""
    return kind(**{name: getattr(definition, name) for name in kind.__struct_fields__})


class PromptDefinition(Struct, frozen=True, kw_only=True):
    """A prompt with a handler."""

    name: str
    run: Callable[[Mapping[str, str], Context], MaybeAwaitable[PromptReturn]]
    description: str | None = None
    title: str | None = None
    arguments: tuple[PromptArgument, ...] = ()
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = None
    #: Completers by argument name.
    completions: Mapping[str, Completer] = {}

    @property
    def info(self) -> PromptInfo:
        return _build_info(self, PromptInfo)


class ResourceDefinition(Struct, frozen=True, kw_only=True):
    """A resource with a handler."""

    uri: str
    name: str
    read: Callable[[Context], MaybeAwaitable[ResourceReturn]]
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = None

    @property
    def info(self) -> ResourceInfo:
        return _build_info(self, ResourceInfo)


class ResourceTemplateDefinition(Struct, frozen=True, kw_only=True):
    """A family of resources whose URIs contain variables."""

    uri_template: str
    name: str
    read: Callable[[Mapping[str, str], Context], MaybeAwaitable[ResourceReturn]]
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = None
    #: Completers by variable name.
    completions: Mapping[str, Completer] = {}

    @property
    def info(self) -> ResourceTemplateInfo:
        return _build_info(self, ResourceTemplateInfo)


class Page(Struct, Generic[T], frozen=True):
    """One page of a list. `next` is the position of the next page."""

    items: tuple[T, ...]
    next: Position | None = None


class CompletionRequest(Struct, frozen=True):
    """A request to complete an argument of a prompt or a variable of a resource template."""

    kind: Literal["prompt", "resource"]
    #: The prompt's name or the template's URI.
    target: str
    argument: str
    value: str
    #: Values of the other arguments.
    others: Mapping[str, str]


class PromptSource(Protocol):
    """A provider of prompts."""

    def stamp(self, ctx: Context) -> Hashable:
        """Return a value that stays equal while the list is unchanged.

        Encoded pages are cached by stamp. `None` disables the cache.
        """
        ...

    def list(self, position: Position | None, ctx: Context) -> MaybeAwaitable[Page[PromptInfo]]: ...

    def get(self, name: str, arguments: Mapping[str, str], ctx: Context) -> MaybeAwaitable[PromptReturn]:
        """Raises `InvalidParams` for an unknown prompt or a missing argument."""
        ...

    def complete(self, request: CompletionRequest, ctx: Context) -> MaybeAwaitable[CompletionReturn]: ...


class ResourceSource(Protocol):
    """A provider of resources."""

    def stamp(self, ctx: Context) -> Hashable:
        """Like `PromptSource.stamp`, for resources and templates."""
        ...

    def list(self, position: Position | None, ctx: Context) -> MaybeAwaitable[Page[ResourceInfo]]: ...

    def templates(
        self, position: Position | None, ctx: Context
    ) -> MaybeAwaitable[Page[ResourceTemplateInfo]]: ...

    def read(self, uri: str, ctx: Context) -> MaybeAwaitable[ResourceReturn]:
        """Raises `UnknownResource`."""
        ...

    def complete(self, request: CompletionRequest, ctx: Context) -> MaybeAwaitable[CompletionReturn]: ...


class PromptRegistry:
    """The prompts registered on a server, in registration order."""

    def __init__(self, page_size: int = PAGE_SIZE) -> None:
        self._prompts: dict[str, PromptDefinition] = {}
        self._page_size = page_size
        self._version = 0

    def __len__(self) -> int:
        return len(self._prompts)

    def add(self, prompt: PromptDefinition) -> None:
        self._prompts[prompt.name] = prompt
        self._version += 1

    def remove(self, name: str) -> None:
        del self._prompts[name]
        self._version += 1

    def stamp(self, ctx: Context) -> Hashable:
        return self._version

    def list(self, position: Position | None, ctx: Context) -> Page[PromptInfo]:
        page = slice_page(tuple(self._prompts.values()), position, self._page_size)
        return Page(tuple(prompt.info for prompt in page.items), page.next)

    def get(self, name: str, arguments: Mapping[str, str], ctx: Context) -> MaybeAwaitable[PromptReturn]:
        prompt = self._find(name)
        missing = [
            argument.name
            for argument in prompt.arguments
            if argument.required and argument.name not in arguments
        ]
        if missing:
            listed = ", ".join(missing)
            raise InvalidParams(f"Missing required arguments for the prompt {name}: {listed}")
        return prompt.run(arguments, ctx)

    def complete(self, request: CompletionRequest, ctx: Context) -> MaybeAwaitable[CompletionReturn]:
        prompt = self._find(request.target)
        if request.argument not in {argument.name for argument in prompt.arguments}:
            raise InvalidParams(f"The prompt {prompt.name} has no argument {request.argument}")
        return complete_argument(prompt.completions.get(request.argument), request)

    def _find(self, name: str) -> PromptDefinition:
        prompt = self._prompts.get(name)
        if prompt is None:
            raise InvalidParams(f"Unknown prompt: {name}")
        return prompt


class ResourceRegistry:
    """The resources and templates registered on a server, in registration order."""

    def __init__(self, page_size: int = PAGE_SIZE) -> None:
        self._resources: dict[str, ResourceDefinition] = {}
        self._templates: dict[str, tuple[ResourceTemplateDefinition, uri_templates.UriTemplate]] = {}
        self._page_size = page_size
        self._version = 0

    def __len__(self) -> int:
        return len(self._resources) + len(self._templates)

    def add(self, resource: ResourceDefinition | ResourceTemplateDefinition) -> None:
        if isinstance(resource, ResourceDefinition):
            self._resources[resource.uri] = resource
        else:
            parsed = uri_templates.parse(resource.uri_template)
            self._templates[resource.uri_template] = (resource, parsed)
        self._version += 1

    def remove(self, uri: str) -> None:
        """Remove a resource by its URI, or a template by its URI template."""
        if uri in self._resources:
            del self._resources[uri]
        else:
            del self._templates[uri]
        self._version += 1

    def stamp(self, ctx: Context) -> Hashable:
        return self._version

    def list(self, position: Position | None, ctx: Context) -> Page[ResourceInfo]:
        page = slice_page(tuple(self._resources.values()), position, self._page_size)
        return Page(tuple(resource.info for resource in page.items), page.next)

    def templates(self, position: Position | None, ctx: Context) -> Page[ResourceTemplateInfo]:
        known = tuple(template for template, _ in self._templates.values())
        page = slice_page(known, position, self._page_size)
        return Page(tuple(template.info for template in page.items), page.next)

    async def read(self, uri: str, ctx: Context) -> ReadResult:
        if resource := self._resources.get(uri):
            return to_read_result(await await_if_needed(resource.read(ctx)), uri, resource.mime_type)
        for template, parsed in self._templates.values():
            if (variables := parsed.match(uri)) is not None:
                return to_read_result(
                    await await_if_needed(template.read(variables, ctx)), uri, template.mime_type
                )
        raise UnknownResource(uri)

    def complete(self, request: CompletionRequest, ctx: Context) -> MaybeAwaitable[CompletionReturn]:
        known = self._templates.get(request.target)
        if known is None:
            raise InvalidParams(f"Unknown resource template: {request.target}")
        template, parsed = known
        if request.argument not in parsed.variables:
            raise InvalidParams(f"The template {request.target} has no variable {request.argument}")
        return complete_argument(template.completions.get(request.argument), request)


async def await_if_needed(value: MaybeAwaitable[T]) -> T:
    """Return a value, awaiting it first if it is awaitable."""
    return await value if isinstance(value, Awaitable) else value


def slice_page(items: tuple[T, ...], position: Position | None, size: int) -> Page[T]:
    """Return the page of `items` at `position`. Raises `InvalidParams` if there is no such position."""
    start = position or 0
    if not isinstance(start, int) or not 0 <= start <= len(items):
        raise InvalidParams("Invalid cursor: restart the list without a cursor")
    end = start + size
    return Page(items[start:end], end if end < len(items) else None)


def to_read_result(returned: ResourceReturn, uri: str, mime_type: str | None) -> ReadResult:
    """Convert the return value of a resource handler to the result of `resources/read`."""
    if isinstance(returned, ReadResult):
        return returned
    if isinstance(returned, str):
        return ReadResult(contents=(TextContents(uri=uri, text=returned, mime_type=mime_type),))
    if isinstance(returned, bytes):
        return ReadResult(contents=(BlobContents(uri=uri, blob=returned, mime_type=mime_type),))
    raise TypeError(f"a resource must be text or bytes, not {type(returned).__name__}")


def complete_argument(
    completer: Completer | None, request: CompletionRequest
) -> MaybeAwaitable[CompletionReturn]:
    """Return the completions of one argument."""
    if completer is None:
        return ()
    if callable(completer):
        return completer(request.value, request.others)
    typed = request.value.casefold()
    return tuple(value for value in completer if value.casefold().startswith(typed))
