"""`dittybag` alone: what there is, and what to do next."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click

from dittybag.cli.output import format_count
from dittybag.cli.workspace_options import WorkspaceOptions

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import WorkspaceSession
    from dittybag.domain.projects import ProjectSize
    from dittybag.services.task_service import TaskStats

_FIRST_STEPS: Final[tuple[tuple[str, str], ...]] = (
    ("dittybag demo", "a tour in a minute; it leaves your data alone"),
    ("dittybag connect", "which of your MCP clients know Dittybag, and how to connect them"),
    ("dittybag prompt add NAME", "keep your first prompt"),
    ("dittybag import FILE", "bring what you have in another program"),
)
_NEXT_STEPS: Final[tuple[tuple[str, str], ...]] = (
    ("dittybag search TEXT", "find something"),
    ("dittybag task list", "what there is to do"),
    ("dittybag history", "who changed what; dittybag undo takes it back"),
    ("dittybag connect", "which of your MCP clients know Dittybag"),
    ("dittybag doctor", "whether everything is in order"),
)


async def _workspace_sizes(session: WorkspaceSession) -> tuple[list[ProjectSize], TaskStats]:
    return await session.workspace.projects.all(), await session.workspace.tasks.stats(session.caller)


def welcome() -> None:
    """Say what there is, and what to do next."""
    from dittybag.assembly.store_factory import is_file

    options = WorkspaceOptions(None, None)
    database = options.settings.database
    click.secho("Dittybag", bold=True, nl=False)
    click.echo(": the prompts, documents and tasks that you and your agents share.\n")
    if not is_file(database) or os.path.exists(database):  # noqa: PTH110  # pathlib is slow to import
        sizes, stats = options.run(_workspace_sizes)
        words_of = (
            format_count(sum(size.prompts for size in sizes), "prompt"),
            format_count(sum(size.resources for size in sizes), "resource"),
            format_count(stats.total - stats.completed, "open task"),
            format_count(len(sizes), "project"),
        )
        # A URL may have a password in it.
        click.echo(f"{', '.join(words_of)} in {database if is_file(database) else 'PostgreSQL'}\n")
        steps = _NEXT_STEPS
    else:
        steps = _FIRST_STEPS
    width = max(len(command) for command, _ in steps)
    for command, words in steps:
        click.echo(f"  {click.style(command.ljust(width), fg='cyan')}  {words}")
    click.echo("\ndittybag --help lists all commands.")
