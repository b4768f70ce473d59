"""`dittybag prompt` and `dittybag task`: groups whose commands are imported on first use."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from dittybag.cli.strict_options import StrictGroup


class _LazyGroup(StrictGroup):
    """A group whose commands are imported on first use."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, tuple[str, str]], **others: Any) -> None:
        """`lazy`: commands, and the module and function of each."""
        super().__init__(*arguments, **others)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        module, name = self._lazy[cmd_name]
        command: click.Command = getattr(import_module(f"dittybag.cli.{module}"), name)
        return command


prompt = _LazyGroup(
    "prompt",
    help="Manage prompts.",
    lazy={
        "add": ("prompt_write_commands", "add"),
        "delete": ("prompt_write_commands", "delete"),
        "edit": ("prompt_write_commands", "edit"),
        "list": ("prompt_read_commands", "list_prompts"),
        "render": ("prompt_read_commands", "render"),
        "show": ("prompt_read_commands", "show"),
    },
)
task = _LazyGroup(
    "task",
    help="Manage tasks.",
    lazy={
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
    },
)
