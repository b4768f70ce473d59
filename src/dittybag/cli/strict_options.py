"""Commands that refuse an option that is given twice, and groups of options."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import click


class StrictCommand(click.Command):
    """A command whose options can be given only once, unless they are repeatable."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            *_, order = self.make_parser(ctx).parse_args(args=list(args))
            for parameter, times in Counter(order).items():
                if times > 1 and isinstance(parameter, click.Option) and _takes_one_value(parameter):
                    raise click.UsageError(f"{max(parameter.opts, key=len)} can be given only once.", ctx)
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            from dittybag.cli.missing_names import pick_missing

            picked = pick_missing(ctx, given, error.param)
            if picked is None:
                raise
            return super().parse_args(ctx, [*given, "--", picked])

    def invoke(self, ctx: click.Context) -> Any:
        if not sys.stdout.isatty():
            return super().invoke(ctx)
        from dittybag.cli.pager import paged_output

        with paged_output(command_words(ctx)):
            return super().invoke(ctx)


def command_words(ctx: click.Context) -> str:
    """Return the names of a command and its groups, such as `prompt show`, also if an alias was typed."""
    own = ctx.command.name or ""
    return own if ctx.parent is None or ctx.parent.parent is None else f"{command_words(ctx.parent)} {own}"


def _takes_one_value(option: click.Option) -> bool:
    return not (option.multiple or option.is_flag or option.count)


class StrictGroup(click.Group):
    """A group of such commands."""

    command_class = StrictCommand


def option_group(
    *options: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds several options to a command, in this order."""

    def add_options(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add_options
