"""`dittybag task`: manage tasks. Each command is imported on first use."""

from __future__ import annotations

from typing import Final

import click

from dittybag.cli.lazy_group import LazyGroup

#: The commands, and the module and function of each.
_COMMANDS: Final = {
    "add": ("task_edit", "add"),
    "delete": ("task_edit", "delete"),
    "done": ("task_queue", "done"),
    "edit": ("task_edit", "edit"),
    "graph": ("task_graph", "graph"),
    "list": ("task_list", "list_tasks"),
    "next": ("task_queue", "claim_next"),
    "release": ("task_queue", "release"),
    "renew": ("task_queue", "renew"),
    "show": ("task_show", "show"),
}


@click.group("task", LazyGroup, lazy=_COMMANDS)
def command() -> None:
    """Manage tasks."""
