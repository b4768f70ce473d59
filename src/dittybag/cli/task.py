"""`dittybag task`: manage tasks. Each command is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from dittybag.cli.strict_options import StrictGroup

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
    "stats": ("task_list", "stats"),
    "update": ("task_edit", "update"),
}


class _TaskGroup(StrictGroup):
    """A group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"dittybag.cli.{module}"), name)
        return command


@click.group("task", _TaskGroup)
def command() -> None:
    """Manage tasks."""
