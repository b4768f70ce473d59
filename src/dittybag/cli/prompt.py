"""`dittybag prompt`: manage prompts. Each command is imported on first use."""

from __future__ import annotations

from typing import Final

import click

from dittybag.cli.lazy_group import LazyGroup

#: The commands, and the module and function of each.
_COMMANDS: Final = {
    "add": ("prompt_write_commands", "add"),
    "delete": ("prompt_write_commands", "delete"),
    "edit": ("prompt_write_commands", "edit"),
    "list": ("prompt_read_commands", "list_prompts"),
    "render": ("prompt_read_commands", "render"),
    "show": ("prompt_read_commands", "show"),
}


@click.group("prompt", LazyGroup, lazy=_COMMANDS)
def command() -> None:
    """Manage prompts."""
