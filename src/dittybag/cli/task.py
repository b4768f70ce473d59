"""`dittybag task`: manage tasks. Each command is imported on first use."""

from __future__ import annotations

from typing import Final

import click

from dittybag.cli.lazy_group import LazyGroup

#: The commands, and the module and function of each.
_COMMANDS: Final = {
    "add": ("task_edit", "add"),
    "claim": ("task_queue", "claim"),
    "comment": ("task_edit", "comment"),
    "delete": ("task_edit", "delete"),
    "done": ("task_status", "done"),
    "drop": ("task_status", "drop"),
    "edit": ("task_editor", "edit"),
    "graph": ("task_graph", "graph"),
    "import": ("task_import", "import_tasks"),
    "list": ("task_list", "list_tasks"),
    "next": ("task_queue", "claim_next"),
    "release": ("task_queue", "release"),
    "renew": ("task_queue", "renew"),
    "reopen": ("task_status", "reopen"),
    "review": ("task_status", "review"),
    "show": ("task_show", "show"),
    "update": ("task_edit", "update"),
}


@click.group("task", LazyGroup, lazy=_COMMANDS)
def command() -> None:
    """Manage tasks."""
