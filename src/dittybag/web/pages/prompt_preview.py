"""Renders a prompt with the argument values of a form. See `templates/prompt_preview.html`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from dittybag.domain.errors import ArgumentMissing, ContentFileMissing, PromptUnusable, RenderingFailed
from dittybag.domain.prompts import Argument
from dittybag.web.browser_requests import WebRequest

#: Prefix of the field names, because an argument may have the name of another field.
FIELD_PREFIX: Final = "value-"


class PromptPreview(Struct, frozen=True, kw_only=True):
    """The result of rendering a prompt, or the reason why it failed."""

    text: str = ""
    #: Required arguments without a value.
    missing: tuple[str, ...] = ()
    #: The problem with the prompt and its location.
    problem: str = ""
    file: str | None = None
    line: int | None = None


def argument_values(request: WebRequest, arguments: Iterable[Argument]) -> dict[str, str]:
    """Return the argument values of a form, without empty fields."""
    given = request.form or request.query
    return {
        argument.name: value
        for argument in arguments
        if (value := given.get(FIELD_PREFIX + argument.name, ""))
    }


async def preview_prompt(
    arguments: Iterable[Argument],
    values: Mapping[str, str],
    render: Callable[[Mapping[str, str]], Awaitable[str]],
) -> PromptPreview:
    missing = tuple(item.name for item in arguments if item.required and item.name not in values)
    if missing:
        return PromptPreview(missing=missing)
    try:
        text = await render(values)
    except ArgumentMissing as error:
        return PromptPreview(missing=(error.argument,))
    except RenderingFailed as error:
        return PromptPreview(problem=error.problem, file=error.file, line=error.line)
    except ContentFileMissing as error:
        return PromptPreview(problem="Its file does not exist", file=error.file)
    except PromptUnusable as error:
        return PromptPreview(problem=str(error))
    return PromptPreview(text=text)
