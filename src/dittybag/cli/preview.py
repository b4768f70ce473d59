"""`dittybag preview`: show what the model of a client gets from a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import asdict

from dittybag.cli.colours import GREY
from dittybag.cli.error_output import ExitStatus, report, wants_json
from dittybag.cli.output import clip_line, print_aside, print_json, terminal_safe, write_text
from dittybag.cli.prompt_read_commands import parse_pairs
from dittybag.cli.read_input import text
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.clients.client_facts import CLIENT_FACTS
from dittybag.clients.native_text import NotPublishable

if TYPE_CHECKING:
    from dittybag.assembly.client_preview import ClientPreview
    from dittybag.assembly.workspace_session import LibrarySession

_FACES: Final = {
    "prompt": "MCP prompt",
    "file": "published file",
    "tool": "result of the tool use_prompt",
}
_UNKNOWN: Final = "unknown"


@click.command("preview", StrictCommand)
@click.argument("name", type=text)
@click.argument("values", metavar="[KEY=VALUE]...", type=text, nargs=-1)
@click.option(
    "--client", required=True, type=click.Choice(tuple(CLIENT_FACTS)), help="The client whose model is meant."
)
@click.option(
    "--face",
    type=click.Choice(tuple(_FACES)),
    help="How the prompt reaches the model (default: what the client shows).",
)
@in_project
def command(name: str, values: tuple[str, ...], client: str, face: Any, options: WorkspaceOptions) -> int:
    """Show what the model of a client gets from a prompt. NAME may be LIBRARY:PROMPT.

    Prints the name as the client shows it, the arguments as it splits them, where it cuts the text, an upper
    bound of the tokens, and the text itself. The facts about clients are in the reference.

    \b
    Examples:
      dittybag preview code-review --client claude-code
      dittybag preview explain-error --client gemini error="no such table" --face file
    """
    from dittybag.assembly.client_preview import preview_prompt

    given = parse_pairs(values)

    async def work(session: LibrarySession) -> ClientPreview:
        return await preview_prompt(session, client, name, given, face)

    try:
        preview = options.run_with_libraries(work)
    except NotPublishable as error:
        title = CLIENT_FACTS[client].title
        report(f"'{clip_line(name)}' does not reach {title} this way: {error}", code="NOT_PUBLISHABLE")
        return ExitStatus.REFUSED
    if wants_json():
        print_json(asdict(preview))
    else:
        _print(preview)
    return ExitStatus.OK


def _print(preview: ClientPreview) -> None:
    split = preview.arguments
    listed = split if isinstance(split, list) else [f"{name}={value}" for name, value in split.items()]
    lines = {
        "face": _FACES[preview.face],
        "shown as": preview.shown_as or _UNKNOWN,
        "typed": preview.typed or "",
        "arguments": ", ".join(map(repr, listed)) or "none",
        "cut": preview.cut or "",
        "tokens": f"at most {preview.tokens:,}",
    }
    for label, value in lines.items():
        if value:
            print_aside(f"{click.style(f'{label:<10}', fg=GREY)}{terminal_safe(clip_line(value, 500))}")
    for difference in preview.differences:
        print_aside(f"{click.style('differs   ', fg=GREY)}{difference}")
    write_text(preview.text)
