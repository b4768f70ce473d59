"""`dittybag prompt`: manage prompts."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from dittybag.cli.output import json_option, print_json
from dittybag.cli.prompt_read_commands import list_prompts, prompt_data, render, show, suggest_prompts
from dittybag.cli.read_input import STREAM, read_text, refuse, text, usage_error
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.errors import NameTaken, PromptNotFound, require
from dittybag.domain.prompts import CONTENT_BYTES, Argument, Prompt, problems
from dittybag.services.prompt_service import PromptAddress, PromptChange

#: A name, `?` if the argument is optional, and a description.
_ARGUMENT: Final = re.compile(r"\s*([^\s:?]+)\s*(\?)?\s*(?::\s*(.*?)\s*)?", re.DOTALL)


@click.group("prompt")
def command() -> None:
    """Manage prompts."""


command.add_command(list_prompts)
command.add_command(show)
command.add_command(render)


def parse_argument(value: str) -> Argument:
    """Parameter type of prompt arguments, such as `language?: name of the language`."""
    found = _ARGUMENT.fullmatch(text(value))
    if found is None:
        raise click.BadParameter("use NAME or NAME?, optionally followed by a colon and a description.")
    name, optional, description = found.groups()
    return Argument(name=name, description=description or None, required=not optional)


def _prompt_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the parts of a prompt to a command."""
    for option in (
        click.option(
            "-a",
            "--argument",
            "arguments",
            metavar="NAME[?][: ABOUT]",
            type=parse_argument,
            multiple=True,
            help="Argument of the template, `?` if optional; repeatable.",
        ),
        click.option("-t", "--tag", "tags", metavar="TAG", type=text, multiple=True, help="Tag; repeatable."),
        click.option("--description", metavar="TEXT", type=text, help="Description of the prompt."),
        click.option("--title", metavar="TEXT", type=text, help="Title."),
        click.option(
            "-f", "--file", metavar="FILE", help="Read the content from a file; `-` reads standard input."
        ),
        click.argument("content", required=False, type=text),
    ):
        function = option(function)
    return function


@command.command("add")
@click.argument("name", type=text)
@_prompt_options
@in_project
@json_option
def add(
    name: str,
    options: WorkspaceOptions,
    *,
    content: str | None,
    file: str | None,
    tags: tuple[str, ...],
    arguments: tuple[Argument, ...],
    as_json: bool,
    **texts: str | None,
) -> None:
    """Add a prompt.

    The content is CONTENT, or is read from --file or standard input. On a terminal, without either, your
    editor opens. A prompt with arguments is a template: {{ language }} is replaced by the value of the
    argument `language`.

    \b
    Examples:
      dittybag prompt add greet "Say hello in three languages." -t fun
      dittybag prompt add review --file review.md --title "Code review"
      dittybag prompt add explain -a error -a "language?: programming language" \\
        "Explain this {{ language }} error: {{ error }}"
    """
    parts: dict[str, Any] = {"name": name, **texts, "tags": tags, "arguments": arguments}
    given = _content(content, file)
    if given is None and not sys.stdin.isatty():
        given = read_text(STREAM, CONTENT_BYTES)
    prompt = _create_in_editor(options, **parts) if given is None else _create(options, given, **parts)
    _print_result(prompt, f"Added prompt '{prompt.name}'", as_json=as_json)


def _content(content: str | None, file: str | None) -> str | None:
    """Return the content from the argument or the file; `None` if neither was given."""
    if content is not None and file is not None:
        usage_error("CONTENT and --file cannot be used together")
    if content == STREAM:
        file, content = STREAM, None
    return content if file is None else read_text(file, CONTENT_BYTES)


def _create(options: WorkspaceOptions, content: str, **parts: Any) -> Prompt:
    prompt, _ = options.run(
        lambda session: session.workspace.prompts.create(session.caller, content=content, **parts)
    )
    return prompt


def _create_in_editor(options: WorkspaceOptions, name: str, **parts: Any) -> Prompt:
    """Create a prompt whose content is written in the editor. Other fields are validated first."""
    from dittybag.cli.editor import EditorFile

    require(problems(name=name, **parts))
    _require_unused(options, name)
    draft = EditorFile(name)
    content = draft.open_editor(CONTENT_BYTES)
    if not content.strip():
        draft.discard()
        refuse("The text is empty; the prompt was not added")
    return draft.store_with(lambda: _create(options, content, name=name, **parts))


