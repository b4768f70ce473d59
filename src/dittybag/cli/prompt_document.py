"""A prompt as a Markdown file for editing."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dittybag.cli.front_matter import format_document, parse_document
from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.prompts import Argument, Prompt


class _ArgumentFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    description: str | None = None
    required: bool = False
    choices: tuple[str, ...] = ()

    def to_argument(self) -> Argument:
        return Argument(
            name=self.name,
            description=self.description or None,
            required=self.required,
            choices=self.choices,
        )


class PromptFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of the front matter."""

    name: str = ""
    title: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    arguments: tuple[_ArgumentFields | str, ...] = ()


class PromptDocument(Struct, frozen=True):
    """What a file says about a prompt."""

    name: str
    #: `None` for the default, which is the name.
    title: str | None
    description: str
    tags: tuple[str, ...]
    arguments: tuple[Argument, ...]
    content: str

    def format(self, *comments: str) -> str:
        """Return the file."""
        fields: dict[str, Any] = {
            "name": self.name,
            "title": self.title or "",
            "description": self.description,
            "tags": self.tags,
            "arguments": tuple(_argument_fields(argument) for argument in self.arguments),
        }
        return format_document(fields, self.content, *comments)

    def parse(self, text: str) -> PromptDocument:
        """Return what a file says. Without front matter, only the content is that of the file.

        Raises `Invalid`.
        """
        fields, content = parse_document(text, PromptFields)
        if fields is None:
            return PromptDocument(self.name, self.title, self.description, self.tags, self.arguments, content)
        return PromptDocument(
            fields.name,
            fields.title or None,
            fields.description,
            fields.tags,
            tuple(_to_argument(argument) for argument in fields.arguments),
            content,
        )


def document_of(prompt: Prompt) -> PromptDocument:
    """Return the document of a stored prompt."""
    title = None if prompt.title == prompt.name else prompt.title
    return PromptDocument(
        prompt.name, title, prompt.description or "", prompt.tags, prompt.arguments, prompt.content
    )


def _argument_fields(argument: Argument) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": argument.name}
    if argument.description:
        fields["description"] = argument.description
    fields["required"] = argument.required
    if argument.choices:
        fields["choices"] = argument.choices
    return fields


def _to_argument(given: _ArgumentFields | str) -> Argument:
    if not isinstance(given, str):
        return given.to_argument()
    from dittybag.cli.prompt_saving import match_argument

    argument = match_argument(given)
    if argument is None:
        raise Invalid([Problem("arguments", f"'{given}' is not an argument: use NAME, NAME? or NAME: ABOUT")])
    return argument
