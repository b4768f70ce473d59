"""Renders a prompt with the argument values of a form. See `templates/prompt_preview.html`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from dittybag.domain.errors import ArgumentMissing, ContentFileMissing, PromptUnusable, RenderingFailed
from dittybag.domain.prompts import Argument, missing_arguments
from dittybag.domain.role_marks import Message, has_roles, with_role_lines
from dittybag.web.browser_requests import WebRequest

#: Prefix of the field names, because an argument may have the name of another field.
FIELD_PREFIX: Final = "value-"


class PromptPreview(Struct, frozen=True, kw_only=True):
    """The result of rendering a prompt, or the reason why it failed."""

    messages: tuple[Message, ...] = ()
    #: Required arguments without a value.
    missing: tuple[str, ...] = ()
    #: The problem with the prompt and its location.
    problem: str = ""
    file: str | None = None
    line: int | None = None

    @property
    def text(self) -> str:
        """The whole result, with `--role` lines if there are several messages."""
        return with_role_lines(self.messages) if self.messages else ""

    @property
    def has_roles(self) -> bool:
        return has_roles(self.messages)


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
    render: Callable[[Mapping[str, str]], Awaitable[tuple[Message, ...]]],
) -> PromptPreview:
    if missing := tuple(argument.name for argument in missing_arguments(arguments, values)):
        return PromptPreview(missing=missing)
    try:
        messages = await render(values)
    except ArgumentMissing as error:
        return PromptPreview(missing=error.names)
    except RenderingFailed as error:
        return PromptPreview(problem=error.problem, file=error.file, line=error.line)
    except ContentFileMissing as error:
        return PromptPreview(problem="Its file does not exist", file=error.file)
    except PromptUnusable as error:
        return PromptPreview(problem=str(error))
    return PromptPreview(messages=messages)