def _require_unused(options: WorkspaceOptions, name: str) -> None:
    try:
        options.run(lambda session: session.workspace.prompts.get(session.caller, PromptAddress(name=name)))
    except PromptNotFound:
        return
    raise NameTaken("prompt", name, options.settings.project)


@command.command("edit")
@click.argument("name", type=text)
@in_project
@json_option
def edit(name: str, options: WorkspaceOptions, *, as_json: bool) -> None:
    """Edit the content of a prompt in your editor.

    If someone else changes the prompt in the meantime, it is not overwritten, and your text is kept in a
    file.

    \b
    Example:
      dittybag prompt edit code-review
    """
    from dittybag.cli.editor import EditorFile

    with suggest_prompts(options):
        prompt = options.run(
            lambda session: session.workspace.prompts.get(session.caller, PromptAddress(any=name))
        )
    draft = EditorFile(prompt.name, prompt.content)
    content = draft.open_editor(CONTENT_BYTES)
    if content == prompt.content:
        draft.discard()
        _print_result(prompt, f"Prompt '{prompt.name}' is unchanged", as_json=as_json)
        return
    change = PromptChange(content=content)
    changed, _ = draft.store_with(
        lambda: options.run(
            lambda session: session.workspace.prompts.update(
                session.caller, PromptAddress(id=prompt.id), change, version=prompt.version
            )
        ),
        f"to overwrite the prompt, run: dittybag prompt update {prompt.name} --file {draft.file}",
    )
    _print_result(changed, f"Updated prompt '{changed.name}'", as_json=as_json)


@command.command("update")
@click.argument("name", type=text)
@_prompt_options
@click.option("--name", "new_name", metavar="NAME", type=text, help="New name.")
@click.option("--no-tags", is_flag=True, help="Remove all tags.")
@click.option("--no-arguments", is_flag=True, help="Remove all arguments.")
@in_project
@json_option
def update(
    name: str,
    options: WorkspaceOptions,
    *,
    content: str | None,
    file: str | None,
    new_name: str | None,
    tags: tuple[str, ...],
    arguments: tuple[Argument, ...],
    no_tags: bool,
    no_arguments: bool,
    as_json: bool,
    **texts: str | None,
) -> None:
    """Update a prompt. Fields that are not given stay the same.

    Tags and arguments replace the existing ones. Use `dittybag tag add` to add a tag.

    \b
    Examples:
      dittybag prompt update greet "Say hello in four languages." --title Greeting
      dittybag prompt update greet --name hello --no-tags
    """
    given: dict[str, Any] = {
        "name": new_name,
        **texts,
        "content": _content(content, file),
        "tags": _replacement(tags, none=no_tags, option="--no-tags"),
        "arguments": _replacement(arguments, none=no_arguments, option="--no-arguments"),
    }
    change = PromptChange(**{part: value for part, value in given.items() if value is not None})
    if change == PromptChange():
        usage_error(
            "Nothing to update: no CONTENT, --file or other option was given",
            "to use an editor, run: dittybag prompt edit NAME",
        )
    with suggest_prompts(options):
        prompt, _ = options.run(
            lambda session: session.workspace.prompts.update(session.caller, PromptAddress(any=name), change)
        )
    _print_result(prompt, f"Updated prompt '{prompt.name}'", as_json=as_json)


def _replacement(values: Sequence[Any], *, none: bool, option: str) -> Sequence[Any] | None:
    if values and none:
        usage_error(f"{option} cannot be used together with new values")
    return tuple(values) if values or none else None


@command.command("delete")
@click.argument("names", metavar="NAME...", type=text, nargs=-1, required=True)
@in_project
@json_option
def delete(names: tuple[str, ...], options: WorkspaceOptions, *, as_json: bool) -> None:
    """Delete prompts, all of them or none.

    `dittybag undo` restores them.

    \b
    Example:
      dittybag prompt delete greet
    """
    addresses = [PromptAddress(any=name) for name in names]
    with suggest_prompts(options):
        deleted = options.run(lambda session: session.workspace.prompts.delete_all(session.caller, addresses))
    if as_json:
        print_json({"deleted": [{"id": prompt.id, "name": prompt.name} for prompt in deleted]})
        return
    for prompt in deleted:
        click.echo(f"Deleted prompt '{prompt.name}'")
    click.echo(f"hint: to restore {'it' if len(deleted) == 1 else 'them'}, run: dittybag undo", err=True)


def _print_result(prompt: Prompt, message: str, *, as_json: bool) -> None:
    if as_json:
        print_json(prompt_data(prompt))
    else:
        click.echo(message)
