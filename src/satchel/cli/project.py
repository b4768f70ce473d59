"""`satchel project`: create, list, rename and delete projects."""

from __future__ import annotations

from typing import Any

import click

from satchel.cli.output import json_option, print_json, print_table
from satchel.cli.place import Where, in_workspace
from satchel.domain.times import iso


@click.group("project")
def command() -> None:
    """Create, list, rename and delete projects."""


@command.command("list")
@in_workspace
@json_option
def list_projects(where: Where, *, as_json: bool) -> None:
    """Show all projects and how much is in them.

    \b
    Example:
      satchel project list
    """
    sizes = where.run(lambda desk: desk.workspace.projects.all())
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
        giving=(0,),
    )


@command.command("create")
@click.argument("name")
@in_workspace
@json_option
def create(name: str, where: Where, *, as_json: bool) -> None:
    """Make a project.

    \b
    Example:
      satchel project create website
    """
    project = where.run(lambda desk: desk.workspace.projects.create(name, actor=desk.caller.actor))
    _tell({"name": project.name}, f"Created project '{project.name}'", as_json=as_json)


@command.command("rename")
@click.argument("name")
@click.argument("new_name")
@in_workspace
@json_option
def rename(name: str, new_name: str, where: Where, *, as_json: bool) -> None:
    """Give a project another name.

    \b
    Example:
      satchel project rename website homepage
    """
    project = where.run(lambda desk: desk.workspace.projects.rename(name, new_name, actor=desk.caller.actor))
    _tell({"name": project.name}, f"Renamed project '{name}' to '{project.name}'", as_json=as_json)


@command.command("delete")
@click.argument("name")
@in_workspace
@json_option
def delete(name: str, where: Where, *, as_json: bool) -> None:
    """Delete a project with its prompts and resources; `satchel undo` brings them back.

    \b
    Example:
      satchel project delete website
    """
    project = where.run(lambda desk: desk.workspace.projects.delete(name, actor=desk.caller.actor))
    _tell({"name": project.name, "deleted": True}, f"Deleted project '{project.name}'", as_json=as_json)


def _tell(data: dict[str, Any], words: str, *, as_json: bool) -> None:
    if as_json:
        print_json(data)
    else:
        click.echo(words)
