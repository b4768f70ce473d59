"""A group of commands that are imported on first use."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from dittybag.cli.strict_options import StrictGroup


class LazyGroup(StrictGroup):
    """A group whose commands are imported on first use, besides those that were added to it."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, tuple[str, str]], **others: Any) -> None:
        """`lazy`: commands, and the module and function of each."""
        super().__init__(*arguments, **others)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self._lazy, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, name = self._lazy[cmd_name]
        command: click.Command = getattr(import_module(f"dittybag.cli.{module}"), name)
        return command
