"""The commands for people, each imported when it is used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from dittybag import __version__
from dittybag.cli.error_output import ExitStatus, report, report_error, report_settings_error, use_json_errors
from dittybag.config import SettingsError
from dittybag.domain.errors import DittybagError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Commands, and what the list of commands says about each. Each is a module of that name.
_COMMANDS: Final = {
    "Begin": {
        "demo": "A tour: a real MCP session with a sample workspace.",
        "connect": "Make Dittybag known to an MCP client, or show which know it.",
        "serve": "Serve MCP clients: on standard input and output, or over HTTP.",
    },
    "Keep": {
        "prompt": "Add, edit, show, render, list and delete prompts.",
        "resource": "Add, show, list and delete documents, text or binary.",
        "task": "Add, list, finish, change and delete tasks.",
        "tag": "List, add, rename and remove the tags of prompts.",
        "library": "List, add, update, check, make and remove prompt libraries.",
        "project": "Create, list, rename, delete and share projects.",
    },
    "Look": {
        "search": "Find a text in prompts, libraries, resources and tasks.",
        "history": "Show who changed what, and when.",
        "diff": "Show what a change has changed.",
        "undo": "Take back the last change, or several.",
        "restore": "Make a thing what it was after a change, or a database what it was in a backup.",
    },
    "Share": {
        "user": "Add, list, disable and enable users of a server.",
        "token": "Create, list and revoke what users show to a server.",
    },
    "Care": {
        "import": "Take in an export, a database of another program, or files.",
        "export": "Write everything to one file, or to a folder of readable files.",
        "copy": "Copy a workspace into another database, SQLite or PostgreSQL.",
        "backup": "Copy the database while servers are using it.",
        "doctor": "Look for everything that could be wrong, and say how to mend it.",
        "completion": "Let the shell complete commands: bash, zsh or fish.",
    },
}
#: Modules that could not be called like their commands.
_MODULES: Final = {"import": "import_"}


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are called, not when they are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in _COMMANDS.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        if cmd_name == "serve":
            # Only shells that complete it ask for it here: it has run before anybody else could.
            from dittybag.cli.completion import serve_command

            return serve_command
        command: click.Command = import_module(f"dittybag.cli.{_MODULES.get(cmd_name, cmd_name)}").command
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """What may come next. Click would import every command to see whether it is hidden."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=about)
            for section in _COMMANDS.values()
            for name, about in section.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in _COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()), col_max=12)


@click.group(cls=_LazyGroup, invoke_without_command=True)
@click.version_option(__version__, message="dittybag %(version)s")
@click.pass_context
def dittybag(ctx: click.Context) -> None:
    """The prompts, documents and tasks that people and their agents share.

    Begin with `dittybag demo`, a tour, or with `dittybag connect`, which gives Dittybag to your MCP clients.
    """
    if ctx.invoked_subcommand is None:
        from dittybag.cli.welcome import welcome

        welcome()


def main(arguments: Sequence[str]) -> int:
    """Run a command; the exit status."""
    as_json = "--json" in arguments
    use_json_errors(as_json=as_json)
    # Colours are for terminals, which click knows, and for people who want them.
    color = False if os.environ.get("NO_COLOR") else None
    try:
        status = dittybag.main(list(arguments), prog_name="dittybag", standalone_mode=False, color=color)
    except click.ClickException as error:
        if as_json:
            report(error.format_message(), code="USAGE" if error.exit_code == ExitStatus.USAGE else "REFUSED")
        else:
            error.show()
        return error.exit_code
    except click.Abort:
        report("stopped", code="STOPPED")
        return ExitStatus.REFUSED
    except SettingsError as error:
        return report_settings_error(error)
    except DittybagError as error:
        return report_error(error)
    return status if isinstance(status, int) else 0
