"""The click command group, with each command imported on first use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from dittybag import __version__
from dittybag.cli.error_output import (
    ExitStatus,
    report,
    report_error,
    report_settings_error,
    use_json,
)
from dittybag.cli.strict_options import StrictGroup, shared_values
from dittybag.config import SettingsError
from dittybag.domain.errors import DittybagError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Commands by section with their one-line summaries. Those of a group have two words.
_COMMANDS: Final = {
    "Get started": {
        "demo": "Try Dittybag on a sample workspace.",
        "open": "Open the web UI in your browser.",
        "connect": "Add Dittybag to an MCP client, or list the clients.",
        "serve": "Serve MCP clients over stdio or HTTP.",
    },
    "Content": {
        "prompt": "Manage prompts.",
        "resource": "Manage resources, text or binary.",
        "task": "Manage tasks.",
        "tag": "Manage the tags of prompts.",
        "library": "Manage prompt libraries.",
        "project": "Manage projects and their members.",
        "workspaces": "List the workspaces in the data folder.",
    },
    "Search and history": {
        "search": "Search prompts, libraries, resources and tasks.",
        "history": "Show who changed what, and when.",
        "undo": "Undo the last change, or several changes.",
        "restore": "Restore an earlier version of an item.",
    },
    "For agents and scripts": {
        "prime": "Print what an agent should know when it starts.",
        "pin": "Pin an item, so that agents always get it.",
        "unpin": "Unpin an item.",
        "task next": "Claim the best task that is ready, and print it.",
        "task renew": "Renew the claim of a task for another lease.",
        "task release": "Give a task back: it is to do again, for everybody.",
    },
    "Access over HTTP": {
        "user": "Manage users.",
        "token": "Manage access tokens.",
    },
    "Maintenance": {
        "import": "Import an export, another program's database, or files.",
        "export": "Export a workspace to a JSON file or a folder.",
        "copy": "Copy a workspace to another SQLite or PostgreSQL database.",
        "backup": "Back up the database while it is in use, and restore it.",
        "purge": "Remove content for good, with its history.",
        "doctor": "Check for problems and suggest fixes.",
        "completion": "Generate a completion script for bash, zsh or fish.",
    },
}
#: The modules of commands, and their names there, unless it is `command` in the module of the same name.
_ELSEWHERE: Final = {
    "import": ("import_", "command"),
    "open": ("open_", "command"),
    "prompt": ("lazy_groups", "prompt"),
    "task": ("lazy_groups", "task"),
    "unpin": ("pin", "unpin_command"),
}


class _LazyGroup(StrictGroup):
    """A group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in _COMMANDS.values() for name in section if " " not in name]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        if cmd_name == "serve":
            # `dittybag serve` without an option before the command runs without click.
            from dittybag.cli.serve_command import serve_command

            return serve_command
        module, name = _ELSEWHERE.get(cmd_name, (cmd_name, "command"))
        command: click.Command = getattr(import_module(f"dittybag.cli.{module}"), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names. Click's own version imports every command to check whether it is hidden."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=about)
            for section in _COMMANDS.values()
            for name, about in section.items()
            if name.startswith(incomplete) and " " not in name
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in _COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()), col_max=12)


@click.group(
    cls=_LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="dittybag %(version)s", help="Show the version.")
@click.pass_context
def dittybag(ctx: click.Context) -> None:
    """Share prompts, resources and tasks with your AI agents over MCP.

    Start with `dittybag demo` for a sample workspace, `dittybag connect` to add Dittybag to your clients, or
    `dittybag open` for the web UI.

    --project, --workspace, --db and --json may stand before or after a command. A command refuses those that
    do not apply to it.
    """
    if ctx.invoked_subcommand is None:
        for name in {"json", "project"} & shared_values(ctx).keys():
            raise click.UsageError(f"--{name} requires a command")
        from dittybag.cli.welcome import welcome

        welcome()


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    # An incorrect command line is reported before its options are parsed.
    use_json(is_json="--json" in arguments)
    # `None` lets click decide: colours on a terminal only.
    color = False if os.environ.get("NO_COLOR") else None
    try:
        status = dittybag.main(list(arguments), prog_name="dittybag", standalone_mode=False, color=color)
    except click.ClickException as error:
        from dittybag.cli.usage_errors import report_click_error

        return report_click_error(error)
    except click.Abort:
        report("Interrupted", code="STOPPED")
        return ExitStatus.REFUSED
    except SettingsError as error:
        return report_settings_error(error)
    except DittybagError as error:
        return report_error(error)
    return status if isinstance(status, int) else 0
