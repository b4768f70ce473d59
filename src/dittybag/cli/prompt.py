"""`dittybag prompt`: manage prompts."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import UNSET, Struct
from msgspec.structs import replace

from dittybag.cli.output import note, print_deleted, print_result
from dittybag.cli.prompt_read_commands import get_prompt, list_prompts, render, show
from dittybag.cli.prompt_run import run
from dittybag.cli.read_input import STREAM, read_text, refuse, text, usage_error
from dittybag.cli.strict_options import StrictGroup, option_group
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.entities import to_data
from dittybag.domain.errors import NameTaken, PromptNotFound, require
from dittybag.domain.prompts import CONTENT_BYTES, Argument, Prompt, problems
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.template_arguments import (
    describe_found,
    find_arguments,
    undeclared_variables,
    updated_arguments,
)

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession

#: A name, `?` if the argument is optional, and a description.
_ARGUMENT: Final = re.compile(r"\s*([^\s:?]+)\s*(\?)?\s*(?::\s*(.*?)\s*)?", re.DOTALL)


class _SavedPrompt(Struct, frozen=True):
    """A prompt that was added or updated."""

    prompt: Prompt
    #: The variables of the content that have become its arguments.
    found: tuple[Argument, ...]
    #: The variables that are not among its arguments.
    undeclared: list[str]


@click.group("prompt", StrictGroup)
def command() -> None:
    """Manage prompts."""


command.add_command(list_prompts)
command.add_command(show)
command.add_command(render)
command.add_command(run)


def parse_argument(value: str) -> Argument:
    """Parameter type of prompt arguments, such as `language?: name of the language`."""
    found = _ARGUMENT.fullmatch(text(value))
    if found is None:
        raise click.BadParameter("use NAME or NAME?, optionally followed by a colon and a description.")
    name, optional, description = found.groups()
    return Argument(name=name, description=description or None, required=not optional)


#: The options for the parts of a prompt.
_prompt_options: Final = option_group(
    click.argument("content", required=False, type=text),
    click.option(
        "-f", "--file", metavar="FILE", help="Read the content from a file; `-` reads standard input."
    ),
    click.option("--title", metavar="TEXT", type=text, help="Title."),
    click.option("--description", metavar="TEXT", type=text, help="Description of the prompt."),
    click.option("-t", "--tag", "tags", metavar="TAG", type=text, multiple=True, help="Tag; repeatable."),
    click.option(
        "-a",
        "--argument",
        "arguments",
        metavar="NAME[?][: ABOUT]",
        type=parse_argument,
        multiple=True,
        help="Argument of the template, `?` if optional; repeatable.",
    ),
)
_verbatim_option = click.option(
    "--verbatim", is_flag=True, help="Keep {{ variables }} as text instead of making them arguments."
)


@command.command("add")
@click.argument("name", type=text)
@_prompt_options
@_verbatim_option
@in_project
def add(
    name: str,
    options: WorkspaceOptions,
    *,
    content: str | None,
    file: str | None,
    tags: tuple[str, ...],
    arguments: tuple[Argument, ...],
    verbatim: bool,
    **texts: str | None,
) -> None:
    """Add a prompt.

    The content is CONTENT, or is read from --file or standard input. On a terminal, without either, your
    editor opens. A prompt with arguments is a template: {{ language }} is replaced by the value of the
    argument `language`. Without --argument, the variables in the content become its arguments.

    \b
    Examples:
      dittybag prompt add greet "Say hello in three languages." -t fun
      dittybag prompt add review --file review.md --title "Code review"
      dittybag prompt add explain -a error -a "language?: programming language" \\
        "Explain this {{ language }} error: {{ error }}"
    """
    _check_verbatim(arguments, verbatim=verbatim)
    parts: dict[str, Any] = {
        "name": name,
        **texts,
        "tags": tags,
        "arguments": () if verbatim else arguments or None,
    }
    given = _content(content, file)
    if given is None and not sys.stdin.isatty():
        given = read_text(STREAM, CONTENT_BYTES)
    saved = _create_in_editor(options, **parts) if given is None else _create(options, given, **parts)
    _print_saved(saved, "Added")


def _check_verbatim(arguments: Sequence[Argument], *, verbatim: bool) -> None:
    if verbatim and arguments:
        usage_error("--verbatim cannot be used together with --argument")


def _content(content: str | None, file: str | None) -> str | None:
    """Return the content from the argument or the file; `None` if neither was given."""
    if content is not None and file is not None:
        usage_error("CONTENT and --file cannot be used together")
    if content == STREAM:
        file, content = STREAM, None
    return content if file is None else read_text(file, CONTENT_BYTES)


def _create(
    options: WorkspaceOptions, content: str, *, arguments: tuple[Argument, ...] | None, **parts: Any
) -> _SavedPrompt:
    """Create a prompt. Without `arguments`, they are the variables in the content."""
    from dittybag.assembly.workspace_session import open_renderer

    async def create(session: WorkspaceSession) -> _SavedPrompt:
        with open_renderer() as renderer:
            found = await find_arguments(renderer, content) if arguments is None else ()
            prompt, _ = await session.workspace.prompts.create(
                session.caller, content=content, arguments=arguments or found, **parts
            )
            return _SavedPrompt(prompt, found, await undeclared_variables(renderer, prompt))

    return options.run(create, create=True)


def _create_in_editor(options: WorkspaceOptions, name: str, **parts: Any) -> _SavedPrompt:
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
        options.run(
            lambda session: session.workspace.prompts.get(session.caller, PromptAddress(name=name)),
            create=True,
        )
    except PromptNotFound:
        return
    raise NameTaken("prompt", name, options.project_name)


@command.command("edit")
@click.argument("name", type=text)
@_verbatim_option
@in_project
def edit(name: str, options: WorkspaceOptions, *, verbatim: bool) -> None:
    """Edit the content of a prompt in your editor.

    If someone else changes the prompt in the meantime, it is not overwritten, and your text is kept in a
    file.

    \b
    Example:
      dittybag prompt edit code-review
    """
    from dittybag.cli.editor import EditorFile

    prompt = get_prompt(options, name)
    draft = EditorFile(prompt.name, prompt.content)
    content = draft.open_editor(CONTENT_BYTES)
    if content == prompt.content:
        draft.discard()
        print_result(to_data(prompt), f"Prompt '{prompt.name}' is unchanged")
        return
    change = PromptChange(content=content, arguments=() if verbatim else UNSET)
    saved = draft.store_with(
        lambda: _update(options, PromptAddress(id=prompt.id), change, version=prompt.version),
        f"to overwrite the prompt, run: dittybag prompt update {prompt.name} --file {draft.file}",
    )
    _print_saved(saved, "Updated")


def _update(
    options: WorkspaceOptions, address: PromptAddress, change: PromptChange, *, version: int | None = None
) -> _SavedPrompt:
    """Update a prompt. Arguments that were found in its content follow a new content."""
    from dittybag.assembly.workspace_session import open_renderer

    async def update(session: WorkspaceSession) -> _SavedPrompt:
        prompts, given = session.workspace.prompts, change
        found: tuple[Argument, ...] = ()
        with open_renderer() as renderer:
            if change.content is not UNSET and change.arguments is UNSET:
                before = await prompts.get(session.caller, address)
                arguments = await updated_arguments(renderer, before, change.content)
                if arguments != before.arguments:
                    given, found = replace(change, arguments=arguments), arguments
            prompt, _ = await prompts.update(session.caller, address, given, version=version)
            is_template_changed = (given.content, given.arguments) != (UNSET, UNSET)
            unknown = await undeclared_variables(renderer, prompt) if is_template_changed else []
            return _SavedPrompt(prompt, found, unknown)

    return options.run(update)


@command.command("update")
@click.argument("name", type=text)
@_prompt_options
@click.option("--name", "new_name", metavar="NAME", type=text, help="New name.")
@click.option("--no-tags", is_flag=True, help="Remove all tags.")
@click.option("--no-arguments", is_flag=True, help="Remove all arguments.")
@_verbatim_option
@in_project
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
    verbatim: bool,
    **texts: str | None,
) -> None:
    """Update a prompt. Fields that are not given stay the same.

    Tags and arguments replace the existing ones. Use `dittybag tag add` to add a tag. If the arguments are
    the variables of the content, they follow a new content.

    \b
    Examples:
      dittybag prompt update greet "Say hello in four languages." --title Greeting
      dittybag prompt update greet --name hello --no-tags
    """
    _check_verbatim(arguments, verbatim=verbatim)
    given: dict[str, Any] = {
        "name": new_name,
        **texts,
        "content": _content(content, file),
        "tags": _replacement(tags, none=no_tags, option="--no-tags"),
        "arguments": _replacement(arguments, none=no_arguments or verbatim, option="--no-arguments"),
    }
    change = PromptChange(**{part: value for part, value in given.items() if value is not None})
    if change == PromptChange():
        usage_error(
            "Nothing to update: no CONTENT, --file or other option was given",
            "to use an editor, run: dittybag prompt edit NAME",
        )
    _print_saved(_update(options, PromptAddress(any=name), change), "Updated")


def _replacement(values: Sequence[Any], *, none: bool, option: str) -> Sequence[Any] | None:
    if values and none:
        usage_error(f"{option} cannot be used together with new values")
    return tuple(values) if values or none else None


@command.command("delete")
@click.argument("names", metavar="NAME...", type=text, nargs=-1, required=True)
@in_project
def delete(names: tuple[str, ...], options: WorkspaceOptions) -> None:
    """Delete prompts, all of them or none.

    `dittybag undo` restores them.

    \b
    Example:
      dittybag prompt delete greet
    """
    addresses = [PromptAddress(any=name) for name in names]
    deleted = options.run(lambda session: session.workspace.prompts.delete_all(session.caller, addresses))
    print_deleted(
        [{"id": prompt.id, "name": prompt.name} for prompt in deleted],
        [f"Deleted prompt '{prompt.name}'" for prompt in deleted],
    )


def _print_saved(saved: _SavedPrompt, verb: str) -> None:
    """Print what was saved, and what happens to the variables of its content."""
    print_result(to_data(saved.prompt), f"{verb} prompt '{saved.prompt.name}'")
    if saved.found:
        them = "it" if len(saved.found) == 1 else "them"
        note(f"{describe_found(saved.found)}; --verbatim keeps {them} as text")
    for name in saved.undeclared:
        unknown = f"{{{{ {name} }}}} is not a declared argument and renders as empty text"
        note(f"{unknown}; declare it with -a {name}")
