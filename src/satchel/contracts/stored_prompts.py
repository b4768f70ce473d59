"""The prompts of a project as MCP prompts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from satchel.contracts.dialects import as_protocol_errors
from satchel.contracts.pages import fitting, start
from satchel.contracts.tools import Place
from satchel.domain.errors import PromptNotFound
from satchel.domain.prompts import Prompt, PromptListing
from satchel.domain.templates import filled
from satchel.protocol import CompletionRequest, Context, InvalidParams, Page
from satchel.protocol.features import MAX_COMPLETIONS, PAGE_SIZE
from satchel.protocol.jsonrpc import encode
from satchel.protocol.types import PromptArgument, PromptInfo, PromptMessage, PromptResult, Text
from satchel.services.prompts import PromptAddress


class StoredPrompts:
    """See `satchel.protocol.PromptSource`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._prompts = place.workspace.prompts

    def stamp(self, ctx: Context) -> Hashable:
        return self._place.workspace.store.stamp("prompt", self._place.project)

    @as_protocol_errors
    async def list(self, position: str | int | None, ctx: Context) -> Page[PromptInfo]:
        found = await self._prompts.listing(self._place.caller(ctx), start(position), PAGE_SIZE + 1)
        page, more = fitting(found, _length)
        return Page(tuple(_info(item) for item in page), page[-1].number if more else None)

    @as_protocol_errors
    async def get(self, name: str, arguments: Mapping[str, Any], ctx: Context) -> PromptResult:
        prompt = await self._find(name, ctx)
        content = prompt.content
        if prompt.arguments:
            for argument in prompt.arguments:
                if argument.required and argument.name not in arguments:
                    raise InvalidParams(data={"details": f"Missing required argument: {argument.name}"})
            declared = {argument.name for argument in prompt.arguments}
            values = {key: as_text(value) for key, value in arguments.items() if key in declared}
            content = filled(content, values)
        message = PromptMessage(role="user", content=Text(text=content))
        return PromptResult(description=prompt.description, messages=(message,))

    @as_protocol_errors
    async def complete(self, request: CompletionRequest, ctx: Context) -> Sequence[str]:
        prompt = await self._find(request.target, ctx)
        choices = next((item.choices for item in prompt.arguments if item.name == request.argument), None)
        if choices is None:
            raise InvalidParams(f"Prompt '{prompt.name}' has no argument '{request.argument}'")
        return matching(choices, request.value) or await proposals(
            self._place, request.argument, request.value, ctx
        )

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
        arguments=tuple(
            PromptArgument(name=item.name, description=item.description, required=item.required)
            for item in prompt.arguments
        ),
    )


def _length(prompt: PromptListing) -> int:
    arguments = sum(len(item.name) + len(item.description or "") for item in prompt.arguments)
    return len(prompt.name) + len(prompt.title) + len(prompt.description or "") + arguments + 100


def as_text(value: Any) -> str:
    """An argument's value as text: JSON, if it is not text already."""
    return value if isinstance(value, str) else encode(value).decode()


def matching(values: tuple[str, ...] | list[str], typed: str) -> list[str]:
    """The values that begin with what was typed, in any case."""
    typed = typed.casefold()
    return [value for value in values if value.casefold().startswith(typed)]


async def proposals(place: Place, argument: str, typed: str, ctx: Context) -> Sequence[str]:
    """Values for an argument whose name says what it holds: projects or tags."""
    if argument == "project":
        return await place.workspace.projects.names(typed, MAX_COMPLETIONS + 1)
    if argument in ("tag", "tags"):
        tags = await place.workspace.prompts.tags(place.caller(ctx))
        return matching([tag.name for tag in tags], typed)
    return []
