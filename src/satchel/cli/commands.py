"""The commands for people, each imported when it is used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import click

from satchel import __version__
from satchel.cli.failures import Status, fail, misuse, report, speak_json
from satchel.config import SettingsError
from satchel.domain.errors import SatchelError

#: Command, module of that name, and what the list of commands says about it.
_COMMANDS: Final = {
    "demo": "A tour: a real MCP session with a sample workspace.",
    "library": "List, add, update, check, make and remove prompt libraries.",
    "project": "Create, list, rename and delete projects.",
    "serve": "Serve one MCP client on standard input and output.",
}


class _Lazy(click.Group):
    """A group whose commands are imported when they are called, not when they are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        if cmd_name == "serve":
            # Only its name is known here: it has run before this could be asked.
            return click.Command("serve")
        command: click.Command = import_module(f"satchel.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Lazy, invoke_without_command=True)
@click.version_option(__version__, message="satchel %(version)s")
@click.pass_context
def satchel(ctx: click.Context) -> None:
    """The prompts, documents and tasks that people and their agents share.

    Put `satchel serve` into an MCP client's configuration, or try `satchel demo` first.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str]) -> int:
    """Run a command; the exit status."""
    as_json = "--json" in arguments
    speak_json(as_json=as_json)
    # Colours are for terminals, which click knows, and for people who want them.
    color = False if os.environ.get("NO_COLOR") else None
    try:
        status = satchel.main(list(arguments), prog_name="satchel", standalone_mode=False, color=color)
    except click.ClickException as error:
        if as_json:
            report(error.format_message(), code="usage" if error.exit_code == Status.USAGE else "refused")
        else:
            error.show()
        return error.exit_code
    except click.Abort:
        report("stopped", code="stopped")
        return Status.REFUSED
    except SettingsError as error:
        return misuse(error)
    except SatchelError as error:
        return fail(error)
    return status if isinstance(status, int) else 0
