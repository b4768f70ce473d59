"""Commands that refuse an option that is given twice, their groups, and the options that they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from dittybag.cli import stored_names
from dittybag.cli.error_output import use_json
from dittybag.cli.read_input import text

F = TypeVar("F", bound=Callable[..., Any])

#: Longer summaries are not cut but wrapped.
_MAX_SUMMARY: Final = 1000
#: Where a context has the values of the shared options, and a function those that its command takes.
_GIVEN: Final = "dittybag.shared_options"
_TAKEN: Final = "shared_options"


class SharedOption(click.Option):
    """An option of `dittybag` itself that may also stand after a command that takes it."""

    def __init__(self, *names: str, **attributes: Any) -> None:
        super().__init__(names, expose_value=False, callback=_keep, **attributes)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return super().get_help_record(ctx) if ctx.parent is None else None


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is None or value is False:
        return
    given, name = shared_values(ctx), param.name or ""
    if value is not True and name in given:
        raise click.UsageError(f"--{name} can be given only once", ctx)
    given[name] = value


def shared_values(ctx: click.Context) -> dict[str, Any]:
    """Return the values of the shared options that were given, by name."""
    given: dict[str, Any] = ctx.meta.setdefault(_GIVEN, {})
    return given


PROJECT: Final = SharedOption(
    "-p",
    "--project",
    metavar="NAME",
    type=text,
    shell_complete=stored_names.projects,
    help="Project, or `auto` for that of the current folder (default: `default`; for tasks, all projects).",
)
WORKSPACE: Final = SharedOption(
    "--workspace",
    metavar="NAME",
    type=text,
    shell_complete=stored_names.workspaces,
    help="Name of a database in the data folder.",
)
DB: Final = SharedOption("--db", metavar="FILE", type=text, help="Path or URL of a database.")
JSON: Final = SharedOption("--json", is_flag=True, help="Print JSON.")
SHARED_OPTIONS: Final = (PROJECT, WORKSPACE, DB, JSON)


def takes(function: F, *options: SharedOption) -> F:
    """Let the command of a function take these options of `dittybag` itself."""
    vars(function)[_TAKEN] = options
    return function


def refuse_others(ctx: click.Context) -> None:
    """Refuse a shared option that was given, but that the command does not take."""
    for option in SHARED_OPTIONS:
        if option.name in shared_values(ctx) and option not in ctx.command.params:
            raise click.UsageError(f"--{option.name} does not apply to `{ctx.command_path}`", ctx)


class _Strict(click.Command):
    """A command or group whose options can be given only once, unless they are repeatable."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            *_, order = self.make_parser(ctx).parse_args(args=list(args))
            for parameter, times in Counter(order).items():
                if times > 1 and isinstance(parameter, click.Option) and _takes_one_value(parameter):
                    raise click.UsageError(f"{max(parameter.opts, key=len)} can be given only once", ctx)
        return super().parse_args(ctx, args)


class StrictCommand(_Strict):
    """A strict command, which takes some of the shared options."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.params += getattr(self.callback, _TAKEN, ())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            refuse_others(ctx)
            use_json(is_json="json" in shared_values(ctx))
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        names = [f"--{option.name}" for option in SHARED_OPTIONS if option in self.params]
        if names:
            listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(f"{listed}: see `dittybag --help`.")


def _takes_one_value(option: click.Option) -> bool:
    return not (option.multiple or option.is_flag or option.count)


class StrictGroup(_Strict, click.Group):
    """A group of strict commands, with summaries that are not cut."""

    command_class = StrictCommand

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.params += SHARED_OPTIONS

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (name, command.get_short_help_str(_MAX_SUMMARY))
            for name in self.list_commands(ctx)
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
