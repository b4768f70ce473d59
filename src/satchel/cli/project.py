"""`satchel project`: create, list, rename and delete projects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click
import msgspec

from satchel.assembly import with_workspace
from satchel.config import from_process, person
from satchel.domain.times import iso
from satchel.services.workspace import Workspace

T = TypeVar("T")


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--db", metavar="FILE", help="A database anywhere else."),
        click.option("--workspace", metavar="NAME", help="A database in Satchel's data folder."),
    ):
        function = option(function)
    return function


def _run(workspace: str | None, db: str | None, work: Callable[[Workspace, str], Awaitable[T]]) -> T:
    settings = from_process(workspace=workspace, db=db)
    actor = settings.actor or person()
    return with_workspace(settings, lambda opened: work(opened, actor))


def _print(value: dict[str, Any], text: str, *, as_json: bool) -> None:
    click.echo(msgspec.json.encode(value).decode() if as_json else text)


@click.group("project")
def command() -> None:
    """Create, list, rename and delete projects."""


@command.command("list")
@_options
def list_projects(workspace: str | None, db: str | None, *, as_json: bool) -> None:
    """Show all projects and how much is in them."""
    sizes = _run(workspace, db, lambda opened, actor: opened.projects.all())
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
        click.echo(msgspec.json.encode({"projects": rows}).decode())
        return
    width = max(len("project"), *(len(size.project.name) for size in sizes))
    click.echo(f"{'project':{width}}  prompts  resources  tasks")
    for size in sizes:
        name = size.project.name
        click.echo(f"{name:{width}}  {size.prompts:7}  {size.resources:9}  {size.tasks:5}")


@command.command("create")
@click.argument("name")
@_options
def create(name: str, workspace: str | None, db: str | None, *, as_json: bool) -> None:
    """Make a project."""
    project = _run(workspace, db, lambda opened, actor: opened.projects.create(name, actor=actor))
    _print({"name": project.name}, f"Created project '{project.name}'", as_json=as_json)


@command.command("rename")
@click.argument("name")
@click.argument("new_name")
@_options
def rename(name: str, new_name: str, workspace: str | None, db: str | None, *, as_json: bool) -> None:
    """Give a project another name."""
    project = _run(workspace, db, lambda opened, actor: opened.projects.rename(name, new_name, actor=actor))
    _print({"name": project.name}, f"Renamed project '{name}' to '{project.name}'", as_json=as_json)


@command.command("delete")
@click.argument("name")
@_options
def delete(name: str, workspace: str | None, db: str | None, *, as_json: bool) -> None:
    """Delete a project with its prompts and resources. The change log keeps them."""
    project = _run(workspace, db, lambda opened, actor: opened.projects.delete(name, actor=actor))
    _print({"name": project.name, "deleted": True}, f"Deleted project '{project.name}'", as_json=as_json)
