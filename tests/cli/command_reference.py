"""Generates docs/reference/commands.md: `python -m tests.cli.command_reference`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from dittybag.cli.commands import dittybag
from tests.stdio_server_process import ROOT

REFERENCE: Path = ROOT / "docs" / "reference" / "commands.md"
#: The width that click uses on a terminal of 80 or more columns.
WIDTH = 78

#: The part of the page above this line is not generated.
MARKER = "<!-- Generated below this line by: python -m tests.cli.command_reference -->\n"


def iterate_commands(group: click.Group, ctx: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """Yield all commands, each before its own subcommands."""
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=ctx, terminal_width=WIDTH)
        yield command, inner
        if isinstance(command, click.Group):
            yield from iterate_commands(command, inner)


def root_context() -> click.Context:
    return click.Context(dittybag, info_name="dittybag", terminal_width=WIDTH, **dittybag.context_settings)


def help_text(command: click.Command, ctx: click.Context) -> str:
    """Return the help text of a command."""
    return command.get_help(ctx)


def render_page() -> str:
    """Return the reference page."""
    top = root_context()
    parts = [
        REFERENCE.read_text().partition(MARKER)[0] + MARKER,
        "## dittybag\n",
        _block(dittybag.get_help(top)),
    ]
    for command, ctx in iterate_commands(dittybag, top):
        level = "##" if ctx.parent is top else "###"
        parts += [f"{level} {ctx.command_path}\n", _shown(command, ctx)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _shown(command: click.Command, ctx: click.Context) -> str:
    """Return a help text without what all commands have, and of a group only what it is for."""
    if isinstance(command, click.Group):
        return f"{command.help}\n"
    help_lines = r"\nOptions:\n  -h, --help .*\n(?=\n|$)|\n  -h, --help .*"
    return _block(re.sub(help_lines, "", help_text(command, ctx)))


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


if __name__ == "__main__":
    REFERENCE.write_text(render_page())
