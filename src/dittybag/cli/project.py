"""`dittybag project`: manage projects and their members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from dittybag.cli.output import json_option, print_json, print_table
from dittybag.cli.read_input import refuse_with, text
from dittybag.cli.strict_options import StrictGroup
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.accounts import Member, Role
from dittybag.domain.errors import LastMember
from dittybag.domain.times import iso


@click.group("project", StrictGroup)
def command() -> None:
    """Manage projects and their members."""


@command.command("list")
@in_workspace
@json_option
def list_projects(options: WorkspaceOptions, *, as_json: bool) -> None:
    """List all projects and the number of items in each.

    \b
    Example:
      dittybag project list
    """
    sizes = options.run(lambda session: session.workspace.projects.all())
    if as_json:
        rows = [
            {
                "name": size.project.name,
                "prompts": size.prompts,
                "resources": size.resources,
                "tasks": size.tasks,
                "created_at": iso(size.project.created_at),
            }
            for size in sizes
        ]
        print_json({"projects": rows})
        return
    print_table(
        ("project", "prompts", "resources", "tasks"),
        [(size.project.name, *map(str, (size.prompts, size.resources, size.tasks))) for size in sizes],
        right=(1, 2, 3),
        shrinkable=(0,),
    )


@command.command("create")
@click.argument("name")
@in_workspace
@json_option
def create(name: str, options: WorkspaceOptions, *, as_json: bool) -> None:
    """Create a project.

    \b
    Example:
      dittybag project create website
    """
    project = options.run(
        lambda session: session.workspace.projects.create(name, actor=session.caller.actor), create=True
    )
    _print_result({"name": project.name}, f"Created project '{project.name}'", as_json=as_json)


@command.command("rename")
@click.argument("name")
@click.argument("new_name")
@in_workspace
@json_option
def rename(name: str, new_name: str, options: WorkspaceOptions, *, as_json: bool) -> None:
    """Rename a project.

    \b
    Example:
      dittybag project rename website homepage
    """
    project = options.run(
        lambda session: session.workspace.projects.rename(name, new_name, actor=session.caller.actor)
    )
    _print_result({"name": project.name}, f"Renamed project '{name}' to '{project.name}'", as_json=as_json)


@command.command("delete")
@click.argument("name")
@in_workspace
@json_option
def delete(name: str, options: WorkspaceOptions, *, as_json: bool) -> None:
    """Delete a project with its prompts and resources.

    `dittybag undo` restores them.

    \b
    Example:
      dittybag project delete website
    """
    project = options.run(lambda session: session.workspace.projects.delete(name, actor=session.caller.actor))
    _print_result(
        {"name": project.name, "deleted": True}, f"Deleted project '{project.name}'", as_json=as_json
    )


@command.command("share")
@click.argument("name", type=text)
@click.argument("user", type=text)
@click.option("--read", "read_only", is_flag=True, help="Grant read access only.")
@in_workspace
@json_option
def share(name: str, user: str, options: WorkspaceOptions, *, read_only: bool, as_json: bool) -> None:
    """Add a user to a project.

    A project with members is visible over HTTP to its members only.

    \b
    Examples:
      dittybag project share website alice
      dittybag project share website bob --read
    """
    role: Role = "read" if read_only else "write"
    members = options.run(
        lambda session: session.workspace.accounts.share(name, user, role, actor=session.caller.actor)
    )
    access = "read" if read_only else "read and change"
    _print_result(
        _membership_data(name, members), f"User '{user}' can {access} project '{name}'", as_json=as_json
    )
    if len(members) == 1 and not as_json:
        click.echo(f"note: project '{name}' is now visible over HTTP to its members only", err=True)


@command.command("unshare")
@click.argument("name", type=text)
@click.argument("user", type=text)
@click.option(
    "--open",
    "to_all",
    is_flag=True,
    help="Allow removing the last member, which makes the project visible to all users.",
)
@in_workspace
@json_option
def unshare(name: str, user: str, options: WorkspaceOptions, *, to_all: bool, as_json: bool) -> None:
    """Remove a user from a project.

    \b
    Example:
      dittybag project unshare website bob
    """
    try:
        members = options.run(
            lambda session: session.workspace.accounts.unshare(
                name, user, actor=session.caller.actor, to_all=to_all
            )
        )
    except LastMember as error:
        refuse_with(error, "use --open to remove the last member")
    _print_result(
        _membership_data(name, members),
        f"Removed user '{user}' from project '{name}'",
        as_json=as_json,
    )
    if not members and not as_json:
        click.echo(f"note: project '{name}' is now visible to all users", err=True)


@command.command("members")
@click.argument("name", type=text)
@in_workspace
@json_option
def members(name: str, options: WorkspaceOptions, *, as_json: bool) -> None:
    """List the members of a project.

    \b
    Example:
      dittybag project members website
    """
    found = options.run(lambda session: session.workspace.accounts.members(name))
    if as_json:
        print_json(_membership_data(name, found))
    elif not found:
        click.echo(f"Project '{name}' has no members: it is visible to all users", err=True)
    else:
        print_table(("user", "access"), [(member.user, member.role) for member in found])


def _membership_data(project: str, members: Sequence[Member]) -> dict[str, Any]:
    return {"project": project, "members": [msgspec.to_builtins(member) for member in members]}


def _print_result(data: dict[str, Any], message: str, *, as_json: bool) -> None:
    if as_json:
        print_json(data)
    else:
        click.echo(message)
