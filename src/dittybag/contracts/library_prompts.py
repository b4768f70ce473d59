"""Library prompts as MCP prompts, on their own or together with those of a project."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from dittybag.contracts.error_formats import as_protocol_errors
from dittybag.contracts.paging import MAX_PAGE_CHARACTERS, take_page
from dittybag.contracts.prompt_rendering import render_library_prompt
from dittybag.contracts.stored_prompts import (
    StoredPrompts,
    UnusablePromptFormatter,
    argument_infos,
    complete_argument,
)
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.errors import LibraryPromptNotFound, PromptUnusable
from dittybag.domain.libraries import LibraryPrompt
from dittybag.protocol.features import PAGE_SIZE, CompletionRequest, Page
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import JsonObject, PromptInfo, PromptResult
from dittybag.protocol.wire_errors import InvalidParams, ProtocolError

#: Formats a library prompt as a profile lists it.
PromptFormatter = Callable[[LibraryPrompt], PromptInfo]
#: Converts the error about a missing prompt to the profile's error format.
MissingPromptFormatter = Callable[[LibraryPromptNotFound], ProtocolError]


class TwigPromptInfo(PromptInfo, frozen=True, kw_only=True):
    """A list entry of the twig contract, which has a schema."""

    input_schema: JsonObject


def prompt_info(prompt: LibraryPrompt) -> PromptInfo:
    """Return the list entry of a prompt as the protocol defines it."""
    return PromptInfo(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        arguments=argument_infos(prompt.arguments),
    )


def twig_prompt_info(prompt: LibraryPrompt) -> PromptInfo:
    """Return the list entry of a prompt as the twig contract defines it."""
    properties: JsonObject = {}
    for argument in prompt.arguments:
        description = {"description": argument.description} if argument.description is not None else {}
        properties[argument.name] = {"type": "string", **description}
    schema: JsonObject = {"type": "object", "properties": properties}
    if required := [argument.name for argument in prompt.arguments if argument.required]:
        schema["required"] = required
    return TwigPromptInfo(
        name=prompt.name,
        description=prompt.description,
        arguments=argument_infos(prompt.arguments),
        input_schema=schema,
    )


class LibraryPrompts:
    """Serves the prompts of libraries. See `dittybag.protocol.PromptSource`."""

    def __init__(
        self,
        scope: ServerScope,
        format_info: PromptFormatter,
        missing: MissingPromptFormatter,
        unusable: UnusablePromptFormatter,
    ) -> None:
        self._scope = scope
        self._format_info = format_info
        self._missing = missing
        self._unusable = unusable

    def stamp(self, ctx: Context) -> Hashable:
        return self._scope.libraries.stamp()

    @as_protocol_errors
    async def list(self, position: str | int | None, ctx: Context) -> Page[PromptInfo]:
        if not isinstance(position, str | None):
            raise InvalidParams("Invalid cursor: restart the list without a cursor")
        return await self.page(position or "", PAGE_SIZE, MAX_PAGE_CHARACTERS)

    async def page(self, after: str, limit: int, max_characters: int) -> Page[PromptInfo]:
        """Return the prompts after the name `after`: at most `limit` of them and `max_characters` of text."""
        found = await self._scope.libraries.page(after, limit + 1)
        page, more = take_page(found, _length, limit=limit, max_characters=max_characters)
        self._scope.templates.expect_rendering(item.arguments for item in page)
        return Page(tuple(map(self._format_info, page)), (page[-1].name if page else after) if more else None)

    @as_protocol_errors
    async def get(self, name: str, arguments: Mapping[str, Any], ctx: Context) -> PromptResult:
        try:
            return await render_library_prompt(self._scope, name, arguments, ctx)
        except LibraryPromptNotFound as error:
            raise self._missing(error) from error
        except PromptUnusable as error:
            raise self._unusable(error) from error

    @as_protocol_errors
    async def complete(self, request: CompletionRequest, ctx: Context) -> Sequence[str]:
        prompt = await self._scope.libraries.find(request.target)
        if prompt is None:
            raise self._missing(LibraryPromptNotFound(request.target))
        return await complete_argument(self._scope, prompt.name, prompt.arguments, request, ctx)


class CombinedPrompts:
    """Lists the prompts of a project, then those of the libraries. See `dittybag.protocol.PromptSource`."""

    def __init__(self, stored: StoredPrompts, library: LibraryPrompts) -> None:
        self._stored = stored
        self._library = library

    def stamp(self, ctx: Context) -> Hashable:
        stored = self._stored.stamp(ctx)
        return None if stored is None else (stored, self._library.stamp(ctx))

    async def list(self, position: str | int | None, ctx: Context) -> Page[PromptInfo]:
        if isinstance(position, str):
            return await self._library.list(position, ctx)
        stored, used = await self._stored.page(position, ctx)
        if stored.next is not None:
            return stored
        rest = await self._library.page("", PAGE_SIZE - len(stored.items), MAX_PAGE_CHARACTERS - used)
        return Page(stored.items + rest.items, rest.next)

    async def get(self, name: str, arguments: Mapping[str, Any], ctx: Context) -> PromptResult:
        return await self._source_of(name).get(name, arguments, ctx)

    async def complete(self, request: CompletionRequest, ctx: Context) -> Sequence[str]:
        return await self._source_of(request.target).complete(request, ctx)

    def _source_of(self, name: str) -> StoredPrompts | LibraryPrompts:
        # The names of stored prompts never contain a colon.
        return self._library if ":" in name else self._stored


def _length(prompt: LibraryPrompt) -> int:
    arguments = sum(2 * len(item.name) + 2 * len(item.description or "") + 80 for item in prompt.arguments)
    return len(prompt.name) + len(prompt.title or "") + len(prompt.description or "") + arguments + 150
