"""The output of `dittybag` without a command: a summary of the workspace and suggested commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click

from dittybag.cli.workspace_options import current_options
from dittybag.domain.display import format_count

if TYPE_CHECKING:
    from dittybag.domain.projects import ProjectSize
    from dittybag.services.task_service import TaskStats
    from dittybag.services.workspace import WorkspaceSession

_FIRST_STEPS: Final[tuple[tuple[str, str], ...]] = (
    ("dittybag demo", "open a sample workspace; your data is not touched"),
    ("dittybag connect", "list your MCP clients and connect them"),
    ("dittybag prompt add NAME", "store your first prompt"),
    ("dittybag import FILE", "import data from another program"),
)
_NEXT_STEPS: Final[tuple[tuple[str, str], ...]] = (
    ("dittybag search TEXT", "search everything"),
    ("dittybag task list", "list open tasks"),
    ("dittybag history", "show recent changes; dittybag undo reverts them"),
    ("dittybag connect", "list your MCP clients"),
    ("dittybag doctor", "check for problems"),
)


async def _workspace_sizes(session: WorkspaceSession) -> tuple[list[ProjectSize], TaskStats]:
    return await session.workspace.projects.all(), await session.workspace.tasks.stats(session.caller)


def welcome() -> None:
    """Print a summary of the workspace and suggested commands."""
    from dittybag.assembly.store_factory import is_file

    options = current_options()
    database = options.settings.database
    click.secho("Dittybag", bold=True, nl=False)
    click.echo(": share prompts, resources and tasks with your AI agents.\n")
    if not is_file(database) or os.path.exists(database):  # noqa: PTH110  # pathlib is slow to import
        sizes, stats = options.run(_workspace_sizes)
        counts = (
            format_count(sum(size.prompts for size in sizes), "prompt"),
            format_count(sum(size.resources for size in sizes), "resource"),
            format_count(stats.total - stats.completed, "open task"),
            format_count(len(sizes), "project"),
        )
        # A URL may contain a password.
        click.echo(f"{', '.join(counts)} in {database if is_file(database) else 'PostgreSQL'}\n")
        steps = _NEXT_STEPS
    else:
        steps = _FIRST_STEPS
    width = max(len(command) for command, _ in steps)
    for command, description in steps:
        click.echo(f"  {click.style(command.ljust(width), fg='cyan')}  {description}")
    click.echo("\nRun dittybag --help for all commands.")
