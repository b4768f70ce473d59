"""The prompts of a project as MCP prompts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from dittybag.contracts.error_formats import as_protocol_errors
from dittybag.contracts.paging import fitting, start
from dittybag.contracts.tool_specs import Place
from dittybag.domain.errors import PromptNotFound
from dittybag.domain.prompts import Argument, Prompt, PromptListing
from dittybag.protocol import CompletionRequest, Context, InvalidParams, Page
from dittybag.protocol.features import MAX_COMPLETIONS, PAGE_SIZE
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.types import PromptArgument, PromptInfo, PromptMessage, PromptResult, Text
from dittybag.services.prompt_service import PromptAddress


class StoredPrompts:
    """See `dittybag.protocol.PromptSource`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._prompts = place.workspace.prompts

    def stamp(self, ctx: Context) -> Hashable:
        if not self._place.is_seen(ctx):
            return None
        return self._place.workspace.store.stamp("prompt", self._place.project)

    async def list(self, position: str | int | None, ctx: Context) -> Page[PromptInfo]:
        page, _ = await self.page(position, ctx)
        return page

    @as_protocol_errors
    async def page(self, position: str | int | None, ctx: Context) -> tuple[Page[PromptInfo], int]:
        """A page, and how many characters it takes."""
        found = await self._prompts.listing(self._place.caller(ctx), start(position), PAGE_SIZE + 1)
        page, more = fitting(found, _length)
        infos = tuple(_info(item) for item in page)
        return Page(infos, page[-1].number if more else None), sum(map(_length, page))

    @as_protocol_errors
    async def get(self, name: str, arguments: Mapping[str, Any], ctx: Context) -> PromptResult:
        prompt = await self._find(name, ctx)
        return message(prompt.description, await self._place.templates.prompt(prompt, as_texts(arguments)))

    @as_protocol_errors
    async def complete(self, request: CompletionRequest, ctx: Context) -> Sequence[str]:
        prompt = await self._find(request.target, ctx)
        return await proposals(self._place, prompt.name, prompt.arguments, request, ctx)

    async def _find(self, name: str, ctx: Context) -> Prompt:
        try:
            return await self._prompts.get(self._place.caller(ctx), PromptAddress(name=name))
        except PromptNotFound as error:
            problem = f"Prompt '{error.reference}' not found in project '{error.project}'"
            raise InvalidParams(problem) from error


def _info(prompt: PromptListing) -> PromptInfo:
    return PromptInfo(
        name=prompt.name,
        title=prompt.title if prompt.title != prompt.name else None,
        description=prompt.description,
        arguments=argument_infos(prompt.arguments),
    )


def argument_infos(arguments: Iterable[Argument]) -> tuple[PromptArgument, ...]:
    """Arguments as lists show them."""
    return tuple(
        PromptArgument(name=item.name, description=item.description, required=item.required)
        for item in arguments
    )


def message(description: str | None, text: str) -> PromptResult:
    """A prompt's text as the protocol hands it out."""
    content = PromptMessage(role="user", content=Text(text=text))
    return PromptResult(description=description, messages=(content,))


def _length(prompt: PromptListing) -> int:
    arguments = sum(len(item.name) + len(item.description or "") for item in prompt.arguments)
    return len(prompt.name) + len(prompt.title) + len(prompt.description or "") + arguments + 100


def as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """The values of arguments as text: JSON, if they are not text already."""
    return {
        name: value if isinstance(value, str) else encode(value).decode() for name, value in values.items()
    }


def matching(values: tuple[str, ...] | list[str], typed: str) -> list[str]:
    """The values that begin with what was typed, in any case."""
    typed = typed.casefold()
    return [value for value in values if value.casefold().startswith(typed)]


async def proposals(
    place: Place, prompt: str, arguments: Iterable[Argument], request: CompletionRequest, ctx: Context
) -> Sequence[str]:
    """Values for an argument of a prompt: its choices, or what its name says that it holds."""
    for argument in arguments:
        if argument.name == request.argument:
            chosen = matching(argument.choices, request.value)
            return chosen or await known_values(place, request.argument, request.value, ctx)
    raise InvalidParams(f"Prompt '{prompt}' has no argument '{request.argument}'")


async def known_values(place: Place, argument: str, typed: str, ctx: Context) -> Sequence[str]:
    """Values for an argument whose name says what it holds: projects or tags."""
    if argument == "project":
        return await place.workspace.projects.names(typed, MAX_COMPLETIONS + 1, place.caller(ctx))
    if argument in ("tag", "tags"):
        tags = await place.workspace.prompts.tags(place.caller(ctx))
        return matching([tag.name for tag in tags], typed)
    return []
