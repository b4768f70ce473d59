"""Rendering of prompts and resource templates."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from dittybag.domain.errors import ArgumentMissing, LibraryPromptNotFound, RenderingFailed
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.ports import Libraries, Renderer
from dittybag.domain.prompts import Argument, Prompt
from dittybag.services.template_arguments import find_arguments, updated_arguments


class TemplateService:
    """Renders templates. Values are data: they appear verbatim in the result.

    `client` is who wants a rendering. Clients take turns, so that slow templates of one do not delay others.
    """

    def __init__(self, renderer: Renderer, libraries: Libraries) -> None:
        self._renderer = renderer
        self._libraries = libraries

    async def render_prompt(
        self, prompt: Prompt, values: Mapping[str, str], *, client: Hashable = None
    ) -> str:
        """Return the text of a stored prompt: rendered if it declares arguments, otherwise verbatim."""
        if not prompt.arguments:
            return prompt.content
        declared = _declared(prompt.arguments, values)
        return await self._renderer.render(prompt.content, declared, client=client)

    async def find_arguments(self, content: str) -> tuple[Argument, ...]:
        """Return the variables of the content of a new prompt as arguments."""
        return await find_arguments(self._renderer, content)

    async def updated_arguments(self, before: Prompt, content: str) -> tuple[Argument, ...]:
        """Return the arguments of a prompt with a new content."""
        return await updated_arguments(self._renderer, before, content)

    async def render_library_prompt(
        self, name: str, values: Mapping[str, str], *, client: Hashable = None
    ) -> tuple[LibraryPrompt, str]:
        """Return a prompt of a library and its rendered text."""
        prompt = await self._libraries.find(name)
        if prompt is None:
            raise LibraryPromptNotFound(name)
        declared = _declared(prompt.arguments, values)
        return prompt, await self._libraries.render(name, declared, client=client)

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


def _declared(arguments: Iterable[Argument], values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the declared arguments. Raises `ArgumentMissing`."""
    declared: dict[str, str] = {}
    for argument in arguments:
        if argument.name in values:
            declared[argument.name] = values[argument.name]
        elif argument.required:
            raise ArgumentMissing(argument.name)
    return declared
