"""Rendering of prompts and resource templates."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from dittybag.domain.errors import ArgumentMissing, LibraryPromptNotFound, RenderingFailed
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.ports import Libraries, Renderer
from dittybag.domain.prompts import Argument, Prompt, missing_arguments, require_choices, verbatim_messages
from dittybag.domain.role_marks import Message, find_role_lines
from dittybag.services.template_arguments import (
    find_arguments,
    offered_arguments,
    updated_arguments,
    with_variables,
)


class TemplateService:
    """Renders templates. Values are data: they appear verbatim in the result.

    `client` is who wants a rendering. Clients take turns, so that slow templates of one do not delay others.
    """

    def __init__(self, renderer: Renderer, libraries: Libraries) -> None:
        self._renderer = renderer
        self._libraries = libraries

    def expect_rendering(self, arguments: Iterable[Sequence[Argument]]) -> None:
        """Prepare for a rendering if one of these prompts has arguments. The first one is slow otherwise."""
        if any(arguments):
            self._renderer.start_soon()

    async def render_prompt(
        self, prompt: Prompt, values: Mapping[str, str], *, client: Hashable = None
    ) -> str:
        """Return the text of a stored prompt: rendered if it declares arguments, otherwise verbatim."""
        if not prompt.arguments:
            return prompt.content
        declared = _declared(prompt.arguments, values)
        return await self._renderer.render(prompt.content, declared, client=client)

    async def render_messages(
        self, prompt: Prompt, values: Mapping[str, str], *, client: Hashable = None
    ) -> tuple[Message, ...]:
        """Return the messages of a stored prompt: several if its content has `--role` lines."""
        roles = find_role_lines(prompt.content)
        if not roles:
            return (Message("user", await self.render_prompt(prompt, values, client=client)),)
        if not prompt.arguments:
            return verbatim_messages(prompt.content, roles)
        declared = _declared(prompt.arguments, values)
        return await self._renderer.render_messages(prompt.content, roles, declared, client=client)

    async def find_arguments(self, content: str) -> tuple[Argument, ...]:
        """Return the variables of the content of a new prompt as arguments."""
        return await find_arguments(self._renderer, content)

    async def offered_arguments(self, prompt: Prompt) -> tuple[Argument, ...]:
        """Return the variables of a prompt that are not among its arguments, as arguments."""
        return await offered_arguments(self._renderer, prompt)

    async def updated_arguments(self, before: Prompt, content: str) -> tuple[Argument, ...]:
        """Return the arguments of a prompt with a new content."""
        return await updated_arguments(self._renderer, before, content)

    async def with_variables(self, content: str, declared: tuple[Argument, ...]) -> tuple[Argument, ...]:
        """Return declared arguments and the other variables of the content."""
        return await with_variables(self._renderer, content, declared)

    async def render_library_prompt(
        self, name: str, values: Mapping[str, str], *, client: Hashable = None
    ) -> str:
        """Render a prompt of a library as one text."""
        prompt = await self.find_library_prompt(name)
        declared = _declared(prompt.arguments, values)
        return await self._libraries.render(name, declared, client=client)

    async def render_library_messages(
        self, name: str, values: Mapping[str, str], *, client: Hashable = None
    ) -> tuple[Message, ...]:
        """Render a prompt of a library as messages: several if its file has roles."""
        prompt = await self.find_library_prompt(name)
        declared = _declared(prompt.arguments, values)
        return await self._libraries.render_messages(name, declared, client=client)

    async def find_library_prompt(self, name: str) -> LibraryPrompt:
        """Return a prompt of a library. Raises `LibraryPromptNotFound`."""
        prompt = await self._libraries.find(name)
        if prompt is None:
            raise LibraryPromptNotFound(name)
        return prompt

    @property
    def restarts(self) -> int:
        """The number of worker processes that a template has crashed."""
        return self._renderer.restarts

    def close(self) -> None:
        """Stop the renderer. Renderings in progress fail."""
        self._renderer.close()

    async def render_resource(
        self, content: str, values: Mapping[str, str], *, client: Hashable = None
    ) -> str:
        """Render a resource template with the values from its URI."""
        try:
            return await self._renderer.render(content, values, client=client)
        except RenderingFailed as error:
            raise RenderingFailed(error.problem, line=error.line, kind="resource") from error


def _declared(arguments: Sequence[Argument], values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the declared arguments. Raises `ArgumentMissing` or `ArgumentInvalid`."""
    if missing := missing_arguments(arguments, values):
        raise ArgumentMissing.of(missing)
    require_choices(arguments, values)
    return {argument.name: values[argument.name] for argument in arguments if argument.name in values}
