"""Renders a prompt with the argument values of a form. See `templates/prompt_preview.html`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from minijinja import Markup
from msgspec import Struct

from dittybag.contracts.prompt_rendering import prompt_result
from dittybag.domain.errors import ArgumentMissing, ContentFileMissing, PromptUnusable, RenderingFailed
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.prompts import Argument, Prompt, missing_arguments
from dittybag.domain.role_marks import Message, has_roles, with_role_lines
from dittybag.domain.token_estimate import estimate_tokens
from dittybag.protocol.jsonrpc import encode
from dittybag.web.browser_requests import WebRequest
from dittybag.web.variable_marks import mark_variables

#: Prefix of the field names, because an argument may have the name of another field.
FIELD_PREFIX: Final = "value-"
#: Longer messages are cut.
_MAX_MESSAGE_LENGTH: Final = 20_000


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


def result_values(
    preview: PromptPreview, prompt: Prompt | LibraryPrompt, source: str, command: str
) -> dict[str, Any]:
    """Return what `prompts/prompt_result_body.html` shows of a result.

    `source`: the template, to show it until there is a result, or the line of a problem. `command`: the shell
    command with the same values.
    """
    lines = source.split("\n")
    message = ""
    if not preview.missing and not preview.problem:
        result = encode(prompt_result(prompt.description, preview.messages))
        message = msgspec.json.format(result, indent=2).decode()
    return {
        "result": preview,
        "unfilled": Markup(mark_variables(source, prompt.arguments)) if preview.missing else "",
        "line": lines[preview.line - 1][:200] if preview.line and preview.line <= len(lines) else "",
        "message": message[:_MAX_MESSAGE_LENGTH],
        "is_clipped": len(message) > _MAX_MESSAGE_LENGTH,
        "tokens": estimate_tokens(preview.text),
        "command": command,
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
