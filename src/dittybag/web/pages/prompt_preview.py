"""Trying out a prompt: values for its arguments, and what it says with them. See `templates/trying.html`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from dittybag.domain.errors import ArgumentMissing, ContentFileMissing, PromptUnusable, RenderingFailed
from dittybag.domain.prompts import Argument
from dittybag.web.browser_requests import WebRequest

#: What the names of fields begin with: an argument may be called like another field.
FIELD: Final = "value-"
#: So much of a text is shown.
_SHOWN_LENGTH: Final = 300_000


class PromptPreview(Struct, frozen=True, kw_only=True):
    """What came of trying."""

    text: str = ""
    #: Required arguments without a value.
    missing: tuple[str, ...] = ()
    #: What is wrong with the prompt, and where.
    problem: str = ""
    file: str | None = None
    line: int | None = None

    @property
    def shown(self) -> str:
        """As much of the text as is shown."""
        return self.text[:_SHOWN_LENGTH]

    @property
    def is_cut(self) -> bool:
        return len(self.text) > _SHOWN_LENGTH


def argument_values(request: WebRequest, arguments: Iterable[Argument]) -> dict[str, str]:
    """The values that somebody has typed; a field that was left empty has none."""
    given = request.form or request.query
    return {argument.name: value for argument in arguments if (value := given.get(FIELD + argument.name, ""))}


async def preview_prompt(
    arguments: Iterable[Argument],
    values: Mapping[str, str],
    render: Callable[[Mapping[str, str]], Awaitable[str]],
) -> PromptPreview:
    """What a prompt says with these values, or why it does not."""
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
        return PromptPreview(problem="Its file is not there", file=error.file)
    except PromptUnusable as error:
        return PromptPreview(problem=str(error))
    return PromptPreview(text=text)
