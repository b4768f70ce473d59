"""Prompts, their parts and their validation."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct

from dittybag.domain.errors import ArgumentInvalid, Check, Problem, RenderingFailed, clip, field_problems
from dittybag.domain.names import name_problem
from dittybag.domain.role_marks import MAX_MESSAGES, TOO_MANY_MESSAGES, Message, RoleMark, split_at_marks
from dittybag.domain.text import body_problem, line_problem, near_matches, one_line

TITLE_LENGTH: Final = 200
CONTENT_BYTES: Final = 1024 * 1024
DESCRIPTION_LENGTH: Final = 4000
TAG_LENGTH: Final = 50
MAX_TAGS: Final = 50
MAX_ARGUMENTS: Final = 50
MAX_CHOICES: Final = 100

_TAG: Final = r"[A-Za-z0-9_-]*"
_ARGUMENT: Final = r"[A-Za-z_][A-Za-z0-9_]{0,99}"


class Argument(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A declared argument of a prompt."""

    name: str
    description: str | None = None
    required: bool = False
    #: The values that it may have; empty if it may have any.
    choices: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The description and the choices in one line."""
        about = " ".join((self.description or "").split())
        choices = f"one of: {', '.join(self.choices)}" if self.choices else ""
        return "; ".join(filter(None, (about, choices)))


class Prompt(Struct, frozen=True, kw_only=True):
    """A text for a model. It is a template if it declares arguments, otherwise verbatim."""

    #: Position in creation order; 0 until the prompt is stored.
    number: int
    id: str
    project: int
    name: str
    title: str
    description: str | None = None
    content: str
    tags: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    created_at: int
    updated_at: int
    version: int = 1

    @property
    def label(self) -> str:
        return display_title(self.title, self.name)


def missing_arguments(arguments: Iterable[Argument], values: Container[str]) -> list[Argument]:
    """Return the required arguments without a value."""
    return [argument for argument in arguments if argument.required and argument.name not in values]


def require_known(prompt: str, arguments: Sequence[Argument], values: Iterable[str]) -> None:
    """Raise `ArgumentInvalid` if a value is given for something that is no argument of the prompt."""
    names = [argument.name for argument in arguments]
    for unknown in values:
        if unknown not in names:
            near = near_matches(unknown, names, 1)
            known = f"its arguments are {clip(', '.join(names))}" if names else "it has no arguments"
            hint = f"did you mean {near[0]}?" if near else known
            raise ArgumentInvalid(f"'{clip(unknown, 60)}' is not an argument of '{clip(prompt)}'; {hint}")


def require_choices(arguments: Iterable[Argument], values: Mapping[str, str]) -> None:
    """Raise `ArgumentInvalid` for a value that is not among the choices. An optional one may be empty."""
    for argument in arguments:
        value = values.get(argument.name)
        if value is None or not argument.choices or value in argument.choices:
            continue
        if value or argument.required:
            choices = clip(", ".join(argument.choices))
            raise ArgumentInvalid(f"{argument.name} must be one of {choices}; not '{clip(value, 60)}'")


def verbatim_messages(text: str, roles: Sequence[RoleMark]) -> tuple[Message, ...]:
    """Return the messages of a text that is not a template. Raises `RenderingFailed`."""
    messages = split_at_marks(text, roles)
    if len(messages) > MAX_MESSAGES:
        raise RenderingFailed(TOO_MANY_MESSAGES)
    return tuple(messages)


class PromptListing(Struct, frozen=True):
    """The fields of a prompt for `prompts/list`."""

    number: int
    name: str
    title: str
    description: str | None
    arguments: tuple[Argument, ...]


class PromptSummary(Struct, frozen=True, kw_only=True):
    """The fields of a prompt for lists."""

    id: str
    name: str
    title: str
    description: str | None
    #: The text around a match, or the start of the content.
    snippet: str
    tags: tuple[str, ...]
    argument_count: int
    created_at: int
    updated_at: int

    @property
    def label(self) -> str:
        return display_title(self.title, self.name)


#: Sort order of a list of prompts: times descending, names ascending.
PromptOrder = Literal["updated", "created", "name"]


class TagCount(Struct, frozen=True):
    """A tag and the number of prompts that have it."""

    name: str
    prompt_count: int


def display_title(title: str, name: str) -> str:
    """Return a title on one line for people; the name if the title is blank."""
    return one_line(title) or name


def normalise_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags as they are stored: in lower case, without duplicates, in the given order."""
    return tuple(dict.fromkeys(tag.lower() for tag in tags))


