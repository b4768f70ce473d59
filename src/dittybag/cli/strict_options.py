"""Commands that refuse an option that is given twice, their groups, and groups of options."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import click

#: Longer summaries are not cut but wrapped.
_MAX_SUMMARY: Final = 1000


class StrictCommand(click.Command):
    """A command whose options can be given only once, unless they are repeatable."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            *_, order = self.make_parser(ctx).parse_args(args=list(args))
            for parameter, times in Counter(order).items():
                if times > 1 and isinstance(parameter, click.Option) and _takes_one_value(parameter):
                    raise click.UsageError(f"{max(parameter.opts, key=len)} can be given only once", ctx)
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
    """A group of such commands, which also have the names of the shell, such as `ls`."""

    command_class = StrictCommand

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args[0] not in names:
            from dittybag.cli.command_aliases import command_name

            args = [command_name(args[0], names), *args[1:]]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from dittybag.cli.command_aliases import aliases_of

        names = self.list_commands(ctx)
        rows = [
            (", ".join([name, *aliases_of(name, names)]), command.get_short_help_str(_MAX_SUMMARY))
            for name in names
            if (command := self.get_command(ctx, name)) is not None and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def option_group(
    *options: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds several options to a command, in this order."""

    def add_options(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add_options


def renamed_option(old: str, new: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds a flag that was renamed: using it is an error that names the new one."""

    def refuse(ctx: click.Context, param: click.Parameter, is_given: bool) -> None:  # noqa: FBT001  # of click
        if is_given:
            raise click.UsageError(f"{old} was renamed to {new}", ctx)

    return click.option(
        old,
        hidden=True,
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=refuse,
        help=f"Renamed to {new}.",
    )
