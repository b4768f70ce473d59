"""`dittybag user`: manage the users of an HTTP server."""

from __future__ import annotations

from typing import Any

import click

from dittybag.cli.output import json_option, print_json, print_table
from dittybag.cli.read_input import text
from dittybag.cli.strict_options import StrictGroup
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.accounts import User
from dittybag.domain.display import format_count
from dittybag.domain.times import iso


@click.group("user", StrictGroup)
def command() -> None:
    """Manage users, who access a server over HTTP.

    The command line and servers on standard input need no user: they have full access to the database.
    """


@command.command("add")
@click.argument("name", type=text)
@in_workspace
@json_option
def add(name: str, options: WorkspaceOptions, *, as_json: bool) -> None:
    """Add a user. User names cannot be reused.

    \b
    Example:
      dittybag user add alice
    """
    user = options.run(
        lambda session: session.workspace.accounts.add_user(name, actor=session.caller.actor), create=True
    )
    if as_json:
        print_json(_user_data(user))
        return
    click.echo(f"Added user '{user.name}'")
    click.echo(
        f"hint: to create a token, run: dittybag token create --user {user.name} --scope write", err=True
    )


@command.command("list")
@in_workspace
@json_option
def list_users(options: WorkspaceOptions, *, as_json: bool) -> None:
    """List all users.

    \b
    Example:
      dittybag user list
    """
    users = options.run(lambda session: session.workspace.accounts.users())
    if as_json:
        print_json({"users": [_user_data(user) for user in users]})
        return
    if not users:
        click.echo("No users yet", err=True)
        click.echo("hint: to add a user, run: dittybag user add NAME", err=True)
        return
    print_table(
        ("user", "created", "state"),
        [(user.name, iso(user.created_at)[:10], _state(user)) for user in users],
        styles=lambda row: {"dim": users[row].disabled_at is not None},
    )


@command.command("disable")
@click.argument("name", type=text)
@in_workspace
@json_option
def disable(name: str, options: WorkspaceOptions, *, as_json: bool) -> None:
    """Disable a user and revoke their tokens. Content that they created is kept.

    \b
    Example:
      dittybag user disable alice
    """
    user, revoked = options.run(
        lambda session: session.workspace.accounts.disable(name, actor=session.caller.actor)
    )
    if as_json:
        print_json({**_user_data(user), "revoked": [token.id for token in revoked]})
    else:
        click.echo(f"Disabled user '{user.name}' and revoked {format_count(len(revoked), 'token')}")


@command.command("enable")
@click.argument("name", type=text)
@in_workspace
@json_option
def enable(name: str, options: WorkspaceOptions, *, as_json: bool) -> None:
    """Enable a disabled user. Their old tokens stay revoked.

    \b
    Example:
      dittybag user enable alice
    """
    user = options.run(lambda session: session.workspace.accounts.enable(name, actor=session.caller.actor))
    if as_json:
        print_json(_user_data(user))
    else:
        click.echo(f"Enabled user '{user.name}'")


def _state(user: User) -> str:
    return "active" if user.disabled_at is None else "disabled"


def _user_data(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "created_at": iso(user.created_at),
        "disabled_at": None if user.disabled_at is None else iso(user.disabled_at),
    }
