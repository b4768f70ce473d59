"""What a draft makes, rendered as the server renders it."""

from __future__ import annotations

from minijinja import Environment

from dittybag.library.formats import ParsedPrompt, read

ENVIRONMENT = Environment(
    keep_trailing_newline=True, undefined_behavior="chainable", auto_escape_callback=lambda name: False
)


def only(format: str, file: str, content: str) -> ParsedPrompt:
    """The one draft in a file that has nothing wrong with it."""
    reading = read(format, file, content)
    assert reading.problems == ()
    (draft,) = reading.prompts
    return draft


def rendered(draft: ParsedPrompt, **values: str) -> str:
    """The text of a draft with the values given, of which it must declare each."""
    assert draft.text is not None
    assert set(values) <= {argument.name for argument in draft.arguments}
    if not draft.template:
        return draft.text
    return ENVIRONMENT.render_str(draft.text, **{**draft.defaults, **values})


def names(draft: ParsedPrompt) -> list[str]:
    """The arguments of a draft, with `!` after those that are required."""
    return [argument.name + "!" * argument.required for argument in draft.arguments]


def told(format: str, file: str, content: str) -> list[tuple[str, int | None, str]]:
    """What is wrong with a file: level, line, message."""
    return [
        (problem.level, problem.line, problem.message) for problem in read(format, file, content).problems
    ]
