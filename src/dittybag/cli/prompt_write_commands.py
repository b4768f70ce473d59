"""`dittybag prompt add`, `edit` and `delete`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import UNSET, Struct
from msgspec.structs import replace

from dittybag.cli import stored_names
from dittybag.cli.output import note, print_deleted, print_result
from dittybag.cli.prompt_read_commands import get_prompt
from dittybag.cli.read_input import STREAM, read_text, refuse, text, usage_error
from dittybag.cli.strict_options import StrictCommand, option_group
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.entities import to_data
from dittybag.domain.errors import NameTaken, PromptNotFound, require
from dittybag.domain.prompts import CONTENT_BYTES, Argument, Prompt, problems
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.template_arguments import (
    describe_found,
    find_arguments,
    updated_arguments,
    with_variables,
)

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession


#: A name, `?` if the argument is optional, and a description.
_ARGUMENT: Final = r"\s*([^\s:?]+)\s*(\?)?\s*(?::\s*(.*?)\s*)?"


class _SavedPrompt(Struct, frozen=True):
    """A prompt that was added or updated."""

    prompt: Prompt
    #: The variables of the content that have become its arguments.
    found: tuple[Argument, ...]


def parse_argument(value: str) -> Argument:
    """Parameter type of prompt arguments, such as `language?: name of the language`."""
    found = re.fullmatch(_ARGUMENT, text(value), re.DOTALL)
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
    click.option(
        "--verbatim", is_flag=True, help="Keep {{ variables }} as text instead of making them arguments."
    ),
)


@click.command("add", StrictCommand)
@click.argument("name", type=text)
@_prompt_options
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
    editor opens.

    A prompt with arguments is a template: {{ language }} is replaced by the value of the argument
    `language`. Without --argument, the variables in the content become its arguments.

    \b
    Examples:
      dittybag prompt add review
      dittybag prompt add greet "Say hello in three languages." -t fun
      dittybag prompt add security --file security.md --title "Security review"
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
    if given is None and sys.stdin.isatty():
        saved = _write_in_editor(options, name, parts)
    else:
        saved = _create_prompt(options, read_text(STREAM, CONTENT_BYTES) if given is None else given, **parts)
    _print_saved(saved, "Added")


def _write_in_editor(options: WorkspaceOptions, name: str, parts: dict[str, Any]) -> _SavedPrompt:
    """Create a prompt that is written in the editor. The other parts are validated first."""
    from dittybag.cli.editor import edit_text

    fields = ("name", "title", "description", "tags")
    require(problems(**{field: parts[field] for field in fields if parts[field] is not None}))
    _require_unused(options, name)
    saved = edit_text(
        name,
        "",
        lambda text: _create_prompt(options, text, **parts) if text.strip() else None,
        max_bytes=CONTENT_BYTES,
        resume=f"dittybag prompt add {name} --file",
    )
    if saved is None:
        refuse("The text is empty; the prompt was not added")
    return saved


def _require_unused(options: WorkspaceOptions, name: str) -> None:
    try:
        options.run(
            lambda session: session.workspace.prompts.get(session.caller, PromptAddress(name=name)),
            create=True,
        )
    except PromptNotFound:
        return
    raise NameTaken("prompt", name, options.project_name)


def _create_prompt(
    options: WorkspaceOptions, content: str, *, arguments: tuple[Argument, ...] | None, **parts: Any
) -> _SavedPrompt:
    """Create a prompt. Without `arguments`, they are the variables in the content."""
    from dittybag.assembly.workspace_session import open_renderer

    async def create(session: WorkspaceSession) -> _SavedPrompt:
        with open_renderer() as renderer:
            if arguments is None:
                declared = await find_arguments(renderer, content)
            else:
                declared = await with_variables(renderer, content, arguments)
        prompt, _ = await session.workspace.prompts.create(
            session.caller, content=content, arguments=declared, **parts
        )
        return _SavedPrompt(prompt, _added(arguments or (), declared))

    return options.run(create, create=True)


def _update_prompt(
    options: WorkspaceOptions, address: PromptAddress, change: PromptChange, *, version: int | None = None
) -> _SavedPrompt:
    """Update a prompt. Arguments that were found in its content follow a new content."""
    from dittybag.assembly.workspace_session import open_renderer

    async def update(session: WorkspaceSession) -> _SavedPrompt:
        prompts, given = session.workspace.prompts, change
        found: tuple[Argument, ...] = ()
        if change.content is not UNSET or change.arguments is not UNSET:
            before = await prompts.get(session.caller, address)
            content = before.content if change.content is UNSET else change.content
            with open_renderer() as renderer:
                if change.arguments is UNSET:
                    known, arguments = before.arguments, await updated_arguments(renderer, before, content)
                else:
                    known = change.arguments
                    arguments = await with_variables(renderer, content, known)
            found = _added(known, arguments)
            if arguments != before.arguments:
                given = replace(change, arguments=arguments)
        prompt, _ = await prompts.update(session.caller, address, given, version=version)
        return _SavedPrompt(prompt, found)

    return options.run(update)


def _added(before: tuple[Argument, ...], after: tuple[Argument, ...]) -> tuple[Argument, ...]:
    known = {argument.name for argument in before}
    return tuple(argument for argument in after if argument.name not in known)


def _print_saved(saved: _SavedPrompt, verb: str) -> None:
    """Print what was saved, and what happens to the variables of its content."""
    print_result(to_data(saved.prompt), f"{verb} prompt '{saved.prompt.name}'")
    if saved.found:
        them = "it" if len(saved.found) == 1 else "them"
        note(f"{describe_found(saved.found)}; --verbatim keeps {them} as text")


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


@click.command("edit", StrictCommand)
@click.argument("name", type=text, shell_complete=stored_names.prompts)
@_prompt_options
@click.option("--name", "new_name", metavar="NAME", type=text, help="New name.")
@in_project
def edit(
    name: str,
    options: WorkspaceOptions,
    *,
    content: str | None,
    file: str | None,
    new_name: str | None,
    tags: tuple[str, ...],
    arguments: tuple[Argument, ...],
    verbatim: bool,
    **texts: str | None,
) -> None:
    """Change a prompt. Fields that are not given stay the same.

    Without CONTENT and options, the content opens in your editor. If someone else changes the prompt in the
    meantime, it is not overwritten: both versions are shown, and your text is kept in a file.

    Tags and arguments replace the existing ones; `--tag ""` removes all tags, and --verbatim all arguments.
    If the arguments are the variables of the content, they follow a new content.

    \b
    Examples:
      dittybag prompt edit greet
      dittybag prompt edit greet "Say hello in four languages." --title Greeting
      dittybag prompt edit greet --name hello --tag ""
    """
    _check_verbatim(arguments, verbatim=verbatim)
    given: dict[str, Any] = {
        "name": new_name,
        **texts,
        "content": _content(content, file),
        "tags": tuple(filter(None, tags)) if tags else None,
        "arguments": arguments if arguments or verbatim else None,
    }
    change = PromptChange(**{part: value for part, value in given.items() if value is not None})
    if change == PromptChange():
        _edit_content(options, name)
    else:
        _print_saved(_update_prompt(options, PromptAddress(any=name), change), "Updated")


def _edit_content(options: WorkspaceOptions, name: str) -> None:
    from dittybag.cli.editor import edit_text, require_terminal

    require_terminal("give CONTENT, --file or another option; `-` reads standard input")
    prompt = get_prompt(options, name)
    address = PromptAddress(id=prompt.id)
    saved = edit_text(
        prompt.name,
        prompt.content,
        lambda text: _update_prompt(options, address, PromptChange(content=text), version=prompt.version),
        max_bytes=CONTENT_BYTES,
        resume=f"dittybag prompt edit {prompt.name} --file",
        stored=lambda: get_prompt(options, prompt.id).content,
    )
    if saved is None:
        print_result(to_data(prompt), f"Prompt '{prompt.name}' is unchanged")
    else:
        _print_saved(saved, "Updated")


@click.command("delete", StrictCommand)
@click.argument(
    "names",
    metavar="NAME...",
    type=text,
    nargs=-1,
    required=True,
    shell_complete=stored_names.prompts,
)
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
