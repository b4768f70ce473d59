"""The prompts of a project as MCP prompts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from dittybag.contracts.error_formats import as_protocol_errors, unusable_prompt
from dittybag.contracts.paging import parse_position, take_page
from dittybag.contracts.prompt_rendering import render_stored_prompt
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.errors import PromptNotFound, PromptUnusable
from dittybag.domain.prompts import Argument, Prompt, PromptListing
from dittybag.protocol.features import MAX_COMPLETIONS, PAGE_SIZE, CompletionRequest, Page
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import PromptArgument, PromptInfo, PromptResult
from dittybag.protocol.wire_errors import InvalidParams, ProtocolError
from dittybag.services.prompt_service import PromptAddress

#: Converts the error about a prompt that cannot be rendered to the profile's error format.
UnusablePromptFormatter = Callable[[PromptUnusable], ProtocolError]


class StoredPrompts:
    """Serves the prompts of a project. See `dittybag.protocol.PromptSource`."""

    def __init__(self, scope: ServerScope, unusable: UnusablePromptFormatter = unusable_prompt) -> None:
        self._scope = scope
        self._unusable = unusable
        self._prompts = scope.workspace.prompts

    def stamp(self, ctx: Context) -> Hashable:
        if not self._scope.can_see_project(ctx):
            return None
        return self._scope.workspace.store.stamp("prompt", self._scope.project_of(ctx))

    async def list(self, position: str | int | None, ctx: Context) -> Page[PromptInfo]:
        page, _ = await self.page(position, ctx)
        return page

    @as_protocol_errors
    async def page(self, position: str | int | None, ctx: Context) -> tuple[Page[PromptInfo], int]:
        """Return a page and its length in characters."""
        found = await self._prompts.listing(self._scope.caller(ctx), parse_position(position), PAGE_SIZE + 1)
        page, more = take_page(found, _length)
        self._scope.templates.expect_rendering(item.arguments for item in page)
        infos = tuple(_info(item) for item in page)
        return Page(infos, page[-1].number if more else None), sum(map(_length, page))

    @as_protocol_errors
    async def get(self, name: str, arguments: Mapping[str, Any], ctx: Context) -> PromptResult:
        prompt = await self._find(name, ctx)
        try:
            return await render_stored_prompt(self._scope, prompt, arguments, ctx)
        except PromptUnusable as error:
            raise self._unusable(error) from error

    @as_protocol_errors
    async def complete(self, request: CompletionRequest, ctx: Context) -> Sequence[str]:
        prompt = await self._find(request.target, ctx)
        return await complete_argument(self._scope, prompt.name, prompt.arguments, request, ctx)

    async def _find(self, name: str, ctx: Context) -> Prompt:
        try:
            return await self._prompts.get(self._scope.caller(ctx), PromptAddress(name=name))
        except PromptNotFound as error:
            problem = f"Prompt '{error.reference}' not found in project '{error.project}'"
            raise InvalidParams(problem) from error


def _info(prompt: PromptListing) -> PromptInfo:
    return PromptInfo(
        name=prompt.name,
        # Clients show the name of a prompt without a title.
        title=prompt.title if prompt.title != prompt.name and prompt.title.strip() else None,
        description=prompt.description,
        arguments=argument_infos(prompt.arguments),
    )


def argument_infos(arguments: Iterable[Argument]) -> tuple[PromptArgument, ...]:
    """Return the list entries of arguments."""
    return tuple(
        PromptArgument(name=item.name, description=item.description, required=item.required)
        for item in arguments
    )


def _length(prompt: PromptListing) -> int:
    arguments = sum(len(item.name) + len(item.description or "") for item in prompt.arguments)
    return len(prompt.name) + len(prompt.title) + len(prompt.description or "") + arguments + 100


def filter_by_prefix(values: tuple[str, ...] | list[str], typed: str) -> list[str]:
    """Return the values that begin with `typed`, ignoring case."""
    typed = typed.casefold()
    return [value for value in values if value.casefold().startswith(typed)]


async def complete_argument(
    scope: ServerScope, prompt: str, arguments: Iterable[Argument], request: CompletionRequest, ctx: Context
) -> Sequence[str]:
    """Suggest values for an argument of a prompt: its choices, else values that fit its name.

    Raises `InvalidParams` if the prompt has no such argument.
    """
    for argument in arguments:
        if argument.name == request.argument:
            choices = filter_by_prefix(argument.choices, request.value)
            return choices or await complete_by_name(scope, request.argument, request.value, ctx)
    raise InvalidParams(f"Prompt '{prompt}' has no argument '{request.argument}'")


async def complete_by_name(scope: ServerScope, argument: str, typed: str, ctx: Context) -> Sequence[str]:
    """Suggest projects or tags for an argument called `project`, `tag` or `tags`."""
    if argument == "project":
        return await scope.workspace.projects.names(typed, MAX_COMPLETIONS + 1, scope.caller(ctx))
    if argument in ("tag", "tags"):
        tags = await scope.workspace.prompts.tags(scope.caller(ctx))
        return filter_by_prefix([tag.name for tag in tags], typed)
    return []
