"""`dittybag prompt add`, `update` and `delete`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from dittybag.cli.output import print_deleted
from dittybag.cli.prompt_edit import create_in_editor, verbatim_option
from dittybag.cli.prompt_saving import create_prompt, match_argument, print_saved, update_prompt
from dittybag.cli.read_input import STREAM, read_text, text, usage_error
from dittybag.cli.strict_options import StrictCommand, option_group
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.prompts import CONTENT_BYTES, Argument
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
)


@click.command("add", StrictCommand)
@click.argument("name", type=text, required=False)
@_prompt_options
@verbatim_option
@in_project
@click.pass_context
def add(
    ctx: click.Context,
    /,
    name: str | None,
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
    editor opens with a template to fill in, also without a NAME.

    A prompt with arguments is a template: {{ language }} is replaced by the value of the argument
    `language`. Without --argument, the variables in the content become its arguments.

    \b
    Examples:
      dittybag prompt add
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
    is_written = given is None and sys.stdin.isatty()
    if name is None and not is_written:
        raise click.MissingParameter(ctx=ctx, param=ctx.command.params[0])
    if is_written:
        saved = create_in_editor(options, **parts)
    else:
        saved = create_prompt(options, read_text(STREAM, CONTENT_BYTES) if given is None else given, **parts)
    print_saved(saved, "Added")


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


@click.command("update", StrictCommand)
@click.argument("name", type=text)
@_prompt_options
@click.option("--name", "new_name", metavar="NAME", type=text, help="New name.")
@click.option("--no-tags", is_flag=True, help="Remove all tags.")
@click.option("--no-arguments", is_flag=True, help="Remove all arguments.")
@verbatim_option
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

    Tags and arguments replace the existing ones. If the arguments are
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
    print_saved(update_prompt(options, PromptAddress(any=name), change), "Updated")


def _replacement(values: Sequence[Any], *, none: bool, option: str) -> Sequence[Any] | None:
    if values and none:
        usage_error(f"{option} cannot be used together with new values")
    return tuple(values) if values or none else None


@click.command("delete", StrictCommand)
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
