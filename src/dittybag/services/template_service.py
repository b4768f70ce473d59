"""What prompts and resource templates say when their placeholders have values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dittybag.domain.errors import ArgumentMissing, LibraryPromptNotFound
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.ports import Libraries, Renderer
from dittybag.domain.prompts import Argument, Prompt


class TemplateService:
    """Fills in templates. Values are data: whatever is in them comes out as it was written."""

    def __init__(self, renderer: Renderer, libraries: Libraries) -> None:
        self._renderer = renderer
        self._libraries = libraries

    async def prompt(self, prompt: Prompt, values: Mapping[str, str]) -> str:
        """The text of a stored prompt: as it is, unless it declares arguments."""
        if not prompt.arguments:
            return prompt.content
        return await self._renderer.render(prompt.content, _declared(prompt.arguments, values))

    async def library_prompt(self, name: str, values: Mapping[str, str]) -> tuple[LibraryPrompt, str]:
        """A prompt of a library, and its text."""
        prompt = await self._libraries.find(name)
        if prompt is None:
            raise LibraryPromptNotFound(name)
        return prompt, await self._libraries.text(name, _declared(prompt.arguments, values))

    @property
    def restarts(self) -> int:
        """How many processes have died of a template."""
        return self._renderer.restarts

    def close(self) -> None:
        """End what renders; what it was doing fails."""
        self._renderer.close()

    async def resource(self, content: str, values: Mapping[str, str]) -> str:
        """The text of a resource template for the values in its URI."""
        return await self._renderer.render(content, values)


def _declared(arguments: Iterable[Argument], values: Mapping[str, str]) -> dict[str, str]:
    """The values of the arguments there are. Raises `ArgumentMissing`."""
    declared: dict[str, str] = {}
    for argument in arguments:
        if argument.name in values:
            declared[argument.name] = values[argument.name]
        elif argument.required:
            raise ArgumentMissing(argument.name)
    return declared
