"""`dittybag project`: manage projects and their members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from dittybag.cli.output import note, print_list, print_result
from dittybag.cli.read_input import text
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
def list_projects(options: WorkspaceOptions) -> None:
    """List all projects and the number of items in each.

    \b
    Example:
      dittybag project list
    """
    sizes = options.run(lambda session: session.workspace.projects.all())
    rows = [(size.project.name, size.prompts, size.resources, size.tasks) for size in sizes]
    header = ("name", "prompts", "resources", "tasks")
    data = [
        {**dict(zip(header, row, strict=True)), "created_at": iso(size.project.created_at)}
        for row, size in zip(rows, sizes, strict=True)
    ]
    print_list(
        {"projects": data},
        ("project", *header[1:]),
        [tuple(map(str, row)) for row in rows],
        right=(1, 2, 3),
        shrinkable=(0,),
    )


@command.command("create")
@click.argument("name")
@in_workspace
def create(name: str, options: WorkspaceOptions) -> None:
    """Create a project.

    \b
    Example:
      dittybag project create website
    """
    project = options.run(
        lambda session: session.workspace.projects.create(name, actor=session.caller.actor), create=True
    )
    print_result({"name": project.name}, f"Created project '{project.name}'")


@command.command("rename")
@click.argument("name")
@click.argument("new_name")
@in_workspace
def rename(name: str, new_name: str, options: WorkspaceOptions) -> None:
    """Rename a project.

    \b
    Example:
      dittybag project rename website homepage
    """
    project = options.run(
        lambda session: session.workspace.projects.rename(name, new_name, actor=session.caller.actor)
    )
    print_result({"name": project.name}, f"Renamed project '{name}' to '{project.name}'")


@command.command("delete")
@click.argument("name")
@in_workspace
def delete(name: str, options: WorkspaceOptions) -> None:
    """Delete a project with its prompts and resources.

    `dittybag undo` restores them.

    \b
    Example:
      dittybag project delete website
    """
    project = options.run(lambda session: session.workspace.projects.delete(name, actor=session.caller.actor))
    print_result({"name": project.name, "deleted": True}, f"Deleted project '{project.name}'")


@command.command("share")
@click.argument("name", type=text)
@click.argument("user", type=text)
@click.option("--read", "read_only", is_flag=True, help="Grant read access only.")
@in_workspace
def share(name: str, user: str, options: WorkspaceOptions, *, read_only: bool) -> None:
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
    print_result(_membership_data(name, members), f"User '{user}' can {access} project '{name}'")
    if len(members) == 1:
        note(f"project '{name}' is now visible over HTTP to its members only")


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
def unshare(name: str, user: str, options: WorkspaceOptions, *, to_all: bool) -> None:
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
        error.add_note("use --open to remove the last member")
        raise
    print_result(_membership_data(name, members), f"Removed user '{user}' from project '{name}'")
    if not members:
        note(f"project '{name}' is now visible to all users")


@command.command("members")
@click.argument("name", type=text)
@in_workspace
def members(name: str, options: WorkspaceOptions) -> None:
    """List the members of a project.

    \b
    Example:
      dittybag project members website
    """
    found = options.run(lambda session: session.workspace.accounts.members(name))
    print_list(
        _membership_data(name, found),
        ("user", "access"),
        [(member.user, member.role) for member in found],
        empty=(f"Project '{name}' has no members: it is visible to all users",),
    )


def _membership_data(project: str, members: Sequence[Member]) -> dict[str, Any]:
    return {"project": project, "members": [msgspec.to_builtins(member) for member in members]}