def title_problem(title: str) -> str | None:
    """Return the problem with the title of a prompt, or `None`. It may be blank and have several lines."""
    if not 1 <= len(title) <= TITLE_LENGTH:
        return f"Title must be 1-{TITLE_LENGTH} characters"
    return body_problem("Title", title)


def _content_problem(content: str) -> str | None:
    if not content:
        return "Content must not be empty"
    return size_problem(len(content.encode()), CONTENT_BYTES) or body_problem("Content", content)


def size_problem(size: int, max_bytes: int) -> str | None:
    """Return the problem with content of `size` bytes, or `None`."""
    return f"Content must be at most {max_bytes} bytes, but has {size}" if size > max_bytes else None


def description_problem(description: str) -> str | None:
    """Return the problem with the description of a prompt or resource, or `None`."""
    if len(description) > DESCRIPTION_LENGTH:
        return f"Description must be at most {DESCRIPTION_LENGTH} characters, but has {len(description)}"
    return body_problem("Description", description)


def tag_count_problems(tags: Sequence[str]) -> list[Problem]:
    """Return the problem with the number of tags, if there is one."""
    if len(tags) <= MAX_TAGS:
        return []
    return [Problem("tags", f"At most {MAX_TAGS} tags are allowed, not {len(tags)}", is_shape=True)]


def _tag_problems(tags: Sequence[str]) -> Iterator[Problem]:
    if too_many := tag_count_problems(tags):
        yield from too_many
        return
    for tag in dict.fromkeys(tags):
        if not 1 <= len(tag) <= TAG_LENGTH:
            yield Problem("tags", f"Tag '{clip(tag, 60)}' must be 1-{TAG_LENGTH} characters")
        elif not re.fullmatch(_TAG, tag):
            yield Problem(
                "tags",
                f"Tag '{tag}' contains invalid characters. Use only letters, numbers, dash, and underscore.",
            )


def _argument_problems(arguments: Sequence[Argument]) -> Iterator[Problem]:
    for message in _argument_messages(arguments):
        yield Problem("arguments", message)


def _argument_messages(arguments: Sequence[Argument]) -> Iterator[str]:
    if len(arguments) > MAX_ARGUMENTS:
        yield f"At most {MAX_ARGUMENTS} arguments are allowed, not {len(arguments)}"
        return
    names = [argument.name for argument in arguments]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield f"Argument '{clip(name, 60)}' is declared twice"
    for argument in arguments:
        shown = clip(argument.name, 60)
        if not re.fullmatch(_ARGUMENT, argument.name):
            yield f"Argument name '{shown}' must be a letter or _ followed by at most 99 letters, digits or _"
        if argument.description is not None and (problem := description_problem(argument.description)):
            yield f"Argument '{shown}': {problem}"
        if len(argument.choices) > MAX_CHOICES:
            yield f"Argument '{shown}' must have at most {MAX_CHOICES} choices"
        elif any(not 1 <= len(c) <= TITLE_LENGTH or line_problem("", c) for c in argument.choices):
            yield f"Argument '{shown}' has a choice that is not a single line of 1-{TITLE_LENGTH} characters"


def problems(**fields: Any) -> list[Problem]:
    """Return all problems with the given fields."""
    return field_problems(_CHECKS, fields)


_CHECKS: Final[Mapping[str, Check]] = {
    "name": partial(name_problem, "Prompt"),
    "title": title_problem,
    "content": _content_problem,
    "description": description_problem,
    "tags": lambda tags: _tag_problems(tags) if tags else None,
    "arguments": lambda arguments: _argument_problems(arguments) if arguments else None,
}
