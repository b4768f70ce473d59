"""`dittybag project`: manage projects, their members and the folders that are linked to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import replace

from dittybag.cli import stored_names
from dittybag.cli.error_output import ExitStatus
from dittybag.cli.output import clip_line, format_path, format_time, note, print_list, print_result
from dittybag.cli.read_input import refuse, text
from dittybag.cli.strict_options import StrictGroup
from dittybag.cli.table import Column
from dittybag.cli.workspace_options import WorkspaceOptions, in_project, in_workspace
from dittybag.domain.accounts import Member, Role
from dittybag.domain.errors import LastMember
from dittybag.domain.projects import AUTOMATIC, DEFAULT_PROJECT, NEW_PROJECT, Project, ProjectKey, ProjectSize
from dittybag.domain.times import iso

if TYPE_CHECKING:
    from dittybag.domain.ports import ProjectFolder
    from dittybag.services.workspace import WorkspaceSession


@click.group("project", StrictGroup)
def command() -> None:
    """Manage projects, their members and the folders that are linked to them."""


@command.command("list")
@in_workspace
def list_projects(options: WorkspaceOptions) -> None:
    """List all projects and the number of items in each.

    \b
    Example:
      dittybag project list
    """
    sizes = options.run(lambda session: session.workspace.projects.all())
    folders = _folders(options)
    data = [_project_data(size, folders) for size in sizes]
    header: list[str | Column] = ["project", "prompts", "resources", "tasks"]
    rows = [[size.project.name, *map(str, (size.prompts, size.resources, size.tasks))] for size in sizes]
    if any(item["folders"] for item in data):
        header.append(Column("folders", shrink="cut", rank=1))
        for row, item in zip(rows, data, strict=True):
            row.append(clip_line(", ".join(map(format_path, item["folders"])), 1000))
    header.append(Column("created", extra=True))
    for row, size in zip(rows, sizes, strict=True):
        row.append(format_time(size.project.created_at))
    print_list({"projects": data}, header, rows, right=(1, 2, 3))


@command.command("show", short_help="Show a project, or that of the current folder.")
@click.argument("name", required=False, type=text, shell_complete=stored_names.projects)
@in_workspace
def show(name: str | None, options: WorkspaceOptions) -> None:
    """Show a project, its members and the folders that are linked to it.

    Without NAME, it is the project of the current folder. A project without members is visible to all users.

    \b
    Examples:
      dittybag project show
      dittybag project show website
    """
    options = replace(options, project=name or AUTOMATIC)
    sizes, project, wanted, members = options.run(_find_with_sizes)
    size = next((item for item in sizes if item.project.id == project.id), None)
    if size is None:
        size = ProjectSize(project=project, prompts=0, resources=0, tasks=0)
    data = {
        **_project_data(size, _folders(options)),
        "members": [msgspec.to_builtins(member) for member in members],
        "exists": project.id != NEW_PROJECT,
    }
    lines = [
        f"{label + ':':<11}{clip_line(str(value), 1000)}"
        for label, value in (
            ("Project", data["name"]),
            ("Prompts", size.prompts),
            ("Resources", size.resources),
            ("Tasks", size.tasks),
            *(("Folder", format_path(folder)) for folder in data["folders"]),
            *(("Member", f"{member.user} ({member.role})") for member in members),
        )
    ]
    print_result(data, *lines)
    if not data["exists"]:
        note("this project does not exist yet; the first write in this folder creates it")
        if wanted not in (None, project.name):
            note(f"project '{wanted}' exists, but is not linked to this folder; see `dittybag project link`")


async def _find_with_sizes(
    session: WorkspaceSession,
) -> tuple[list[ProjectSize], Project, str | None, list[Member]]:
    """Return all projects, the one to show, the name of a new one if it were free, and the members."""
    projects, folder = session.workspace.projects, session.caller.folder
    wanted = None if folder is None else next(folder.names())
    project = await projects.of_caller(session.caller)
    is_new = project.id == NEW_PROJECT
    members = [] if is_new else await session.workspace.accounts.members(project.name)
    return await projects.all(), project, wanted, members


def _folders(options: WorkspaceOptions) -> dict[ProjectKey, list[str]]:
    from dittybag.assembly.folder_links import folders_by_project

    return folders_by_project(options.settings)


def _project_data(size: ProjectSize, folders: dict[ProjectKey, list[str]]) -> dict[str, Any]:
    project = size.project
    return {
        "name": project.name,
        "prompts": size.prompts,
        "resources": size.resources,
        "tasks": size.tasks,
        "created_at": iso(project.created_at),
        "folders": folders.get(ProjectKey(project.id, project.created_at), []),
    }


@command.command("link", short_help="Link a folder to a project, for `--project auto`.")
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False))
@in_project
def link(folder: str | None, options: WorkspaceOptions) -> None:
    """Link a folder to a project, which `--project auto` then selects in it.

    FOLDER is a folder of this machine; without it, the top of the repository that the current folder belongs
    to, or the current folder. Without --project, it is linked to the project with its name, which is created
    if it does not exist. Several folders can be linked to one project by naming it.

    \b
    Examples:
      dittybag project link
      dittybag project link ~/src/website --project website
    """
    target = _folder_to_link(options, folder)
    name = None if options.project == AUTOMATIC else options.project
    folders = _folders(options)

    async def work(session: WorkspaceSession) -> Project:
        projects = session.workspace.projects
        project = None
        if name is not None:
            project = await projects.find(name)
        elif await projects.of_folder(target) is None:
            project = await _find_unlinked(session, next(target.names()), folders)
        if project is None:
            return await projects.create_of_folder(target, actor=session.caller.actor)
        target.link(project)
        return project

    project = replace(options, project=DEFAULT_PROJECT).run(work, create=name is None)
    path = clip_line(format_path(target.path), 1000)
    print_result(
        {"folder": target.path, "project": project.name}, f"Linked {path} to project '{project.name}'"
    )


async def _find_unlinked(
    session: WorkspaceSession, name: str, folders: dict[ProjectKey, list[str]]
) -> Project | None:
    """Return the project with a name, unless it is linked to a folder."""
    for size in await session.workspace.projects.all():
        project = size.project
        if project.name == name and name != DEFAULT_PROJECT:
            return None if ProjectKey(project.id, project.created_at) in folders else project
    return None


@command.command("unlink")
@click.argument("folder", required=False, type=click.Path(file_okay=False))
@in_workspace
def unlink(folder: str | None, options: WorkspaceOptions) -> None:
    """Remove the link of a folder. The project and what is in it stay.

    \b
    Examples:
      dittybag project unlink
      dittybag project unlink ~/src/website
    """
    target = _folder_to_link(options, folder)
    path = clip_line(format_path(target.path), 1000)
    if not target.unlink():
        refuse(
            f"{path} is not linked to a project",
            "run `dittybag project list` to see the linked folders",
            status=ExitStatus.NOT_FOUND,
            code="NOT_FOUND",
        )
    print_result({"folder": target.path, "unlinked": True}, f"Unlinked {path}")


def _folder_to_link(options: WorkspaceOptions, folder: str | None) -> ProjectFolder:
    from dittybag.assembly.folder_links import folder_to_link

    target = folder_to_link(options.settings, folder)
    if target is None:
        refuse("The home folder and / cannot be linked to a project", "name a folder inside of it")
    return target


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
@click.argument("name", shell_complete=stored_names.projects)
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
@click.argument("name", shell_complete=stored_names.projects)
@in_workspace
def delete(name: str, options: WorkspaceOptions) -> None:
    """Delete a project with its prompts, resources and tasks.

    `dittybag undo` restores them.

    \b
    Example:
      dittybag project delete website
    """
    project = options.run(lambda session: session.workspace.projects.delete(name, actor=session.caller.actor))
    print_result({"name": project.name, "deleted": True}, f"Deleted project '{project.name}'")


@command.command("share")
@click.argument("name", type=text, shell_complete=stored_names.projects)
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
@click.argument("name", type=text, shell_complete=stored_names.projects)
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


def _membership_data(project: str, members: Sequence[Member]) -> dict[str, Any]:
    return {"project": project, "members": [msgspec.to_builtins(member) for member in members]}
