"""`dittybag prompt add`, `edit` and `delete`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from dittybag.cli import stored_names
from dittybag.cli.output import print_deleted, print_result
from dittybag.cli.prompt_read_commands import get_prompt
from dittybag.cli.prompt_saving import (
    SavedPrompt,
    create_prompt,
    match_argument,
    print_saved,
    update_prompt,
)
from dittybag.cli.read_input import STREAM, read_text, refuse, text, usage_error
from dittybag.cli.strict_options import StrictCommand, option_group
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.entities import to_data
from dittybag.domain.errors import NameTaken, PromptNotFound, require
from dittybag.domain.prompts import CONTENT_BYTES, Argument, problems
from dittybag.services.prompt_service import PromptAddress, PromptChange


def parse_argument(value: str) -> Argument:
    """Parameter type of prompt arguments, such as `language?: name of the language`."""
    argument = match_argument(text(value))
    if argument is None:
        raise click.BadParameter("use NAME or NAME?, optionally followed by a colon and a description.")
    return argument


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
        saved = create_prompt(options, read_text(STREAM, CONTENT_BYTES) if given is None else given, **parts)
    print_saved(saved, "Added")


def _write_in_editor(options: WorkspaceOptions, name: str, parts: dict[str, Any]) -> SavedPrompt:
    """Create a prompt that is written in the editor. The other parts are validated first."""
    from dittybag.cli.editor import edit_text

    fields = ("name", "title", "description", "tags")
    require(problems(**{field: parts[field] for field in fields if parts[field] is not None}))
    _require_unused(options, name)
    saved = edit_text(
        name,
        "",
        lambda text: create_prompt(options, text, **parts) if text.strip() else None,
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
        print_saved(update_prompt(options, PromptAddress(any=name), change), "Updated")


def _edit_content(options: WorkspaceOptions, name: str) -> None:
    from dittybag.cli.editor import edit_text, require_terminal

    require_terminal("give CONTENT, --file or another option; `-` reads standard input")
    prompt = get_prompt(options, name)
    address = PromptAddress(id=prompt.id)
    saved = edit_text(
        prompt.name,
        prompt.content,
        lambda text: update_prompt(options, address, PromptChange(content=text), version=prompt.version),
        max_bytes=CONTENT_BYTES,
        resume=f"dittybag prompt edit {prompt.name} --file",
        stored=lambda: get_prompt(options, prompt.id).content,
    )
    if saved is None:
        print_result(to_data(prompt), f"Prompt '{prompt.name}' is unchanged")
    else:
        print_saved(saved, "Updated")


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
