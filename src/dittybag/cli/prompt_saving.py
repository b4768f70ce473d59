"""Storing prompts: their arguments follow their contents, and what was stored is printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct
from msgspec.structs import replace

from dittybag.cli.output import note, print_result
from dittybag.cli.workspace_options import WorkspaceOptions
from dittybag.domain.entities import to_data
from dittybag.domain.prompts import Argument, Prompt
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.template_arguments import (
    describe_found,
    find_arguments,
    updated_arguments,
    with_variables,
)

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession

#: A name, `?` if the argument is optional, and a description.
_ARGUMENT: Final = r"\s*([^\s:?]+)\s*(\?)?\s*(?::\s*(.*?)\s*)?"


class SavedPrompt(Struct, frozen=True):
    """A prompt that was added or updated."""

    prompt: Prompt
    #: The variables of the content that have become its arguments.
    found: tuple[Argument, ...]


def match_argument(text: str) -> Argument | None:
    """Return the argument in a text such as `language?: name of the language`; `None` if it is none."""
    found = re.fullmatch(_ARGUMENT, text, re.DOTALL)
    if found is None:
        return None
    name, optional, description = found.groups()
    return Argument(name=name, description=description or None, required=not optional)


def create_prompt(
    options: WorkspaceOptions, content: str, *, arguments: tuple[Argument, ...] | None, **parts: Any
) -> SavedPrompt:
    """Create a prompt. Without `arguments`, they are the variables in the content."""
    from dittybag.assembly.workspace_session import open_renderer

    async def create(session: WorkspaceSession) -> SavedPrompt:
        with open_renderer() as renderer:
            if arguments is None:
                declared = await find_arguments(renderer, content)
            else:
                declared = await with_variables(renderer, content, arguments)
        prompt, _ = await session.workspace.prompts.create(
            session.caller, content=content, arguments=declared, **parts
        )
        return SavedPrompt(prompt, _added(arguments or (), declared))

    return options.run(create, create=True)


def update_prompt(
    options: WorkspaceOptions, address: PromptAddress, change: PromptChange, *, version: int | None = None
) -> SavedPrompt:
    """Update a prompt. Arguments that were found in its content follow a new content."""
    from dittybag.assembly.workspace_session import open_renderer

    async def update(session: WorkspaceSession) -> SavedPrompt:
        prompts, given = session.workspace.prompts, change
        found: tuple[Argument, ...] = ()
        if change.content is not UNSET or change.arguments is not UNSET:
            before = await prompts.get(session.caller, address)
            content = before.content if change.content is UNSET else change.content
            with open_renderer() as renderer:
                if change.arguments is UNSET:
                    known, arguments = before.arguments, await updated_arguments(renderer, before, content)
                else:
                    known = change.arguments
                    arguments = await with_variables(renderer, content, known)
            found = _added(known, arguments)
            if arguments != before.arguments:
                given = replace(change, arguments=arguments)
        prompt, _ = await prompts.update(session.caller, address, given, version=version)
        return SavedPrompt(prompt, found)

    return options.run(update)


def _added(before: tuple[Argument, ...], after: tuple[Argument, ...]) -> tuple[Argument, ...]:
    known = {argument.name for argument in before}
    return tuple(argument for argument in after if argument.name not in known)


def print_saved(saved: SavedPrompt, verb: str) -> None:
    """Print what was saved, and what happens to the variables of its content."""
    print_result(to_data(saved.prompt), f"{verb} prompt '{saved.prompt.name}'")
    if saved.found:
        them = "it" if len(saved.found) == 1 else "them"
        note(f"{describe_found(saved.found)}; --verbatim keeps {them} as text")
