"""`dittybag user`: manage the users of an HTTP server."""

from __future__ import annotations

import sys

import click

from dittybag.cli.colours import GREY
from dittybag.cli.output import format_time, hint, print_list, print_result
from dittybag.cli.read_input import text
from dittybag.cli.strict_options import StrictGroup
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.display import format_count
from dittybag.domain.entities import struct_data
from dittybag.domain.times import iso


@click.group("user", StrictGroup)
def command() -> None:
    """Manage users, who access a server over HTTP.

    The command line and servers on standard input need no user: they have full access to the database.
    """


@command.command("add")
@click.argument("name", type=text)
@in_workspace
def add(name: str, options: WorkspaceOptions) -> None:
    """Add a user. User names cannot be reused.

    \b
    Example:
      dittybag user add alice
    """
    user = options.run(
        lambda session: session.workspace.accounts.add_user(name, actor=session.caller.actor), create=True
    )
    print_result(struct_data(user), f"Added user '{user.name}'")
    hint(f"to create a token, run: dittybag token create --user {user.name} --scope write")


@command.command("list")
@in_workspace
def list_users(options: WorkspaceOptions) -> None:
    """List all users.

    \b
    Example:
      dittybag user list
    """
    users = options.run(lambda session: session.workspace.accounts.users())
    print_list(
        {"users": [struct_data(user) for user in users]},
        ("user", "created", "state"),
        [
            (
                user.name,
                format_time(user.created_at) if sys.stdout.isatty() else iso(user.created_at)[:10],
                "active" if user.disabled_at is None else "disabled",
            )
            for user in users
        ],
        empty=("No users yet", "to add a user, run: dittybag user add NAME"),
        styles=lambda row: {"fg": None if users[row].disabled_at is None else GREY},
    )


@command.command("disable")
@click.argument("name", type=text)
@in_workspace
def disable(name: str, options: WorkspaceOptions) -> None:
    """Disable a user and revoke their tokens. Content that they created is kept.

    \b
    Example:
      dittybag user disable alice
    """
    user, revoked = options.run(
        lambda session: session.workspace.accounts.disable(name, actor=session.caller.actor)
    )
    print_result(
        {**struct_data(user), "revoked": [token.id for token in revoked]},
        f"Disabled user '{user.name}' and revoked {format_count(len(revoked), 'token')}",
    )


@command.command("enable")
@click.argument("name", type=text)
@in_workspace
def enable(name: str, options: WorkspaceOptions) -> None:
    """Enable a disabled user. Their old tokens stay revoked.

    \b
    Example:
      dittybag user enable alice
    """
    user = options.run(lambda session: session.workspace.accounts.enable(name, actor=session.caller.actor))
    print_result(struct_data(user), f"Enabled user '{user.name}'")
