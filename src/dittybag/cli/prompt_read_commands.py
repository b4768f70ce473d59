"""`dittybag prompt list`, `show` and `render`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import click
import msgspec

from dittybag.cli import stored_names
from dittybag.cli.colours import GREY, TEAL
from dittybag.cli.error_output import wants_json
from dittybag.cli.output import (
    clip_line,
    echo_long,
    format_time,
    paged,
    print_list,
    print_rest,
    print_result,
    terminal_safe,
    write_text,
)
from dittybag.cli.read_input import read_bytes, suggestion, text, usage_error
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.table import Column
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.entities import struct_data, to_data
from dittybag.domain.errors import LibraryPromptNotFound, require
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.prompts import (
    Argument,
    Prompt,
    PromptSummary,
    missing_arguments,
    problems,
    require_choices,
    require_known,
    verbatim_messages,
)
from dittybag.domain.queries import PromptQuery
from dittybag.domain.role_marks import Message, find_role_lines, with_role_lines
from dittybag.services.prompt_service import PromptAddress

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import LibrarySession
    from dittybag.services.workspace import WorkspaceSession

Messages: TypeAlias = tuple[Message, ...]

#: The columns of lists, and the styles of their cells.
_COLUMNS: Final = (
    Column("name"),
    Column("title", shrink="cut", rank=2),
    Column("tags", shrink="cut", rank=1),
    Column("updated", rank=3),
    Column("description", shrink="cut", extra=True),
    Column("arguments", right=True, extra=True),
)
_STYLES: Final = {"tags": {"fg": TEAL}, "updated": {"fg": GREY}}
#: Maximum length of a description in a list.
_DESCRIPTION: Final = 300
#: Prompts are read in pages of this size, which stays below the parameter limits of the databases.
_PAGE: Final = 10_000
#: At most this many projects are named in a hint.
_MAX_PROJECTS: Final = 5
#: At most this many names are searched for suggestions.
_MAX_COMPARED: Final = 10_000
#: Maximum size of the file of --args-json.
_MAX_ARGUMENT_BYTES: Final = 4 * 1024 * 1024


@click.command("list", StrictCommand)
@click.option(
    "-t",
    "--tag",
    "tags",
    metavar="TAG",
    type=text,
    multiple=True,
    help="Only prompts with this tag; repeatable, to match any of several.",
)
@click.option(
    "--search", "query", metavar="TEXT", type=text, default="", help="Only prompts that contain this text."
)
@paged
@in_project
def list_prompts(options: WorkspaceOptions, tags: tuple[str, ...], query: str, limit: int) -> None:
    """List prompts, most recently updated first.

    \b
    Examples:
      dittybag prompt list
      dittybag prompt list --tag git --search "commit message"
    """
    require(problems(tags=tags))
    prompts, total = options.run(lambda session: _search(session, query, tags, limit=limit))
    empty: tuple[str, ...] = ("No matching prompts",)
    if not (total or tags or query):
        add = "to add a prompt, run: dittybag prompt add NAME (or see dittybag import --help)"
        empty = ("No prompts yet", add, *projects_hint(options, "prompts"))
    print_list(
        {"prompts": [_summary(prompt) for prompt in prompts], "total": total},
        _COLUMNS,
        [_row(prompt) for prompt in prompts],
        empty=empty,
        cell_styles=lambda row, name: _STYLES.get(name, {}),
    )
    print_rest(len(prompts), total)


def projects_hint(options: WorkspaceOptions, kind: Literal["prompts", "resources"]) -> list[str]:
    """For an empty list, name the projects that do have entities of this kind."""
    sizes = options.run(lambda session: session.workspace.projects.all())
    names = [size.project.name for size in sizes if getattr(size, kind)]
    more = ", ..." if len(names) > _MAX_PROJECTS else ""
    listed = terminal_safe(", ".join(names[:_MAX_PROJECTS]))
    return [f"other projects have {kind}: {listed}{more}; use --project NAME"] if names else []


def _summary(prompt: PromptSummary) -> dict[str, Any]:
    fields = struct_data(prompt)
    del fields["description"], fields["argument_count"]
    return fields


async def _search(
    session: WorkspaceSession, query: str, tags: Sequence[str], *, limit: int
) -> tuple[list[PromptSummary], int]:
    found: list[PromptSummary] = []
    while True:
        wanted = PromptQuery(
            project=session.caller.project,
            text=query,
            any_tag=tuple(tags),
            limit=min(_PAGE, limit - len(found)),
            offset=len(found),
        )
        page = await session.workspace.prompts.page(session.caller, wanted)
        found += page.prompts
        if not page.prompts or len(found) >= min(limit, page.total):
            return found, page.total


def _row(prompt: PromptSummary) -> tuple[str, ...]:
    return (
        prompt.name,
        clip_line(prompt.title) if prompt.title != prompt.name else "",
        ", ".join(prompt.tags),
        format_time(prompt.updated_at),
        clip_line(prompt.description or "", _DESCRIPTION),
        str(prompt.argument_count or ""),
    )


@click.command("show", StrictCommand)
@click.argument("name", type=text, shell_complete=stored_names.prompts)
@click.option("--raw", is_flag=True, help="Print only the content, also on a terminal.")
@in_project
def show(name: str, options: WorkspaceOptions, *, raw: bool) -> None:
    """Show a prompt. NAME is its name, id or title.

    If the output is a file or a pipe, only the content is printed, byte for byte.

    \b
    Examples:
      dittybag prompt show code-review
      dittybag prompt show code-review > review.md
    """
    prompt = get_prompt(options, name)
    if wants_json():
        print_result(to_data(prompt))
    elif raw or not sys.stdout.isatty():
        write_text(prompt.content)
    else:
        _print_prompt(prompt)


def get_prompt(options: WorkspaceOptions, name: str) -> Prompt:
    """Return a prompt by its name, id or title."""
    return options.run(lambda session: session.workspace.prompts.get(session.caller, PromptAddress(any=name)))


def _print_prompt(prompt: Prompt) -> None:

    title = f"  {clip_line(prompt.title)}" if prompt.title != prompt.name else ""
    lines = [click.style(prompt.name, bold=True) + title]
    if prompt.description:
        lines.append(terminal_safe(prompt.description))
    if prompt.tags:
        lines.append(click.style(f"tags: {', '.join(prompt.tags)}", dim=True))
    lines += [
        click.style(f"argument: {_describe_argument(argument)}", dim=True) for argument in prompt.arguments
    ]
    updated = f"updated {format_time(prompt.updated_at)}, version {prompt.version}"
    lines += [click.style(updated, dim=True), "", terminal_safe(prompt.content)]
    echo_long("\n".join(lines))


def _describe_argument(argument: Argument) -> str:
    need = "" if argument.required else " (optional)"
    choices = f" [{clip_line(', '.join(argument.choices))}]" if argument.choices else ""
    about = f": {clip_line(argument.description)}" if argument.description else ""
    return f"{argument.name}{need}{choices}{about}"


@click.command("render", StrictCommand)
@click.argument("name", type=text, shell_complete=stored_names.all_prompts)
@click.argument("values", metavar="[KEY=VALUE]...", type=text, nargs=-1)
@click.option(
    "--args-json",
    metavar="FILE",
    help="Read arguments from a file with a JSON object; `-` reads standard input.",
)
@in_project
def render(name: str, options: WorkspaceOptions, values: tuple[str, ...], args_json: str | None) -> None:
    """Render a prompt with the given arguments. NAME may be LIBRARY:PROMPT.

    On a terminal, the command asks for missing required arguments. A prompt with roles is printed with a
    line such as `--role user` before each message; --json prints its messages.

    \b
    Examples:
      dittybag prompt render explain-error error="no such table" language=SQL
      dittybag prompt render team:commit --args-json values.json
    """
    given = {**(_read_arguments(args_json) if args_json else {}), **_parse_pairs(values)}
    messages = (_render_library if ":" in name else _render_stored)(options, name, given)
    rendered = with_role_lines(messages)
    if wants_json():
        print_result(
            {"name": name, "text": rendered, "messages": [message._asdict() for message in messages]}
        )
    else:
        write_text(rendered)


def _parse_pairs(values: Sequence[str]) -> dict[str, str]:
    """Return arguments of the form KEY=VALUE as a mapping, or exit."""
    pairs = {}
    for value in values:
        key, equals, content = value.partition("=")
        if not equals or not key:
            usage_error(
                f"'{clip_line(value)}' is not of the form KEY=VALUE", "quote values that contain spaces"
            )
        pairs[key] = content
    return pairs


def _read_arguments(source: str) -> dict[str, str]:
    data = read_bytes(source, _MAX_ARGUMENT_BYTES)
    try:
        values = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        usage_error(f"The arguments are not a JSON object: {error}", 'example: {"language": "SQL"}')
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in values.items()
        if value is not None
    }


def _render_stored(options: WorkspaceOptions, name: str, given: dict[str, str]) -> Messages:
    async def find(session: WorkspaceSession) -> Prompt:
        return await session.workspace.prompts.get(session.caller, PromptAddress(any=name))

    async def render(session: LibrarySession) -> Messages:
        return await session.templates.render_messages(prompt, values)

    prompt = options.run(find)
    values = _ask_for_missing(prompt.name, prompt.arguments, given)
    if not prompt.arguments:
        return verbatim_messages(prompt.content, find_role_lines(prompt.content))
    return options.run_with_libraries(render)


def _render_library(options: WorkspaceOptions, name: str, given: dict[str, str]) -> Messages:
    async def render(session: LibrarySession, values: dict[str, str]) -> Messages:
        return await session.templates.render_library_messages(name, values)

    async def try_to_render(session: LibrarySession) -> tuple[LibraryPrompt, Messages | None]:
        prompt = await _find_library_prompt(session, name)
        require_known(name, prompt.arguments, given)
        if missing_arguments(prompt.arguments, given):
            return prompt, None
        return prompt, await render(session, given)

    prompt, rendered = options.run_with_libraries(try_to_render)
    if rendered is None:
        values = _ask_for_missing(prompt.name, prompt.arguments, given)
        rendered = options.run_with_libraries(lambda session: render(session, values))
    return rendered


async def _find_library_prompt(session: LibrarySession, name: str) -> LibraryPrompt:
    prompt = await session.libraries.find(name)
    if prompt is None:
        names = [item.name for item in await session.libraries.page("", _MAX_COMPARED)]
        error = LibraryPromptNotFound(name)
        error.add_note(suggestion(name, names, "run `dittybag library list` to see all libraries"))
        raise error
    return prompt


def _ask_for_missing(prompt: str, arguments: Sequence[Argument], given: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments, asking for missing ones on a terminal; exit otherwise."""
    require_known(prompt, arguments, given)
    require_choices(arguments, given)
    missing = missing_arguments(arguments, given)
    if missing and not (sys.stdin.isatty() and sys.stderr.isatty()):
        wanted = ", ".join(argument.name for argument in missing)
        usage_error(
            f"Missing required argument{'s' if len(missing) > 1 else ''}: {wanted}",
            f"use {missing[0].name}=VALUE, or --args-json FILE",
        )
    return {**given, **{argument.name: _ask(argument) for argument in missing}}


def _ask(argument: Argument) -> str:
    # A bare "error: ..." would look like an error message.
    choices = f" [{clip_line(', '.join(argument.choices))}]" if argument.choices else ""
    about = f" ({clip_line(argument.description)})" if argument.description else ""
    answer: str = click.prompt(f"Enter {argument.name}{choices}{about}", value_proc=text, err=True)
    return answer
