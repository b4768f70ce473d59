"""Helpers that parse a file and render its prompt as the server does."""

from __future__ import annotations

from minijinja import Environment

from dittybag.domain.role_marks import split_at_marks
from dittybag.library.formats.format_readers import read
from dittybag.library.formats.parsed_prompt import ParsedPrompt

ENVIRONMENT = Environment(
    keep_trailing_newline=True, undefined_behavior="chainable", auto_escape_callback=lambda name: False
)


def parse_one(format: str, file: str, content: str) -> ParsedPrompt:
    """Parse a file that has exactly one prompt and no problems."""
    parsed_file = read(format, file, content)
    assert parsed_file.problems == ()
    (parsed,) = parsed_file.prompts
    return parsed


def render(parsed: ParsedPrompt, **values: str) -> str:
    """Render a prompt. All given values must be declared arguments."""
    assert parsed.text is not None
    assert set(values) <= {argument.name for argument in parsed.arguments}
    if not parsed.template:
        return parsed.text
    return ENVIRONMENT.render_str(parsed.text, **{**parsed.defaults, **values})


def argument_names(parsed: ParsedPrompt) -> list[str]:
    """The names of the arguments, with `!` after required ones."""
    return [argument.name + "!" * argument.required for argument in parsed.arguments]


def problems_of(format: str, file: str, content: str) -> list[tuple[str, int | None, str]]:
    """The problems of a file: level, line, message."""
    return [
        (problem.level, problem.line, problem.message) for problem in read(format, file, content).problems
    ]


def message_sources(parsed: ParsedPrompt) -> list[tuple[str, str]]:
    """The roles and the texts of the messages of a prompt before rendering."""
    assert parsed.text is not None
    return [(message.role, message.text) for message in split_at_marks(parsed.text, parsed.roles)]
