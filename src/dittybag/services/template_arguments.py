"""Arguments of a prompt that does not declare them: the variables in its content."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dittybag.domain.errors import RenderingFailed
from dittybag.domain.ports import Renderer
from dittybag.domain.prompts import MAX_ARGUMENTS, Argument, Prompt, problems
from dittybag.domain.template_tags import TEMPLATE_TAG


async def find_arguments(renderer: Renderer, content: str) -> tuple[Argument, ...]:
    """Return the `{{ variables }}` of a content as arguments, in the order of their first use.

    Empty if the content is not a template that renders with these arguments: many texts contain braces.
    """
    names = await _variables(renderer, content)
    if not 0 < len(names) <= MAX_ARGUMENTS:
        return ()
    blocks = "\n".join(re.findall(TEMPLATE_TAG, content))
    # An argument is a text, without attributes and items.
    uses = {name: re.search(rf"\b{re.escape(name)}\b(?!\s*[.\[(])", blocks) for name in names}
    starts = {name: use.start() for name, use in uses.items() if use is not None}
    found = tuple(
        Argument(name=name, required=not _may_be_missing(name, blocks))
        for name in sorted(starts, key=starts.__getitem__)
    )
    if len(found) < len(names) or any(problems(arguments=found)):
        return ()
    try:
        await renderer.render(content, {name: name for name in names})
    except RenderingFailed:
        return ()
    return found


async def updated_arguments(renderer: Renderer, before: Prompt, content: str) -> tuple[Argument, ...]:
    """Return the arguments of a prompt with a new content.

    Arguments that were found in the old content follow the content. Declared arguments stay, and the other
    variables of the content join them. A text with variables that was kept as text remains a text.
    """
    if before.arguments == await find_arguments(renderer, before.content):
        return await find_arguments(renderer, content)
    return await with_variables(renderer, content, before.arguments)


async def with_variables(
    renderer: Renderer, content: str, declared: tuple[Argument, ...]
) -> tuple[Argument, ...]:
    """Return declared arguments and the other variables of the content, which would render as empty text.

    Without declared arguments, the content is a text, and there are none.
    """
    if not declared:
        return ()
    known = {argument.name for argument in declared}
    blocks = "\n".join(re.findall(TEMPLATE_TAG, content))
    return declared + tuple(
        Argument(name=name, required=not _may_be_missing(name, blocks))
        for name in await _variables(renderer, content)
        if name not in known
    )


async def offered_arguments(renderer: Renderer, prompt: Prompt) -> tuple[Argument, ...]:
    """Return the variables of a prompt that are not among its arguments, as arguments.

    A text without arguments has them all at once: with one of them, it becomes a template.
    """
    if not prompt.arguments:
        return await find_arguments(renderer, prompt.content)
    offered = await with_variables(renderer, prompt.content, prompt.arguments)
    return () if any(problems(arguments=offered)) else offered[len(prompt.arguments) :]


def describe_found(arguments: Sequence[Argument]) -> str:
    """Say which variables have become arguments."""
    *others, last = (f"{{{{ {argument.name} }}}}" for argument in arguments)
    if not others:
        return f"the variable {last} is now an argument"
    return f"the variables {', '.join(others)} and {last} are now arguments"


async def _variables(renderer: Renderer, content: str) -> tuple[str, ...]:
    """Return the variables of a template; empty for a text that cannot be a template."""
    if "{{" not in content:
        return ()
    try:
        return await renderer.variables(content)
    except RenderingFailed:
        return ()


def _may_be_missing(name: str, blocks: str) -> bool:
    """Whether a template has a default value for a variable, or a condition on it."""
    name = re.escape(name)
    return bool(
        re.search(
            rf"\b{name}\s*\|\s*d(?:efault)?\b|\b(?:if|elif)\b[^{{}}]*\b{name}\b|\b{name}\s+is\b", blocks
        )
    )
